"""The set-up script of a pool: which pods run it, what it sees, and what is said when it fails."""

import re
import subprocess

import pytest

from tests.unit.operator.make import SETTINGS, observed, pod, pool, status_of
from workergroups_api.conditions import find
from workergroups_operator.policy.pod_trouble import pod_trouble
from workergroups_operator.templates import templates_of

PATH = {"name": "PATH", "value": "/venv/bin:/usr/local/bin:/usr/bin:/bin"}
PREPARED = {
    "setup": {"script": "uv venv /venv"},
    "env": [PATH],
    "volumes": [{"mountPath": "/venv", "emptyDir": {}}],
    "resources": {"requests": {"cpu": 4}},
}


def ray_pods(**spec):
    """The pods of the head and of a node, by the name of Ray's container."""
    made = templates_of(observed(pools=(pool(**spec),), pods=()), SETTINGS)
    (node,) = made.workers.values()
    return {each["spec"]["containers"][0]["name"]: each["spec"] for each in (made.head, node)}


def first(pod_):
    return {each["name"]: each for each in pod_["initContainers"]}


def command_of(script, seconds=30):
    container = first(ray_pods(setup={"script": script, "timeoutSeconds": seconds})["ray-worker"])["run-setup"]
    # Kubernetes replaces `$(NAME)`, and writes `$` for `$$`.
    assert not re.search(r"(?<!\$)(?:\$\$)*\$\(", " ".join(container["command"]))
    return [word.replace("$$", "$") for word in container["command"]]


def run(script, seconds=30):
    return subprocess.run(command_of(script, seconds), capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(
    ("pods", "in_"),
    [
        (None, {"ray-head", "ray-worker"}),
        ("All", {"ray-head", "ray-worker"}),
        ("Nodes", {"ray-worker"}),
        ("Head", {"ray-head"}),
    ],
)
def test_the_pods_that_are_asked_for_run_the_script(pods, in_):
    setup = {"script": "true"} | ({} if pods is None else {"pods": pods})
    assert {name for name, spec in ray_pods(setup=setup).items() if "run-setup" in first(spec)} == in_
    assert not any("run-setup" in first(spec) for spec in ray_pods().values())


@pytest.mark.parametrize("name", ["ray-head", "ray-worker"])
def test_it_runs_before_the_check_like_rays_container(name):
    spec = ray_pods(**PREPARED)[name]
    assert list(first(spec)) == ["workergroups-library", "run-setup", "check-image"]
    (ray,), setup = spec["containers"], first(spec)["run-setup"]
    assert (setup["image"], setup["resources"]) == (ray["image"], ray["resources"])
    assert PATH in setup["env"]
    assert [each["mountPath"] for each in setup["volumeMounts"]][:2] == ["/venv", "/dev/shm"]


def test_the_check_finds_the_python_that_the_script_has_installed():
    check = first(ray_pods(**PREPARED)["ray-worker"])["check-image"]
    assert check["env"] == [PATH]
    assert check["command"][0] == "python3"
    assert "/venv" in [each["mountPath"] for each in check["volumeMounts"]]


def test_a_users_template_applies_to_it():
    template = {"spec": {"containers": [{"name": "ray-worker", "securityContext": {"runAsUser": 7}}]}}
    assert first(ray_pods(**PREPARED, podTemplate=template)["ray-worker"])["run-setup"]["securityContext"] == {
        "runAsUser": 7
    }


@pytest.mark.parametrize(
    ("script", "code", "output"),
    [
        ('echo "$HOME" $(echo in) $$; a=b; echo "${a}"', 0, "in"),
        ("false; echo unreached", 1, ""),
        ("false | true; echo unreached", 1, ""),
        ("echo one\nexit 3", 3, "one"),
        ("echo 'a $(b) $$(c)'", 0, "a $(b) $$(c)"),
    ],
)
def test_it_stops_at_the_first_command_that_fails(script, code, output):
    done = run(script)
    assert done.returncode == code
    assert output in done.stdout
    assert "unreached" not in done.stdout
    assert done.stderr == ""


def test_it_has_a_deadline():
    done = run("echo begun; sleep 50", seconds=1)
    assert (done.returncode, done.stdout) == (124, "begun\n")
    assert done.stderr == "spec.setup: ended after 1 s, its timeoutSeconds\n"


def ran(state, last=None):
    found = pod("worker", "actors-0", phase="Pending")
    status = {"name": "run-setup", "image": "theirs:1", "state": state} | ({"lastState": last} if last else {})
    found["status"]["initContainerStatuses"] = [status]
    return pod_trouble(found)


def ended(code, message=""):
    return {"terminated": {"exitCode": code, "reason": "Error" if code else "Completed", "message": message}}


@pytest.mark.parametrize(
    ("state", "last"),
    [
        (ended(2, "no route\nto the index\n"), None),
        ({"waiting": {"reason": "CrashLoopBackOff"}}, ended(2, "no route\nto the index\n")),
        ({"running": {}}, ended(2, "no route\nto the index\n")),
    ],
)
def test_a_failed_script_is_explained_with_its_last_lines(state, last):
    trouble = ran(state, last)
    assert trouble.reason == "SetupFailed"
    assert trouble.message == ("pod actors-0: spec.setup ended with exit code 2, and runs again: no route to the index")


def test_of_long_output_the_end_is_quoted():
    assert ran(ended(1, "begin " + "x " * 2000 + "the cause")).message.endswith("x x the cause")
    assert "begin" not in ran(ended(1, "begin " + "x " * 2000 + "the cause")).message
    assert ran(ended(1)).message.endswith("it has printed nothing")


@pytest.mark.parametrize(("state", "last"), [({"running": {}}, None), (ended(0), ended(1, "once")), (ended(0), None)])
def test_a_script_that_runs_or_has_worked_in_the_end_is_no_trouble(state, last):
    assert ran(state, last) is None


def prepares(component, name, minute):
    """A pod whose script runs since this minute, or which has not begun."""
    found = pod(component, name, phase="Pending")
    running = {"running": {"startedAt": f"2026-01-01T11:{minute}:00Z"}} if minute else {"waiting": {}}
    found["status"]["initContainerStatuses"] = [{"name": "run-setup", "image": "theirs:1", "state": running}]
    return found


def condition(type_, *pods):
    return find(status_of(observed(pools=(pool(**PREPARED),), pods=pods)).after.conditions, type_)


@pytest.mark.parametrize(
    ("minutes", "words"),
    [
        (
            (58, 57),
            "spec.setup runs in pod b since 2026-01-01T11:57:00Z and in 1 more: to see its output, kubectl logs b",
        ),
        ((58, None), "0 of 2 nodes joined Ray: spec.setup runs in pod a since 2026-01-01T11:58:00Z: to see its output"),
    ],
)
def test_while_nodes_wait_for_the_script_the_status_says_since_when(minutes, words):
    nodes = [prepares("worker", name, minute) for name, minute in zip("ab", minutes, strict=True)]
    found = condition("NodesReady", pod("head"), *nodes)
    assert (found.status, found.reason) == ("False", "SettingUp")
    assert words in found.message


def test_while_the_head_waits_for_the_script_the_status_says_since_when():
    found = condition("ClusterReady", prepares("head", "h", 58))
    assert (found.reason, found.status) == ("SettingUp", "False")
    assert found.message.startswith("head: spec.setup runs in pod h since 2026-01-01T11:58:00Z")
