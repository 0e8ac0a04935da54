"""verl's own classes, and its trainer, on ResourcePools, whether they reserve bundles or not."""

import ast
import re
import subprocess
from pathlib import Path

import pytest

from tests.cluster.command_line import CommandLine
from tests.cluster.drivers import drive, ready_head
from tests.cluster.kubectl import pool
from tests.cluster.packages import claimed
from tests.verl.trainer import tiny_training
from workergroups_common.ranges import expanded

REPOSITORY = Path(__file__).parents[3]
TRAINER = REPOSITORY / "tests" / "verl" / "trainer"
BENCH = REPOSITORY / ".venv-bench"
CHECK = (REPOSITORY / "examples" / "verl" / "check.py").read_text()
NVIDIA = {"vendor": "nvidia", "product": "NVIDIA-A100-SXM4-80GB"}
RESERVED = """
import ray
from workergroups.attaching.pools import placed_nodes
ray.init(address="auto", log_to_driver=False)
reserved = [(node.record["placement_group_id"], node.name.node_id) for node in placed_nodes("ppo") or ()]
"""
AMD = {"vendor": "amd", "product": "AMD-Instinct-MI300X"}


@pytest.fixture(scope="module")
def packages(namespace):
    (found,) = (REPOSITORY / ".venv-bench" / "lib").glob("python3.*/site-packages")
    with claimed(namespace, "packages", found) as volume:
        yield {"volumes": [volume], "env": [{"name": "PYTHONPATH", "value": "/packages"}]}


def checked(namespace, cluster, *processes_on_nodes):
    """Run the example; return the ranks of each node by its address, in their order."""
    shape = " ".join(map(str, processes_on_nodes))
    run = f"cat > /tmp/check.py && ray job submit --log-color=false -- python /tmp/check.py {shape}"
    said = namespace.run("exec", "-i", ready_head(namespace, cluster), "--", "sh", "-c", run, stdin=CHECK, timeout=300)
    assert "4 ranks have added their numbers: [0.0, 0.0, 1.0, 1.0, 2.0, 2.0, 3.0, 3.0]" in said, said
    return ast.literal_eval(re.search(r"(?m)^ranks of each node, by its address: (.+)$", said)[1])


def test_verl_runs_as_it_is_on_reserved_bundles_and_on_free_nodes(namespace, clean, packages):
    namespace.apply(
        pool("verl", processes=4, accelerator=AMD, **packages),
        pool("free", processes=4, accelerator=NVIDIA, reservation="None", **packages),
    )
    for name in ("verl", "free"):
        namespace.until_ready("resourcepool", name)
        assert list(checked(namespace, name).values()) == [4]


def test_verl_runs_as_it_is_on_two_nodes(namespace, clean, packages):
    namespace.apply(
        pool("verl", nodes=2, accelerator=AMD, **packages),
        pool("free", nodes=2, accelerator=NVIDIA, reservation="None", **packages),
    )
    addresses = {}
    for name in ("verl", "free"):
        namespace.until_ready("resourcepool", name)
        pods = expanded(namespace.get("resourcepool", name)["status"]["reservation"]["pods"])
        addresses[name] = [namespace.get("pod", pod)["status"]["podIP"] for pod in pods]
    # In the pool's order. Where nothing is reserved, verl orders nodes by the text of their addresses.
    assert list(checked(namespace, "verl", 2, 2).items()) == [(address, 2) for address in addresses["verl"]]
    assert checked(namespace, "free", 2, 2) == dict.fromkeys(addresses["free"], 2)


@pytest.fixture
def shape(namespace, tmp_path, packages):
    """Two nodes that have verl, a tiny model and data."""
    tmp_path.chmod(0o755)
    subprocess.run([BENCH / "bin" / "python", TRAINER / "tiny_model.py", tmp_path], check=True)
    # The weights are written for their owner alone, and pods run as another user.
    subprocess.run(["chmod", "--recursive", "a+rX", tmp_path], check=True)
    env = [{"name": name, "value": value} for name, value in tiny_training.environment().items()]
    with claimed(namespace, "tiny", tmp_path) as tiny:
        volumes, env = [*packages["volumes"], tiny], [*packages["env"], *env]
        yield {"nodes": 2, "accelerator": NVIDIA, "volumes": volumes, "env": env}


@pytest.mark.timeout(3000)
@pytest.mark.parametrize("reservation", ["Eager", "None"])
def test_verls_trainer_runs_as_it_is_on_two_nodes(namespace, clean, tmp_path, shape, reservation):
    run = CommandLine(namespace, tmp_path)
    namespace.apply(pool("ppo", reservation=reservation, **shape))
    namespace.until_ready("resourcepool", "ppo")
    reserved = drive(namespace, "ppo", RESERVED, "reserved")
    assert len(reserved) == (2 if reservation == "Eager" else 0)
    for use_v1 in (True, False):
        command = tiny_training.command("python", "/tiny", 2, use_v1)
        options = (f"--working-dir={TRAINER}", "--env=RAY_DEDUP_LOGS=0")
        with run.start("job", "submit", "ppo", *options, "--", *command) as job:
            printed, _ = job.communicate(timeout=1200)
        assert job.returncode == 0, printed[-10_000:]
        norms = tiny_training.norms(printed)
        assert list(norms) == [1, 2]
        assert min(norms.values()) > 0
        places = tiny_training.places(printed)
        assert len({node for _, node in places}) == len(places) == 2
        assert [place for place in places if place in reserved] == sorted(reserved)
