"""The executor starts beside Ray in the head's container, whatever command a user's template has there.

The commands run in a shell as KubeRay 1.6 would put them together, with scripts in place of Python and Ray.
"""

import os
import subprocess

import pytest

from tests.unit.operator.make import observed, of_kind, pool, wanted

RAY_START = "ray start --head"
OVERWRITE = {"metadata": {"annotations": {"ray.io/overwrite-container-cmd": "true"}}}


def head_template(pod_template=None):
    head = {"podTemplate": pod_template} if pod_template else {}
    return of_kind("RayCluster", wanted(observed(pools=(pool(head=head),))))["spec"]["headGroupSpec"]["template"]


def head_container(**more):
    template = head_template({**more.pop("template", {}), "spec": {"containers": [{"name": "ray-head", **more}]}})
    return template["spec"]["containers"][0], template


def as_kuberay_runs_it(container, template):
    """See BuildPod in its controllers/ray/common/pod.go."""
    command, arguments = container.get("command", []), container.get("args", [])
    line = "".join(f" {word} " for word in [*command, *arguments])
    is_overwritten = template["metadata"].get("annotations", {}).get("ray.io/overwrite-container-cmd") == "true"
    if is_overwritten or "ray start" in line:
        return [*command, *arguments]
    return ["/bin/bash", "-c", "--", f"{line} && ulimit -n 1000; {RAY_START}"]


@pytest.fixture
def said(tmp_path):
    """What a command starts, by name."""
    for name in ("python3", "ray", "theirs"):
        script = tmp_path / name
        script.write_text(f'#!/bin/sh\necho {name} "$@" >> {tmp_path}/said\n')
        script.chmod(0o755)

    def run(command):
        environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
        subprocess.run([*command], env=environment, check=True, timeout=20, stdin=subprocess.DEVNULL)
        subprocess.run(
            ["sh", "-c", f"until grep -q python3 {tmp_path}/said; do sleep 0.05; done"], check=True, timeout=20
        )
        return sorted((tmp_path / "said").read_text().splitlines())

    return run


EXECUTOR = "python3 -m workergroups_agent.executor 127.0.0.1:6379"


@pytest.mark.parametrize(
    ("theirs", "runs"),
    [
        ({}, [EXECUTOR, RAY_START]),
        ({"command": ["theirs", "a"]}, [EXECUTOR, RAY_START, "theirs a"]),
        ({"args": ["theirs", "b"]}, [EXECUTOR, RAY_START, "theirs b"]),
        ({"command": ["theirs", "a;"], "args": ["theirs", "b"]}, [EXECUTOR, RAY_START, "theirs a", "theirs b"]),
        ({"command": ["/bin/bash", "-c", "ray start --mine"]}, [EXECUTOR, "ray start --mine"]),
        ({"command": ["/bin/bash", "-c"], "args": ["ray start --mine"]}, [EXECUTOR, "ray start --mine"]),
        ({"template": OVERWRITE, "command": ["theirs", "a  b"], "args": ["c"]}, [EXECUTOR, "theirs a  b c"]),
    ],
)
def test_the_executor_runs_and_what_a_template_wants_too(said, theirs, runs):
    assert said(as_kuberay_runs_it(*head_container(**theirs))) == runs


@pytest.mark.parametrize(
    "theirs",
    [
        {"command": "theirs"},
        {"command": [1]},
        {"args": {"a": 1}},
        {"template": OVERWRITE, "args": ["only arguments of a command that the image has"]},
    ],
)
def test_what_cannot_be_put_together_is_left_as_it_is(theirs):
    container, _ = head_container(**theirs)
    wanted = {name: value for name, value in theirs.items() if name != "template"}
    assert {name: container[name] for name in ("command", "args") if name in container} == wanted


@pytest.mark.parametrize("spec", [{"containers": "x"}, {"containers": [1]}, {"containers": None}])
def test_a_template_that_is_no_pod_stops_nobody(spec):
    head_template({"spec": spec})
