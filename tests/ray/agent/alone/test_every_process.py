"""Whatever runs in Ray can be asked what it does: plain actors, tasks and drivers, of any program and namespace."""

import ctypes
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import ray
from ray._private import services
from ray.cluster_utils import Cluster

from workergroups.answering import answer_command
from workergroups.debugger.dap import Attached
from workergroups_agent.ray_start import our_start_process
from workergroups_client.errors import NotFoundError
from workergroups_client.objects.names import POOL, Target
from workergroups_client.pods import pauses
from workergroups_client.pods.pauses import Pauses
from workergroups_client.pods.pods import PodContainer
from workergroups_client.pods.processes import Processes


@pytest.fixture(scope="module")
def processes(ray_environment, rays):
    """All processes of a raylet that starts them as it does in pods, as the command line asks for them."""
    rays.stop()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(services, "start_ray_process", our_start_process(services.start_ray_process))
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False})
        patch.setenv("RAY_ADDRESS", cluster.address)
        ray.init(address=cluster.address, log_to_driver=False)
        yield Processes(socket.gethostname(), [socket.gethostname()], ask)
        ray.shutdown()
        cluster.shutdown()


def ask(pod, module, *words):
    """What a program answers that the command line runs in a pod."""
    command = answer_command(f"workergroups.processes.{module}", words)
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    said = json.loads(subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True).stdout)
    return said["answer"]


@ray.remote(num_cpus=0)
class Rollout:
    def hang(self):
        time.sleep(600)

    def hang_in_c(self):
        mutex, library = ctypes.create_string_buffer(64), ctypes.PyDLL(None)  # which keeps the interpreter's lock
        for _ in range(2):
            library.pthread_mutex_lock(mutex)

    def opened(self):
        """What the process has opened, and how many of its threads run Python."""
        files = [os.readlink(each) for each in Path("/proc/self/fd").iterdir() if each.exists()]
        return files, len(sys._current_frames())

    def die(self, words):
        print(words, flush=True)
        os._exit(3)


@ray.remote(num_cpus=0)
class TaskRunner:
    def run(self, rollout):
        return ray.get(rollout.hang.remote())


@ray.remote(num_cpus=0)
class Loader:
    def __init__(self):
        time.sleep(600)


@ray.remote(num_cpus=0)
def fit(runner, rollout):
    return ray.get(runner.run.remote(rollout))


def hung(processes, target, *methods):
    """What the processes of the target do once they have reported these calls, which each does once a second."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        try:
            found = processes.activity(target)
        except NotFoundError:
            continue
        known = {call.name for call in found.calls if call.state == "running" and call.caller and call.callee}
        if known.issuperset(methods):
            return found
    raise TimeoutError(methods)


@ray.remote(num_cpus=0)
class Engine:
    """As of an inference engine, what computes is a process of its own, which Ray does not know."""

    def __init__(self):
        self.core = subprocess.Popen([sys.executable, "-c", CORE], stdout=subprocess.PIPE)
        self.core.stdout.readline()

    def core_pid(self):
        return self.core.pid


CORE = """
import subprocess, time
def compute():
    helper = subprocess.Popen(["sleep", "600"])
    print("computes", flush=True)
    time.sleep(600)
