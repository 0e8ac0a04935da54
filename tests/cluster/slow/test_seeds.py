"""The seeds' programs, which pass on a laptop's Ray, pass on pods as they are, on unreserved nodes."""

import json
import re
from importlib.util import find_spec
from pathlib import Path

from tests.cluster.kubectl import pool
from tests.cluster.packages import mounted

# With torch and pytest.
PACKAGES = Path(find_spec("torch").origin).parents[1]
PROGRAMS = sorted((Path(__file__).parents[2] / "ray" / "library").glob("test_seed_*.py"))
NVIDIA = {"vendor": "nvidia", "product": "NVIDIA-A100-SXM4-80GB"}
AMD = {"vendor": "amd", "product": "AMD-Instinct-MI300X"}

# What stands where a laptop's Ray is started otherwise.
ON_THE_CLUSTER = """
import os, pytest, ray

@pytest.fixture(scope="session")
def local_ray():
    ray.init(address="auto", runtime_env={"working_dir": os.path.dirname(__file__)}, log_to_driver=False)
    yield
    ray.shutdown()
"""
WRITE = """
import json, pathlib, sys
for name, text in json.load(sys.stdin).items():
    pathlib.Path("/tmp/seeds").mkdir(exist_ok=True)
    pathlib.Path("/tmp/seeds", name).write_text(text)
"""
RUN = "cd /tmp/seeds && python -m pytest -q -rA -p no:cacheprovider --config-file=/dev/null --rootdir=. . 2>&1 || true"


def test_the_seeds_programs_run_on_pods_as_they_are(namespace, clean):
    unreserved = {"processes": 4, "clusterName": "seeds", "reservation": "None", **mounted(PACKAGES)}
    namespace.apply(pool("green", accelerator=NVIDIA, **unreserved), pool("red", accelerator=AMD, **unreserved))
    for name in ("green", "red"):
        namespace.until_ready("resourcepool", name)
    files = {path.name: path.read_text() for path in PROGRAMS} | {"conftest.py": ON_THE_CLUSTER}
    head = namespace.head("seeds")
    namespace.run("exec", "-i", head, "--", "python", "-c", WRITE, stdin=json.dumps(files))
    said = namespace.run("exec", head, "--", "sh", "-c", RUN, timeout=400)
    assert re.search(r"(?m)^\d+ passed in ", said), said
    passed = set(re.findall(r"(?m)^PASSED (test_seed_\w+\.py)", said))
    assert passed == {path.name for path in PROGRAMS}
