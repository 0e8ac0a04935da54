"""examples/ppo on pods: four roles on two pools of one cluster, and its driver as a Ray job. torch is mounted."""

import csv
from importlib.util import find_spec
from pathlib import Path

import yaml

from tests.cluster.drivers import ready_head
from tests.cluster.kubectl import config_map
from tests.cluster.packages import mounted

PACKAGES = Path(find_spec("torch").origin).parents[1]
EXAMPLE = Path(__file__).parents[3] / "examples" / "ppo"
STEPS = 30
WRITE = "mkdir -p /tmp/ppo && cat > /tmp/ppo/{}.py"
TRAIN = f"python train.py --attach --steps={STEPS} --metrics=/tmp/metrics.csv"
RUN = f"cd /tmp && ray job submit --working-dir ppo -- {TRAIN}"


def test_the_ppo_example_learns_on_two_pools(namespace, clean):
    pools, groups = (list(yaml.safe_load_all((EXAMPLE / f"{kind}.yaml").read_text())) for kind in ("pools", "groups"))
    for each in pools:
        del each["spec"]["image"]
        each["spec"] |= mounted(PACKAGES)
    code = {path.stem: path.read_text() for path in EXAMPLE.glob("*.py")}
    namespace.apply(config_map("ppo-code", **code), *pools, *groups)
    for each in groups:
        namespace.until_ready("workergroup", each["metadata"]["name"])
    head = ready_head(namespace, "ppo")
    for name in ("train", "task", "algorithms"):
        namespace.run("exec", "-i", head, "--", "sh", "-c", WRITE.format(name), stdin=code[name])
    namespace.run("exec", head, "--", "sh", "-c", RUN, timeout=300)
    rows = list(csv.DictReader(namespace.run("exec", head, "--", "cat", "/tmp/metrics.csv").splitlines()))
    assert [int(row["step"]) for row in rows] == list(range(STEPS))
    rewards = [float(row["reward"]) for row in rows]
    assert sum(rewards[:3]) / 3 < 0.2
    assert sum(rewards[-3:]) / 3 > 0.4
