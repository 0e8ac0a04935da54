"""The command line from outside the cluster, against real pods: a pool of two ranks that compute nothing."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cluster.command_line import CommandLine, read_until
from tests.cluster.kubectl import config_map, group, kubectl, manifest, pool
from tests.unit.client.browser import Browser
from workergroups.client import Cluster, Pool

RANKS = """
import time
from workergroups import Dispatch, Worker, register

class Sleeper(Worker):
    @register(Dispatch.ONE_TO_ALL)
    def greet(self):
        print("greetings from rank", self.rank, flush=True)

    @register(Dispatch.ONE_TO_ALL)
    def hang(self):
        time.sleep(600)
"""
HANG = """
import workergroups
ranks = workergroups.attach("tiny")
ranks.greet()
print("hanging", flush=True)
ranks.hang()
"""
GREET = "import workergroups; workergroups.attach('tiny').greet()"
TRAIN = """
import os, sys
from lib.model import SIZE
print(SIZE, sorted(os.listdir(".")), sys.argv[1:])
print({name: os.environ[name] for name in ("FLAVOUR", "COLOUR", "WG_NODES", "WG_PROCESSES_PER_NODE")})
sys.exit(7)
"""


# Of seed 001.
SQUARES = """
import ray
ray.init(log_to_driver=False)

@ray.remote
def example_task(x):
    return x * x

