"""What of `ray start` waits for nothing that it does not need."""

import json
import os
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import pytest
from ray._private.function_manager import FunctionActorManager
from ray._private.worker import Worker

from workergroups.announcements import notices
from workergroups.node import notice
from workergroups.ray_private import gcs as rays_gcs
from workergroups.ray_private import start as ray_private
from workergroups.worker_process import default_worker, setup_worker
from workergroups_agent import head_directories, ray_start
from workergroups_agent.head_directories import HeadDirectories
from workergroups_agent.ray_start import (
    DashboardProcess,
    dashboard_of,
    leave_lost_head,
    our_find_head_node,
    our_get_node,
    our_start_process,
)

PROGRAM = ("python3", "dashboard.py")
SESSION = "/tmp/ray/session_2026-11-23_08-00-00_1_7"
OPTIONS = ("--port=8265", "--port-retries=0", "--gcs-address=10.1.2.3:6379", f"--session-dir={SESSION}")
IP = "--node-ip-address=10.1.2.3"


class Gcs:
    """The key-value store of a GCS, and the nodes that it tells."""

    def __init__(self, nodes=()):
        self.kept = {}
        self.nodes = list(nodes)
        self.questions = 0

    def internal_kv_put(self, key, value, overwrite, namespace):
        if overwrite or (namespace, key) not in self.kept:
            self.kept[namespace, key] = value

    def internal_kv_get(self, key, namespace):
        return self.kept.get((namespace, key))

    def get_all_node_info(self, timeout, **choice):
        self.questions += 1
        return dict(enumerate(self.nodes))


@pytest.mark.parametrize(
    ("arguments", "address"),
    [
        ((*OPTIONS, "--host=0.0.0.0", IP), "10.1.2.3:8265"),
        ((*OPTIONS, "--host=127.0.0.1", IP), "127.0.0.1:8265"),
        ((*OPTIONS, "--host=0.0.0.0"), None),
        ((*OPTIONS[1:], "--host=0.0.0.0", IP), None),
        ((*OPTIONS[:-1], "--host=0.0.0.0", IP), None),
        ((), None),
    ],
)
def test_the_address_is_the_one_that_the_dashboard_is_going_to_write(arguments, address):
    expected = address and DashboardProcess("10.1.2.3:6379", SESSION, address)
    assert dashboard_of((*PROGRAM, *arguments)) == expected


def test_a_worker_that_finds_the_heads_directories_asks_for_no_node():
    gcs = Gcs()
    head_directories.announce(gcs, SESSION)
    (found,) = our_find_head_node(pytest.fail)(gcs, timeout_per_retry=5, node_selectors=[])
    assert (found.temp_dir, found.session_dir) == ("/tmp/ray", SESSION)
    assert gcs.questions == 0


def test_a_later_session_of_the_same_gcs_has_its_own_directories():
    gcs = Gcs()
    for session in ("/tmp/ray/session_1", "/tmp/ray/session_2"):
        head_directories.announce(gcs, session)
    assert head_directories.announced(gcs) == HeadDirectories("/tmp/ray", "/tmp/ray/session_2")


def test_a_worker_takes_the_node_of_a_head_that_announces_nothing():
    assert list(our_find_head_node(pytest.fail)(Gcs(["node"]), timeout_per_retry=5)) == ["node"]


def test_a_worker_that_finds_neither_asks_in_rays_own_way(monkeypatch):
    monkeypatch.setattr(ray_start, "SECONDS", 0.3)
    gcs = Gcs()
    assert our_find_head_node(lambda *asked, **choice: (asked, choice))(gcs, timeout_per_retry=5, state_filter=1) == (
        (gcs,),
        {"timeout_per_retry": 5, "state_filter": 1},
    )
    assert gcs.questions > 1


@pytest.fixture
def start(monkeypatch):
    """Start a process of Ray of a kind, and return its command and its niceness."""
    niceness = {}
    announced = []
    monkeypatch.setattr(ray_start, "announce", announced.append)
    monkeypatch.setattr(os, "setpriority", lambda _which, pid, nice: niceness.update({pid: nice}))

    def run(kind, *command):
        def theirs(given, process_type, fate_share):
            assert (process_type, fate_share) == (kind, True)
            return SimpleNamespace(process=SimpleNamespace(pid=7), command=given)

        started = our_start_process(theirs)(list(command), kind, fate_share=True)
        return started.command, niceness.get(7, 0), announced

    return run


