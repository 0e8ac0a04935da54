"""verl's own pools, groups and check of resources on ResourcePools, whether they reserve bundles or not."""

from pathlib import Path

from tests.cluster.drivers import ready_head
from tests.cluster.kubectl import pool
from tests.cluster.packages import mounted

REPOSITORY = Path(__file__).parents[3]
CHECK = (REPOSITORY / "examples" / "verl" / "check.py").read_text()
NVIDIA = {"vendor": "nvidia", "product": "NVIDIA-A100-SXM4-80GB"}
AMD = {"vendor": "amd", "product": "AMD-Instinct-MI300X"}


def test_verl_runs_as_it_is_on_reserved_bundles_and_on_free_nodes(namespace, clean):
    (packages,) = (REPOSITORY / ".venv-bench" / "lib").glob("python3.*/site-packages")
    shape = {"processes": 4, **mounted(packages)}
    namespace.apply(
        pool("verl", accelerator=AMD, **shape), pool("free", accelerator=NVIDIA, reservation="None", **shape)
    )
    for name in ("verl", "free"):
        namespace.until_ready("resourcepool", name)
        head = ready_head(namespace, name)
        run = "cat > /tmp/check.py && ray job submit -- python /tmp/check.py"
        said = namespace.run("exec", "-i", head, "--", "sh", "-c", run, stdin=CHECK, timeout=300)
        assert "4 ranks on 1 node: [0.0, 0.0, 1.0, 1.0, 2.0, 2.0, 3.0, 3.0]" in said, said
