"""breakpoint() and post-mortem in ranks on pods, from outside the cluster."""

import json
import re
import time
from datetime import datetime

import pytest

from tests.cluster.command_line import CommandLine
from tests.cluster.dial import dial
from tests.cluster.kubectl import config_map, group, pool
from workergroups.debugger.dap import Attached

RANKS = """
from workergroups import Dispatch, Worker, register

class Stopper(Worker):
    @register(Dispatch.ONE_TO_ALL)
    def step(self, rank):
        total = 40
        if self.rank == rank:
            breakpoint()
        total += 1
        return total

    @register(Dispatch.ONE_TO_ALL)
    def fail(self):
        wanted = "plums"
        if self.rank == 1:
            raise LookupError("no " + wanted)
"""
STEP = """
import workergroups
print(workergroups.attach("stops").step(2))
"""
FAIL = """
import workergroups
workergroups.attach("stops").fail()
"""
LISTED_SECONDS = 5


@pytest.fixture(scope="module")
def run(namespace, tmp_path_factory):
    """The command, with a group of four ranks on two nodes."""
    folder = tmp_path_factory.mktemp("laptop")
    manifests = [
        pool("stops", nodes=2, accelerator={"vendor": "none"}),
        config_map("stopper", stopper=RANKS),
        stopping(),
    ]
    (folder / "all.yaml").write_text("\n---\n".join(map(json.dumps, manifests)))
    (folder / "jobs").mkdir()
    (folder / "jobs" / "step.py").write_text(STEP)
    (folder / "jobs" / "fail.py").write_text(FAIL)
    command = CommandLine(namespace, folder)
    command("up", "-f", "all.yaml")
    return command


def stopping(**spec):
    return group("stops", worker={"class": "stopper.Stopper"}, code={"configMap": {"name": "stopper"}}, **spec)


def start(run, program):
    """A job that calls the ranks; its id."""
    words = ("job", "submit", "stops", "--working-dir=jobs", "--no-wait", "--", "python", f"{program}.py")
    return run(*words, stderr=None).strip()


def pauses(run, seconds=60):
    """The ranks that wait for a debugger, once one can attach to them; and when they were listed."""
    deadline = time.monotonic() + seconds
    while True:
        listed = run.items("debug", "stops")
        if listed and all(pause.get("port") for pause in listed):
            return listed, time.time()
        assert time.monotonic() < deadline, run("status", "stops")
        time.sleep(0.2)


def ready(run):
    condition = run.namespace.ready("workergroup", "stops")
    return condition["status"], condition["reason"]


def goes_on(run, job, words, code=0):
    """The job ends, and the group is as it was."""
    assert words in run("job", "logs", job, "-f", code=code)
    run.namespace.until(lambda: ready(run), lambda seen: seen == ("True", "RanksReady"), 10)


def test_a_rank_at_a_breakpoint_is_listed_and_an_editor_lets_it_continue(run):
    job = start(run, "step")
    (pause,), listed = pauses(run)
    assert listed - datetime.fromisoformat(pause["since"]).timestamp() < LISTED_SECONDS
    assert (pause["rank"], pause["attached"]) == (2, False)
    assert re.search(r"stopper\.py:\d+ in Stopper\.step$", pause["where"])
    run.namespace.until(lambda: ready(run), lambda seen: seen == ("True", "PausedByDebugger"), LISTED_SECONDS)
    assert (
        "rank 2 waits for a debugger at /tmp/workergroups/code/"
        in run.namespace.ready("workergroup", "stops")["message"]
    )
    with run.start("debug", "stops", "--rank", "2") as command:
        assert command.stdout.readline().startswith("rank 2 is paused at ")
        port = int(command.stdout.readline().removeprefix("127.0.0.1:"))
        editor = Attached(port)
        thread = editor.wait_until_stopped()
        frame = editor.frames(thread)[0]
        assert (frame.name, editor.evaluate("self.rank, total", frame)) == ("step", "(2, 40)")
        run.namespace.until(lambda: ready(run), lambda seen: seen == ("True", "DebuggerAttached"), LISTED_SECONDS)
        editor.ask("continue", threadId=thread)
        editor.close()
        rest, _ = command.communicate(timeout=30)
        assert rest.endswith("rank 2 continues\n")
        assert command.returncode == 0
    (written,) = json.loads((run.folder / ".vscode" / "launch.json").read_text())["configurations"]
    assert written["connect"]["port"] == port
    assert pause["where"].startswith(written["pathMappings"][0]["remoteRoot"])
    goes_on(run, job, "[41, 41, 41, 41]")


def test_no_other_pod_reaches_a_paused_rank_and_the_prompt_does(run):
    job = start(run, "step")
    (pause,), _ = pauses(run)
    address = run.namespace.get("pod", pause["pod"])["status"]["podIP"]
    assert run("exec", "stops", *dial(address, pause["port"])) == "ConnectionRefusedError\n"
    assert "no rank of group" not in run("debug", "stops")
    assert "rank 1 of group stops does not wait for a debugger; paused: rank 2" in run(
        "debug", "stops", "--rank", "1", code=1
    )
    shown = run("debug", "stops", "--pdb", input="p total\ntotal = 70\nc\n")
    assert "(rank 2) 40\n" in shown
    goes_on(run, job, "[41, 41, 71, 41]")


def test_ranks_made_anew_are_not_paused(run):
    job = start(run, "step")
    pauses(run)
    run("restart", "stops")
    assert run.items("debug", "stops") == []
    goes_on(run, job, "IncarnationReplacedError", code=1)


def test_an_exception_is_looked_at_before_it_leaves_a_rank(run):
    run("up", "-f", "-", input=json.dumps(stopping(debug="PostMortem")))
    job = start(run, "fail")
    (pause,), _ = pauses(run)
    assert pause["where"].endswith("in Stopper.fail after LookupError: no plums")
    shown = run("debug", "stops", "--pdb", "--rank", "1", input="p wanted\nq\n")
    assert "(rank 1) 'plums'\n" in shown
    goes_on(run, job, "LookupError: no plums", code=1)