compute()
"""


def test_hanging_actors_and_tasks_show_their_stacks_and_who_waits_for_whom(processes):
    rollout = Rollout.remote()
    runner = TaskRunner.options(name="runner", namespace="anybody").remote()
    fit.remote(runner, rollout)
    found = hung(processes, "all", "fit", "TaskRunner.run", "Rollout.hang")

    job = ray.get_runtime_context().get_job_id()
    own = [process for process in found.processes if process.job == job]  # the machine may have other Ray clusters
    labels = {process.id: process.label for process in own}
    assert {(each.kind, each.label, each.name) for each in own} == {
        ("driver", "driver", ""),
        ("task", "fit", ""),
        ("actor", "TaskRunner", "runner"),
        ("actor", "Rollout", ""),
    }
    waits = {(labels[call.caller], labels[call.callee]) for call in found.calls}
    assert waits == {("driver", "fit"), ("fit", "TaskRunner"), ("TaskRunner", "Rollout")}
    assert [labels[id_] for id_ in found.ends] == ["Rollout"]
    stacks = {label: found.stacks[id_] for id_, label in labels.items()}
    assert "in hang\n" in stacks["Rollout"]
    assert "in run\n" in stacks["TaskRunner"]
    assert "in fit\n" in stacks["fit"]

    by_name = processes.activity("actor/runner")
    assert [each.label for each in by_name.processes] == ["TaskRunner"]
    assert {each.label for each in by_name.others} == {"fit", "Rollout"}
    assert len(processes.find(f"job/{job}")) == 4
    with pytest.raises(NotFoundError, match="there are Rollout, TaskRunner, runner"):
        processes.find("actor/Runner")
    ray.kill(rollout)
    ray.kill(runner)


def test_an_actor_that_hangs_in_c_with_pythons_lock_shows_its_stack(processes):
    rollout = Rollout.options(name="in C").remote()
    rollout.hang_in_c.remote()
    found = hung(processes, "actor/in C", "Rollout.hang_in_c")
    assert "in hang_in_c\n" in found.stacks[found.processes[0].id]
    ray.kill(rollout)


def test_an_actor_that_hangs_in_its_constructor_shows_its_stack(processes):
    loader = Loader.remote()
    found = hung(processes, "actor/Loader", "Loader.__init__")
    (process,) = found.processes
    assert "in __init__\n" in found.stacks[process.id]
    ray.kill(loader)


def test_a_process_that_nobody_asks_has_no_file_and_no_thread_of_ours(processes):
    rollout = Rollout.options(name="idle").remote()
    before = ray.get(rollout.opened.remote())
    assert not [each for each in before[0] if "workergroups" in each]
    (stack,) = processes.activity("actor/idle").stacks.values()
    assert stack.startswith("Current thread")
    files, threads = ray.get(rollout.opened.remote())
    assert len([each for each in files if "workergroups" in each]) == 1
    assert threads == before[1]
    ray.kill(rollout)


@ray.remote(num_cpus=0)
def stop_here(total):
    breakpoint()
    return total


@pytest.fixture
def paused(processes, monkeypatch):
    """The processes that are paused, as `debug` asks for them."""
    monkeypatch.setattr(pauses, "head", lambda *_: PodContainer(socket.gethostname(), "ray-head"))
    monkeypatch.setattr(pauses, "ask_for_processes", lambda _, container, *words: ask(container.pod, *words))
    return Pauses(None, Target(POOL, {}), "all")


def test_a_breakpoint_in_a_plain_task_waits_on_the_loopback_and_a_debugger_lets_it_continue(paused):
    call = stop_here.remote(40)
    found, deadline = paused.now(), time.monotonic() + 120
    while not found or not found[0].port:
        assert time.monotonic() < deadline
        found = paused.changed()
    (pause,) = found
    assert (pause.who, pause.pod) == ("task stop_here", socket.gethostname())
    assert pause.where.endswith(" in stop_here")
    listening = subprocess.run(["cat", "/proc/net/tcp", "/proc/net/tcp6"], capture_output=True, text=True).stdout
    addresses = [line.split()[1] for line in listening.splitlines() if line.split()[3] == "0A"]
    assert [each for each in addresses if each.endswith(f":{pause.port:04X}")] == [f"0100007F:{pause.port:04X}"]
    editor = Attached(pause.port)
    thread = editor.wait_until_stopped()
    frame = editor.frames(thread)[0]
    assert (frame.name, editor.evaluate("total", frame)) == ("stop_here", "40")
    editor.ask("continue", threadId=thread)
    editor.close()
    assert ray.get(call) == 40
    paused.changed()
    assert paused.now() == []


def test_the_last_lines_of_an_actor_that_died_are_kept_with_the_reason(processes):
    doomed = Rollout.options(name="doomed").remote()
    with pytest.raises(ray.exceptions.RayActorError):
        ray.get(doomed.die.remote("the end"))
    ((dead, text),) = processes.previous_logs("actor/doomed")
    assert (dead.actor.class_name, dead.pod, dead.reason) == ("Rollout", socket.gethostname(), "ProcessDied")
    assert text == "the end\n"
    with pytest.raises(NotFoundError, match="there is no process of actor/other"):
        processes.previous_logs("actor/other")


def test_the_lines_of_a_process_that_runs_are_read_too(processes):
    rollout = Rollout.options(name="talks").remote()
    ray.get(rollout.opened.remote())
    ((process, text),) = processes.logs("actor/talks")
    assert (process.label, text) == ("Rollout", "")
    ray.kill(rollout)


def test_an_actors_subprocesses_are_shown_with_it_and_their_stacks_read(processes):
    engine = Engine.remote()
    core = ray.get(engine.core_pid.remote())
    found = processes.activity("actor/Engine")
    shown = {str(process): process for process in found.processes}
    assert list(shown) == ["actor Engine", "process python of actor Engine", "process sleep of actor Engine"]
    subprocess_ = shown["process python of actor Engine"]
    assert (subprocess_.pid, subprocess_.job) == (core, ray.get_runtime_context().get_job_id())
    assert "in compute\n" in found.stacks[subprocess_.id]
    assert found.stacks[shown["process sleep of actor Engine"].id].startswith("no stacks: py-spy cannot read them: ")
    assert [process.subprocess for process, _ in processes.logs("actor/Engine")] == [""]
    ray.kill(engine)