print(ray.get([example_task.remote(i) for i in range(10)]))
"""
RAY = str(Path(sys.executable).with_name("ray"))


@pytest.fixture(scope="module")
def run(namespace, tmp_path_factory):
    """The command, with a pool and a group on it, brought up by it."""
    folder = tmp_path_factory.mktemp("laptop")
    manifests = [
        group("tiny", worker={"class": "sleeper.Sleeper"}, code={"configMap": {"name": "sleeper"}}),
        pool("tiny", accelerator={"vendor": "none"}),
        config_map("sleeper", sleeper=RANKS),
    ]
    (folder / "all.yaml").write_text("\n---\n".join(map(json.dumps, manifests)))
    for name, text in {
        "train.py": TRAIN,
        "hang.py": HANG,
        "squares.py": SQUARES,
        "lib/__init__.py": "",
        "lib/model.py": "SIZE = 41",
        "notes.txt": "ignored by git",
        "weights.bin": "excluded",
        ".gitignore": "*.txt",
    }.items():
        path = folder / "code" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (folder / "env.yaml").write_text("env_vars: {FLAVOUR: mint}\nexcludes: ['*.bin']\n")
    # Where it is ignored, as in a script's background, children would ignore it too.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    command = CommandLine(namespace, folder)
    printed = command("up", "-f", "all.yaml")
    assert "pool tiny: HeadStarting: waiting for" in printed
    assert printed.endswith(("pool tiny: ready\n", "group tiny: ready\n"))
    return command


@pytest.fixture(scope="module")
def hanging(run):
    """A job whose call of the ranks does not return; its id."""
    job = run(
        "job", "submit", "tiny", "--working-dir=code", "--no-wait", "--", "python", "hang.py", stderr=None
    ).strip()
    printed = ""
    follower = run.start("job", "logs", job, "-f")
    for line in follower.stdout:
        printed += line
        if line == "hanging\n":
            break
    follower.send_signal(signal.SIGINT)
    rest, _ = follower.communicate(timeout=30)
    assert follower.returncode == 130, printed + rest
    # Off a terminal nobody is asked: it detaches, and says how to go on.
    assert f"workergroups job logs {job} -f -n {run.namespace.name}" in rest
    assert f"workergroups job stop {job} -n {run.namespace.name}" in rest
    return job


def test_a_job_has_its_files_its_environment_its_arguments_and_its_exit_code(run):
    printed = run(
        *("job", "submit", "tiny", "--working-dir=code", "--runtime-env=env.yaml", "--env", "COLOUR=green"),
        *("--", "python", "train.py", "trainer.logger=['console','wandb']"),
        code=7,
    )
    files = ["hang.py", "lib", "squares.py", "train.py"]
    assert f"""41 {[".gitignore", *files]} ["trainer.logger=['console','wandb']"]\n""" in printed
    seen = {"FLAVOUR": "mint", "COLOUR": "green", "WG_NODES": "1", "WG_PROCESSES_PER_NODE": "2"}
    assert f"{seen}\n" in printed
    assert "FAILED: Job entrypoint command failed with exit code 7\n" in printed


def test_a_job_can_be_listed_and_asked_for_after_its_end(run):
    job = run("job", "submit", "pool/tiny", "--no-wait", "--", "echo", "done", stderr=None).strip()
    assert "done\n" in run("job", "logs", job, "-f")
    assert "done\n" in run("job", "logs", "tiny")
    assert run.items("job", "status")[0]["id"] == job
    (listed,) = [each for each in run.items("job", "list", "tiny") if each["id"] == job]
    assert (listed["state"], listed["exitCode"], listed["entrypoint"]) == ("SUCCEEDED", 0, "echo done")
    assert f"there is no job {job}x in namespace {run.namespace.name}; did you mean {job}" in run(
        "job", "logs", f"{job}x", code=1
    )


@pytest.mark.parametrize("question", ["stacks", "calls"])
def test_it_says_within_10_s_where_a_group_hangs(run, hanging, question):
    started = time.monotonic()
    answer = run.json(question, "tiny")
    assert time.monotonic() - started < 10
    if question == "stacks":
        assert answer["stacks"].keys() == {"0", "1"}
        assert all(re.search(r"sleeper.py\", line \d+ in hang", stack) for stack in answer["stacks"].values())
    else:
        assert [(call["rank"], call["method"], call["state"]) for call in answer["calls"]] == [
            (0, "hang", "running"),
            (1, "hang", "running"),
        ]
    (group,) = answer["items"]
    assert (group["ranks"], group["suspect"]) == ("0-1", False)
    assert re.fullmatch(r"in sleeper.py:\d+ in hang", group["where"])


def test_what_ranks_print_is_told_by_rank(run, hanging):
    assert run("logs", "tiny") == "[rank 0] greetings from rank 0\n[rank 1] greetings from rank 1\n"
    assert run("logs", "tiny", "--rank", "1") == "[rank 1] greetings from rank 1\n"
    assert "there is no rank 2: the group has ranks 0-1" in run("logs", "tiny", "--rank", "2", code=1)
    assert "raylet.out\n" in run("logs", "tiny", "--node", "0")
    assert run("logs", "tiny", "--node", "0", "--file", "raylet.out")
    assert "error: no rank of group tiny has died since 20" in run("logs", "tiny", "--previous", code=1)


def test_on_a_terminal_ctrl_c_asks_whether_to_stop(run, hanging):
    terminal, other_end = pty.openpty()
    follower = run.start(
        "job", "logs", hanging, "-f", stdin=other_end, stdout=other_end, stderr=other_end, start_new_session=True
    )
    os.close(other_end)
    seen = read_until(terminal, "hanging")
    follower.send_signal(signal.SIGINT)
    seen += read_until(terminal, "Stop it, or detach? [s/D]")
    os.write(terminal, b"s\n")
    seen += read_until(terminal, f"job {hanging}: STOPPED")
    assert "ranks 0-1 are still in hang of group tiny" in seen
    assert follower.wait(30) == 130, seen
    run("job", "status", hanging, code=143)
    assert "STOPPED" in run("job", "stop", hanging)


def test_commands_run_on_the_head_at_a_rank_and_on_each_node_and_end_with_their_code(run):
    (worker,) = run.namespace.get("pods", selector="workergroups.dev/component=worker")
    node = worker["metadata"]["name"]
    assert run("exec", "tiny", "--", "hostname") == f"{run.namespace.head('tiny')}\n"
    assert run("exec", "tiny", "--rank", "1", "--", "hostname") == f"{node}\n"
    assert run("exec", "tiny", "--every-node", "--", "sh", "-c", "echo one; exit 3", code=3) == f"[{node}] one\n"


def test_any_tool_finds_ray_through_connect(run):
    ask = 'curl --silent --fail --header "Authorization: Bearer $RAY_AUTH_TOKEN" $RAY_ADDRESS/api/version; exit 9'
    assert '"ray_version"' in run("connect", "tiny", "--", "sh", "-c", ask, code=9)


def test_rays_own_command_submits_and_lists_jobs_through_connect(run):
    job = (RAY, "job", "submit", "--log-color=false", "--working-dir=code", "--", "python", "squares.py")
    printed = run("connect", "tiny", "--", *job)
    assert "[0, 1, 4, 9, 16, 25, 36, 49, 64, 81]\n" in printed
    assert "entrypoint='python squares.py'" in run("connect", "tiny", "--", RAY, "job", "list")


def test_the_dashboard_opens_logged_in_and_only_for_who_has_the_address(run):
    process = run.start("dashboard", "tiny", stderr=subprocess.PIPE, env={**os.environ, "PYTHONUNBUFFERED": "1"})
    address = process.stdout.readline().removeprefix("open ").strip()
    browser = Browser()
    answer, page = browser.get(address)
    assert (answer.status, b'content="0; url=/"' in page) == (200, True)
    site = address.rpartition("/")[0]
    assert b"<!doctype html>" in browser.get(f"{site}/")[1]
    assert browser.get(f"{site}/api/jobs/")[0].status == 200
    for asked in (f"{site}/api/jobs/", address):
        assert Browser().get(asked)[0].status == 403
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == 0


def test_status_shows_the_chain_the_pods_and_the_jobs(run):
    printed = run("status", "tiny")
    assert re.search(r"(?m)^ *0 +group tiny +\w+ +\d+ +0 +\d+", printed), printed
    assert "pool tiny in" in printed
    assert "1 of 1 nodes ready" in printed
    assert "2 of 2 ranks ready, incarnation 1" in printed
    for condition in ("ClusterReady", "NodesReady", "BundlesReserved", "PoolsReady", "RanksCreated", "RanksReady"):
        assert re.search(rf"  {condition} +True +for \d+", printed), printed
    assert run.namespace.head("tiny") in printed
    assert [each["ready"] for each in run.items("status")] == [True, True]


def test_ranks_are_recreated_when_asked_for(run):
    before = run.items("status", "group/tiny")
    assert "group tiny: incarnation 2\n" in run("restart", "tiny")
    after = run.items("status", "group/tiny")
    assert [status["ready"] for status in (*before, *after)] == [True, True]


def test_what_ranks_printed_before_they_were_made_anew_is_kept(run):
    printed = run("logs", "tiny", "--previous", "--rank", "1")
    head = r"rank 1 of incarnation 1 died in pod tiny-\S+ at 20\d\d-\d\d-\d\d \d\d:\d\d:\d\d UTC\nRemoved: .+\n"
    assert re.fullmatch(f"{head}\\[rank 1] greetings from rank 1\n", printed), printed


def test_the_client_has_the_same_as_functions(run):
    with Pool("tiny", Cluster(run.namespace.name)) as found:
        job = found.submit(["python", "train.py"], working_dir=run.folder / "code", env={"FLAVOUR": "", "COLOUR": ""})
        assert job.wait(60).exit_code == 7
        assert job.id in [record.id for record in found.jobs()]
        assert b"41 [" in b"".join(job.logs())
        assert found.status.is_ready


def test_a_wrong_name_is_reported_with_near_ones(run):
    wrong = f"error: there is no pool or group tinny in namespace {run.namespace.name}; did you mean tiny?\n"
    assert run("status", "tinny", code=1) == wrong
    assert "names a pool, but this needs a group" in run("stacks", "pool/tiny", code=1)


def test_no_cluster_is_one_sentence_without_a_traceback(run, tmp_path):
    known = json.loads(kubectl("config", "view", "--raw", "--minify", "-o", "json"))
    known["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:9"
    path = Path(tmp_path / "kubeconfig")
    path.write_text(json.dumps(known))
    printed = run("status", code=1, env={**os.environ, "KUBECONFIG": str(path)})
    assert printed.startswith("error: the API server at https://127.0.0.1:9 (context ")
    assert "does not answer: Connection refused. Check that" in printed
    assert printed.count("\n") == 1


def test_what_kubectl_holds_is_taken_over_only_when_asked_for(run):
    run.namespace.run("create", "configmap", "held", "--from-literal=key=kubectl")
    held = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "held"}, "data": {"key": "up"}}
    refused = run("up", "-f", "-", input=json.dumps(held), code=1)
    assert refused.startswith("error: ConfigMap held: Apply failed with 1 conflict: ")
    assert refused.endswith("up takes these fields over, and changes data.key: kubectl -> up\n")
    run("up", "-f", "-", "--force-conflicts", input=json.dumps(held))
    assert run.namespace.get("configmap", "held")["data"] == {"key": "up"}


def test_what_cannot_become_ready_ends_up_with_1_and_the_reason(run):
    lost = manifest("WorkerGroup", "lost", {"pools": [{"name": "tiny"}], "worker": {"class": "absent.Class"}})
    (run.folder / "lost.yaml").write_text(json.dumps(lost))
    printed = run("up", "-f", "lost.yaml", code=1)
    assert "error: group lost will not become ready: LaunchFailed: " in printed
    assert "No module named 'absent'" in printed


def test_what_a_rank_printed_outlives_its_pod(run):
    run("job", "submit", "tiny", "--", "python", "-c", GREET)
    run.namespace.until(lambda: run("logs", "tiny", "--rank", "1"), lambda printed: "greetings" in printed, 10)
    time.sleep(1)  # Ray's log monitor looks ten times in a second
    (worker,) = run.namespace.get("pods", selector="workergroups.dev/component=worker")
    node = worker["metadata"]["name"]
    run.namespace.run("delete", "pod", node, "--force", "--grace-period=0")
    printed = run.namespace.until(
        lambda: run("logs", "tiny", "--previous", "--rank", "1"), lambda printed: "incarnation 2" in printed, 120
    )
    assert printed.startswith(f"rank 1 of incarnation 2 died in pod {node} at 20"), printed
    assert printed.endswith("[rank 1] greetings from rank 1\n"), printed


def test_status_shows_which_part_of_each_device_the_ranks_have(run):
    manifests = [
        group("gpus", worker={"class": "sleeper.Sleeper"}, code={"configMap": {"name": "sleeper"}}),
        pool("gpus"),
    ]
    (run.folder / "gpus.yaml").write_text("\n---\n".join(map(json.dumps, manifests)))
    run("up", "-f", "gpus.yaml")
    printed = run("status", "gpus")
    assert re.search(r"(?m)^ *0 +group gpus +Sleeper +2 +2 x 0\.1 +\d+", printed), printed
    run("down", "gpus", "--yes")


def test_down_asks_and_takes_the_groups_with_the_pool(run):
    assert "add --yes" in run("down", "tiny", code=2, stdin=subprocess.DEVNULL)
    printed = run("down", "tiny", "--yes")
    assert [line for line in printed.splitlines() if line.startswith("  ")] == [
        "  group lost",
        "  group tiny",
        "  pool tiny with its pods and all jobs in them",
    ]
    assert printed.splitlines()[-2:] == [
        "group lost, group tiny, pool tiny deleted",
        "ConfigMap sleeper with the code stays; if it is not needed: kubectl delete configmap sleeper "
        f"-n {run.namespace.name}",
    ]
    assert run.namespace.get("pods") == []
