"""What the command line asks of nodes, and hands to programs there: check, exec with input, variables of Secrets."""

import hashlib
import json
import os
import pty
import re
import subprocess
import termios
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.cluster.command_line import CommandLine, read_until
from tests.cluster.kubectl import kubectl, pool
from tests.cluster.packages import mounted
from workergroups.client import Cluster, Pool
from workergroups_common.ranges import expanded

PACKAGES = mounted(Path(find_spec("torch").origin).parents[1])
SETTINGS = {
    "accelerator": {"vendor": "none"},
    "clusterName": "nodes",
    "sharedMemory": "96Mi",
    "env": PACKAGES["env"],
}
# A ConfigMap's volume cannot be written to, whatever the pool says.
SCRATCH = {"mountPath": "/scratch", "emptyDir": {}}
SETTINGS_VOLUME = {"mountPath": "/settings", "configMap": {"name": "accumulator"}}
VALUE = "a 'quoted' \"value\" of $HOME\nin two lines"


@pytest.fixture(scope="module")
def run(namespace, tmp_path_factory):
    """The command, and two pools on one Ray cluster: one with a volume that cannot be written, one without bundles."""
    folder = tmp_path_factory.mktemp("laptop")
    volumes = [*PACKAGES["volumes"], SCRATCH]
    manifests = [
        pool("pair", nodes=2, processes=1, volumes=[*volumes, SETTINGS_VOLUME], **SETTINGS),
        pool("free", reservation="None", volumes=volumes, **SETTINGS),
    ]
    (folder / "all.yaml").write_text("\n---\n".join(map(json.dumps, manifests)))
    namespace.apply(
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"}, "stringData": {"KEY": VALUE, "OTHER": "x"}}
    )
    command = CommandLine(namespace, folder)
    command("up", "-f", "all.yaml")
    return command


def wrong(said):
    return {each["subject"]: each["message"] for each in said["items"] if not each["isWell"]}


def test_a_pool_whose_nodes_have_what_it_asks_for_is_well(run):
    printed = run("check", "free")
    assert re.search(r"(?m)^nodes +ok +1 of 1 have joined Ray and answer$", printed), printed
    assert re.search(r"(?m)^/dev/shm +ok +0\.0938 GiB$", printed)
    assert re.search(r"(?m)^volumes +ok +each node can write to /scratch$", printed)
    assert re.search(r"(?m)^torch +ok +\d", printed)


def test_what_is_wrong_is_reported_with_the_node_and_the_rest_continues(run):
    said = run.json("check", "pair", "--fabric", code=1)
    nodes = [each["node"] for each in said["answer"]["nodes"]]
    assert len(nodes) == 2
    assert wrong(said) == {
        "volumes": "; ".join(f"{node} cannot write to /settings: Read-only file system" for node in nodes)
    }
    assert said["answer"]["all_reduce"]["backend"] == "gloo"
    assert said["answer"]["all_reduce"]["processes"] == 2
    connections = [each for each in said["items"] if each["subject"] == "connections"]
    assert connections[0]["isWell"]


def test_on_a_pool_that_reserves_nothing_an_all_reduce_leaves_nothing_behind(run):
    with Pool("free", Cluster(run.namespace.name)) as found:
        made = found.check(fabric=True)
        assert made.is_well, made.findings
        assert made.answer["all_reduce"]["processes"] == 2
    left = run("exec", "free", "--", "ray", "list", "placement-groups", "--filter", "state=CREATED", "--format", "json")
    assert all(placed["name"].startswith("pair/") for placed in json.loads(left[left.index("[") :]))


def test_ray_says_itself_what_it_has(run):
    assert "Node status" in run("status", "pair", "--ray")
    assert "Node status" in run.items("status", "pair", "--ray")[0]["rayStatus"]
    assert "rayStatus" not in run.items("status", "pair")[0]


def test_a_command_reads_what_is_piped_in_and_every_byte_arrives(run):
    data = os.urandom(3 << 20)
    process = run.start("exec", "pair", "-i", "--", "sha256sum", stdin=subprocess.PIPE, stderr=None, text=False)
    printed, _ = process.communicate(data, timeout=60)
    assert (process.returncode, printed.split()[0].decode()) == (0, hashlib.sha256(data).hexdigest())


def test_what_comes_back_at_once_does_not_hold_up_what_goes_in(run):
    data = os.urandom(8 << 20)
    process = run.start("exec", "pair", "-i", "--", "cat", stdin=subprocess.PIPE, stderr=None, text=False)
    printed, _ = process.communicate(data, timeout=120)
    assert process.returncode == 0
    assert printed == data


def test_a_command_that_wants_no_more_input_ends(run):
    process = run.start("exec", "pair", "-i", "--", "sh", "-c", "head -c 3 | wc -c; exit 4", stdin=subprocess.PIPE)
    process.stdin.write("x" * 100_000)
    process.stdin.flush()
    assert (process.wait(30), process.stdout.read()) == (4, "3\n")