def test_the_raylet_and_the_gcs_start_at_once(start):
    assert start("gcs_server", "gcs_server", "--x=1") == (["gcs_server", "--x=1"], 0, [])
    assert start("raylet", "raylet") == (["raylet"], 0, [])


def test_what_ranks_print_is_read_from_the_beginning(start):
    """A rank may die in its first second, and people want to see why."""
    assert start("log_monitor", "log_monitor") == (["log_monitor"], 0, [])


def test_the_dashboard_waits_for_an_idle_cpu_and_the_raylet_not_for_it(start):
    dashboard = (*PROGRAM, *OPTIONS, "--host=0.0.0.0", IP)
    command, niceness, announced = start("dashboard", *dashboard)
    assert command[-len(dashboard) :] == list(dashboard)
    assert command[1].endswith("when_idle.py")
    assert niceness == ray_start.NICE
    assert announced == [DashboardProcess("10.1.2.3:6379", SESSION, "10.1.2.3:8265")]


def test_a_dashboard_with_missing_facts_is_not_announced(start):
    assert start("dashboard", *PROGRAM, "--host=0.0.0.0")[2] == []


def test_the_raylet_starts_workers_by_our_file(start):
    assert os.path.exists(ray_private.RAYS_SETUP_WORKER)
    assert os.path.exists(ray_private.RAYS_DEFAULT_WORKER)
    programs = ray_private.RAYS_SETUP_WORKER, ray_private.RAYS_DEFAULT_WORKER
    (command,), _, _ = start("raylet", f"--python_worker_command=python3 {' '.join(programs)} --port=1")
    ours = f"{setup_worker.__file__} {default_worker.__file__}"
    assert command == f"--python_worker_command=python3 {ours} --port=1"


def test_processes_that_hang_while_they_start_leave_room_for_as_many_as_before(start):
    (command,), _, _ = start("raylet", "--maximum_startup_concurrency=2")
    assert command == f"--maximum_startup_concurrency={2 + ray_start.HANGING_STARTS}"


def test_rays_functions_that_are_replaced_are_there():
    """With another version of Ray, starts would only be slower; here somebody should notice."""
    for module, name in (ray_private.START_PROCESS, ray_private.FIND_HEAD_NODE, ray_private.GET_NODE):
        assert callable(getattr(sys.modules[module], name))
    for name in ("_load_actor_class_from_gcs", "get_execution_info"):
        assert callable(getattr(FunctionActorManager, name))
    for name in ("main_loop", "deserialize_objects"):
        assert callable(getattr(Worker, name))


def test_what_ray_reads_of_the_heads_node_is_announced():
    gcs = Gcs()
    head_directories.announce(gcs, SESSION)
    (written,) = gcs.kept.values()
    assert json.loads(written) == ["/tmp/ray", SESSION]


class Raylet:
    """A raylet, and the answers of the GCS to the question whether its node has joined."""

    def __init__(self, *answers, returncode=None):
        self.answers, self.returncode = list(answers), returncode

    def poll(self):
        return self.returncode

    def ask(self, *_):
        match self.answers.pop(0):
            case None:
                raise RuntimeError("RPC error: Deadline Exceeded")
            case node:
                return node


@pytest.fixture
def no_pause(monkeypatch):
    monkeypatch.setattr(ray_start.time, "sleep", lambda _: None)


def test_a_node_that_joins_late_is_waited_for(no_pause):
    raylet, joins = Raylet(None, None, {"node_id": "a"}), []
    ask = our_get_node(raylet.ask, [raylet], lambda: joins.append("a"))
    assert ask("10.1.2.3:6379", "a") == {"node_id": "a"}
    assert joins == ["a"]


def test_a_node_that_never_joins_is_given_up(no_pause, monkeypatch):
    monkeypatch.setattr(ray_start, "JOIN_SECONDS", -1)
    raylet = Raylet(None, {"node_id": "too late"})
    with pytest.raises(RuntimeError, match="Deadline Exceeded"):
        our_get_node(raylet.ask, [raylet], pytest.fail)("10.1.2.3:6379", "a")


def test_a_raylet_that_has_ended_is_not_waited_for(no_pause):
    raylet = Raylet(None, {"node_id": "of another"}, returncode=7)
    with pytest.raises(ChildProcessError, match=r"the raylet has ended with code 7: .*raylet\.out"):
        our_get_node(raylet.ask, [raylet], pytest.fail)("10.1.2.3:6379", "a")