def test_a_shell_has_the_terminal_and_afterwards_it_is_as_it_was(run):
    terminal, other_end = pty.openpty()
    termios.tcsetwinsize(terminal, (31, 97))
    before = termios.tcgetattr(other_end)
    shell = run.start(
        *("exec", "-it", "pair", "--", "sh"),
        stdin=other_end,
        stdout=other_end,
        stderr=other_end,
        start_new_session=True,
    )
    seen = read_until(terminal, "$ ")
    os.write(terminal, b"stty size\n")
    seen += read_until(terminal, "31 97")
    termios.tcsetwinsize(terminal, (20, 60))
    os.write(terminal, b"sleep 1.5; stty size\n")
    seen += read_until(terminal, "20 60")
    os.write(terminal, b"sleep 600\n")
    seen += read_until(terminal, "sleep 600")
    os.write(terminal, b"\x03exit 5\n")  # Ctrl-C ends what runs there, not this
    assert shell.wait(30) == 5, seen
    assert termios.tcgetattr(other_end) == before


def test_a_job_has_a_secrets_variables_and_nobody_sees_them(run):
    program = f"import os; print(os.environ['KEY'] == {VALUE!r}, os.environ['OTHER'])"
    job = run(
        *("job", "submit", "pair", "--env-from", "secret/keys", "--env", "OTHER=mine", "--no-wait"),
        *("--", "python", "-c", program),
        stderr=None,
    ).strip()
    assert run("job", "logs", job, "-f", stderr=None).endswith("\nTrue mine\n")
    assert in_memory(run) == []


WHERE = "import os, ray; ray.init(); print(os.uname().nodename, os.environ['OTHER'], len(ray.nodes()))"


def test_a_driver_on_a_node_has_what_the_nodes_pod_has(run):
    pods = expanded(run.namespace.get("resourcepool", "pair")["status"]["reservation"]["pods"])
    for number, pod in enumerate(pods):
        job = (
            "job",
            "submit",
            "pair",
            "--node",
            str(number),
            "--env-from",
            "secret/keys:OTHER",
            "--name",
            f"on-{number}",
        )
        printed = run(*job, "--", "python", "-c", WHERE)
        assert f"\n{pod} x 4\n" in printed, printed
    assert in_memory(run) == []
    refused = run("job", "submit", "pair", "--node", "2", "--", "true", code=1)
    assert "pool pair has no node 2 in Ray: choose from 0, 1" in refused


def test_no_record_of_the_job_has_the_values(run):
    hidden = "only-in-the-secret-7f3a"
    run.namespace.run("create", "secret", "generic", "hidden", f"--from-literal=TOKEN={hidden}")
    printed = run(
        *("job", "submit", "pair", "--env-from", "secret/hidden:TOKEN", "--name", "hiding"),
        *("--", "sh", "-c", "test ${#TOKEN} = 23 && echo it is there; ls /dev/shm | grep -c workergroups-env"),
        code=1,
    )
    assert "it is there\n0\n" in printed
    of_ray = run(
        "connect", "pair", "--", "sh", "-c", 'curl -s -H "Authorization: Bearer $RAY_AUTH_TOKEN" $RAY_ADDRESS/api/jobs/'
    )
    assert "hiding" in of_ray
    logs = run("exec", "pair", "--", "sh", "-c", f"grep -r {hidden} /tmp/ray/session_latest/ /dev/shm; true")
    for seen in (
        printed,
        of_ray,
        logs,
        run("job", "list", "pair", "-o", "json"),
        run("job", "status", "hiding", code=1),
    ):
        assert hidden not in seen


def test_a_job_that_is_refused_leaves_no_value_on_the_head(run):
    run("job", "submit", "pair", "--name", "twice", "--", "true")
    printed = run("job", "submit", "pair", "--env-from", "secret/keys", "--name", "twice", "--", "true", code=1)
    assert "pool pair has a job twice already: choose another id (--name)" in printed
    assert in_memory(run) == []


def test_a_wrong_secret_is_reported_with_near_ones(run):
    printed = run("job", "submit", "pair", "--env-from", "secret/key", "--", "true", code=1)
    assert "there is no Secret key in namespace" in printed
    assert "did you mean keys?" in printed


def test_who_may_not_read_the_secret_is_reported(run, tmp_path):
    in_namespace = run.namespace.run
    in_namespace("create", "serviceaccount", "limited")
    in_namespace("create", "role", "limited", "--verb=get", "--resource=resourcepools,workergroups")
    in_namespace("create", "rolebinding", "limited", "--role=limited", f"--serviceaccount={run.namespace.name}:limited")
    known = json.loads(kubectl("config", "view", "--raw", "--minify", "-o", "json"))
    known["users"][0]["user"] = {"token": in_namespace("create", "token", "limited").strip()}
    (tmp_path / "kubeconfig").write_text(json.dumps(known))
    as_limited = {**os.environ, "KUBECONFIG": str(tmp_path / "kubeconfig")}
    printed = run("job", "submit", "pair", "--env-from", "secret/keys", "--", "true", code=1, env=as_limited)
    # The Secret with Ray's token comes first. It has the cluster's name.
    assert 'secrets "nodes" is forbidden' in printed


def test_a_node_that_is_gone_is_missed(run):
    (first, _) = run.namespace.get("pods", selector="workergroups.dev/pool=pair")
    machine = first["spec"]["nodeName"]
    # Otherwise the pod is replaced before a check has looked.
    kubectl("cordon", machine)
    try:
        run.namespace.run("delete", "pod", first["metadata"]["name"], "--wait=false")
        run.namespace.until(
            lambda: run("check", "pair", code=1), lambda printed: "1 of 2 have joined Ray" in printed, seconds=60
        )
    finally:
        kubectl("uncordon", machine)


def in_memory(run):
    return run("exec", "pair", "--", "sh", "-c", "ls /dev/shm | grep workergroups-env; true").splitlines()