def test_the_raylet_of_a_lost_head_ends_when_another_has_come(monkeypatch):
    sessions = [SESSION, None, SESSION, "/tmp/ray/session_2"]
    seen, ended = [], []

    def wait(_address, session):
        seen.extend(session() for _ in range(4))

    def connect(_address):
        gcs = Gcs()
        match sessions.pop(0):
            case None:
                raise RuntimeError("RPC error")
            case session:
                head_directories.announce(gcs, session)
        return gcs

    monkeypatch.setattr(ray_private, "connect", connect)
    monkeypatch.setattr(ray_start, "wait_for_next_head", wait)
    has_joined = threading.Event()
    has_joined.set()
    leave_lost_head("10.1.2.3:6379", [SimpleNamespace(kill=lambda: ended.append("raylet"))], has_joined)
    assert seen == [SESSION, None, SESSION, "/tmp/ray/session_2"]
    assert ended == ["raylet"]


def test_a_raylets_last_lines_are_in_the_containers_output(tmp_path):
    output = tmp_path / "raylet.out"
    assert ray_start.last_words(output).startswith("its output cannot be read: ")
    output.write_bytes(b"\xff" * 9000 + b"\n" + b"".join(b"line %d\n" % number for number in range(20)))
    assert ray_start.last_words(output).splitlines()[1:] == [f"line {number}" for number in range(12, 20)]


ENDING = """
import subprocess, sys, threading, time
from workergroups_agent import ray_start
ray_start.RAY_ENDS_SECONDS = 0.2
has_joined = threading.Event()
has_joined.set()
raylet = subprocess.Popen(sys.argv[1:])
threading.Thread(target=ray_start.end_with_raylets, args=[[raylet], has_joined], daemon=True).start()
time.sleep(60)
"""


@pytest.mark.parametrize(
    ("raylet", "said"),
    [
        (["true"], "ended with code 0"),  # as when the node's agent has died
        (["sh", "-c", "kill -TERM $$"], "ended with code -15"),
        (["sh", "-c", "kill -KILL $$"], "ended with code -9"),
    ],
)
def test_a_node_ends_with_its_raylet_whatever_its_code(raylet, said):
    ended = subprocess.run([sys.executable, "-c", ENDING, *raylet], capture_output=True, text=True, timeout=30)
    assert (ended.returncode, said in ended.stdout) == (1, True)


@pytest.fixture
def given(monkeypatch, tmp_path):
    """This node has given notice; what keeps its end waiting is asked by `held`."""
    file = tmp_path / "notice"
    file.write_bytes(notice.to_record(notice.Notice("a test", time.time() + 30)))
    monkeypatch.setenv("WORKERGROUPS_NOTICE", str(file))
    monkeypatch.setattr(notice, "_WAITS", f"waits-of-{tmp_path.name}")
    monkeypatch.setattr(ray_start, "GCS_SECONDS", 0.3)


def held():
    return notice.holders(notice._WAITS)


def test_a_node_ends_without_its_drivers_if_the_gcs_is_out_of_reach(given, monkeypatch):
    hangs = threading.Event()
    monkeypatch.setattr(rays_gcs.Gcs, "connect", lambda _address: hangs.wait(30))
    began = time.monotonic()
    ray_start.tell_notice("gcs:6379")
    assert time.monotonic() - began < 10
    assert held() == []
    hangs.set()


def test_a_node_ends_when_its_drivers_have_answered(given, monkeypatch):
    seen = []
    monkeypatch.setattr(rays_gcs.Gcs, "connect", lambda address: address)
    monkeypatch.setattr(notices, "tell", lambda gcs, pod, given: seen.append(given.reason))

    def wait(gcs, pod, given):
        time.sleep(2 * ray_start.GCS_SECONDS)
        seen.append(held())

    monkeypatch.setattr(notices, "wait_for_drivers", wait)
    ray_start.tell_notice("gcs:6379")
    assert seen == ["a test", [os.getpid()]]
    assert held() == []


def test_a_node_that_gives_no_notice_keeps_nobody_waiting(monkeypatch):
    monkeypatch.delenv("WORKERGROUPS_NOTICE", raising=False)
    ray_start.tell_notice("gcs:6379")
