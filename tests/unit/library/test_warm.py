"""Processes that are forked instead of started: whatever goes wrong, they start cold, and soon."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.unit.agent.test_setup_worker import arguments
from workergroups.node import free_memory
from workergroups.warm import forked, learning, places, preload, server
from workergroups.worker_process import setup_worker

GROUP = {"WORKERGROUPS_WARM": "0b7a-uid", "RAY_RAYLET_PID": "17", "PYTHONPATH": "/code/1:/library", "A": "b"}
COMMAND = ["python3", "default_worker.py", "--node-id=1"]


def directory(command=COMMAND, **changes):
    return places.directory_of({k: v for k, v in (GROUP | changes).items() if v is not None}, command)


@pytest.mark.parametrize("changes", [{}, {"PYTHONPATH": "/code/2:/library"}])
def test_new_code_has_the_same_server(changes):
    assert directory(**changes) == directory()
    assert directory([*COMMAND, "--worker-id=2"], **changes) == directory()


@pytest.mark.parametrize(
    "changes",
    [
        {"A": "c"},
        {"A": None},
        {"B": ""},
        {"RAY_JOB_ID": "02000000"},  # Ray's C++ part reads it when it is imported
        {"WORKERGROUPS_WARM": "0b7b-uid"},
        {"RAY_RAYLET_PID": "18"},
        {"PYTHONPATH": "/code/1:/other"},
        {"PYTHONPATH": "/library"},
        {"PYTHONPATH": f"{Path(places.__file__).parents[2]}:/library"},
    ],
)
def test_whatever_an_interpreter_reads_when_it_starts_is_the_same_for_all_processes_of_a_server(changes):
    assert directory(**changes) not in (None, directory())


@pytest.mark.parametrize(
    "changes", [{"WORKERGROUPS_WARM": each} for each in (None, "", "../x", "a" * 41)] + [{"RAY_RAYLET_PID": None}]
)
def test_some_processes_have_no_server(changes):
    assert directory(**changes) is None


def test_a_worker_in_a_control_group_of_its_own_has_no_server():
    assert directory([*COMMAND, "--enable-resource-isolation=True"]) is None


def test_the_code_of_a_fork_is_searched_where_the_code_of_the_server_was():
    path = ["/image", "/code/1", "/library", "/usr/lib"]
    assert forked.search_path("/ray/worker.py", path, "/code/1", "/code/2") == [
        "/ray",
        "/image",
        "/code/2",
        "/library",
        "/usr/lib",
    ]
    assert "/code/1" not in forked.search_path("/ray/worker.py", path, "/code/1", None)


@pytest.mark.parametrize(
    ("modules", "more", "found"),
    [
        (["json", "no_such_module"], "", "None"),
        (["numpy"], "", "None"),  # its threads end before a fork
        (
            ["threading", "time"],
            "threading.Thread(target=time.sleep, args=(9,), daemon=True).start()",
            "it has threads:",
        ),
        (["socket"], "kept = socket.socket()", "it has open socket:["),
        (["ray"], "", "None"),
        (["ray"], "ray._raylet.WorkerID.from_random()", "its forks would draw the same random ids of Ray"),
        (["ray", "ray.dag", "ray.experimental.channel.common"], "", "None"),  # these draw ids, and are left out
        (["subprocess"], "kept = subprocess.Popen(['sleep', '1'])", "it has child processes"),
    ],
)
def test_a_process_that_cannot_be_forked_safely_is_recognised(modules, more, found):
    program = f"import sys; from workergroups.warm.preload import *; preload({modules})\n"
    program += f"globals().update(sys.modules)\n{more}\nprint(problem())"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.startswith(found)


def test_variables_that_imports_set_are_noted(tmp_path, monkeypatch):
    (tmp_path / "sets_variables.py").write_text("import os; os.environ['C'] = 'd'; os.environ.pop('E')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("C", "")
    monkeypatch.setenv("E", "f")
    assert preload.preload(["sets_variables"]) == {"C", "E"}


def test_installed_modules_are_imported_in_advance_and_those_of_the_code_are_not():
    found = learning.installed_modules()
    assert {"pytest", "workergroups", "workergroups.warm.places"} <= set(found)
    assert not {"json", "__main__", __name__} & set(found)


def test_packages_of_an_environment_that_python_was_pointed_to_count_as_installed(tmp_path, monkeypatch):
    other = tmp_path / "venv" / "lib" / "python3.11" / "site-packages"
    for directory in (tmp_path / "code", other):
        directory.mkdir(parents=True)
        monkeypatch.syspath_prepend(directory)
    assert str(other) in preload.site_directories()
    assert str(tmp_path / "code") not in preload.site_directories()


@pytest.mark.parametrize(("free", "short"), [(4 * 2**30, False), (0.9 * 2**30, True), (1.5 * 2**30, True)])
def test_a_server_ends_when_memory_is_short(monkeypatch, free, short):
    monkeypatch.setattr(server, "memory", lambda: free_memory.Memory(20 * 2**30, int(free)))
    assert server.is_memory_short() == short


def test_the_memory_of_a_container_is_limited_by_its_control_group(tmp_path, monkeypatch):
    monkeypatch.setattr(free_memory, "_GROUPS", tmp_path)
    machine = free_memory.memory()
    (tmp_path / "memory.max").write_text("1000000\n")
    (tmp_path / "memory.current").write_text("900000\n")
    (tmp_path / "memory.stat").write_text("anon 5\ninactive_file 300000\n")
    assert free_memory.memory() == (1_000_000, 400_000)
    (tmp_path / "memory.max").write_text("max\n")
    assert free_memory.memory().limit == machine.limit


PROGRAM = """
import json, os, sys, threading
import user_code
seen = dict(os.environ)
print(json.dumps({
    "pid": os.getpid(), "parent": os.getppid(), "variables": seen, "arguments": sys.argv, "path": sys.path,
    "directory": os.getcwd(), "code": user_code.VERSION, "main": __name__, "decimal": "_pydecimal" in sys.modules,
    "threads": threading.active_count(), "open": len(os.listdir("/proc/self/fd")),
}), flush=True)
if "--die" in sys.argv:
    os.kill(os.getpid(), 9)
sys.exit(3)
"""


class Node:
    """What stands for a raylet, and starts workers as it does."""

    def __init__(self, directory):
        self.raylet = subprocess.Popen(["sleep", "600"])
        self.directory = directory
        self.program = directory / "worker.py"
        self.program.write_text(PROGRAM)
        self.code("1", "one")
        self.library = directory / "library"
        self.library.mkdir()
        self.log = directory / "log"

    def code(self, name, version):
        (self.directory / name).mkdir(exist_ok=True)
        (self.directory / name / "user_code.py").write_text(f"VERSION = {version!r}")

    def environment(self, code="1", **changes):
        more = {"WORKERGROUPS_WARM": "of-a-unit-test", "RAY_RAYLET_PID": str(self.raylet.pid), "LC_ALL": "C.UTF-8"}
        return {**os.environ, **more, "PYTHONPATH": f"{self.directory / code}:{self.library}", **changes}

    def place(self, **changes):
        return places.directory_of(self.environment(**changes), [sys.executable, str(self.program)])

    def serve(self, modules=("_pydecimal",), variables=None, is_ready=None):
        """Start a server, as the first rank of a group does."""
        place = self.place()
        lock = learning._lock(place)
        order = {
            "directory": str(place),
            "lock": lock,
            "raylet": self.raylet.pid,
            "program": str(self.program),
            "code": str(self.directory / "1"),
            "patience": 0,
            "modules": list(modules),
            "variables": variables or {},
        }
        learning._start(order, self.environment(), str(self.log))
        until(is_ready or (place / places.SOCKET).exists)
        time.sleep(0.1)  # it is bound, and soon listens
        return int((place / places.LOCK).read_text() or 0)

    def start(self, *more, output="output", **changes):
        """Start a worker; return what it says about itself, and how long that took."""
        began = time.monotonic()
        command = [sys.executable, setup_worker.__file__, str(self.program), *more, *arguments(env_vars={})]
        output = self.directory / output
        # A file and not a pipe, whose end nobody sees while a server that hangs has it, too.
        with output.open("w") as stream:
            subprocess.run(command, env=self.environment(**changes), stdout=stream, stderr=stream, cwd="/")
        seconds = time.monotonic() - began
        until(lambda: output.read_text().endswith("\n"), 20)
        return json.loads(output.read_text()), seconds


def until(is_so, seconds=90):
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.fixture
def node(tmp_path):
    node = Node(tmp_path)
    yield node
    node.raylet.kill()
    node.raylet.wait()
    until(lambda: not Path(places.DIRECTORY, str(node.raylet.pid)).exists())


def runs(pid):
    return Path(f"/proc/{pid}").exists()


def test_a_fork_is_like_a_process_that_was_started(node):
    cold, _ = node.start("--x=1")
    server_pid = node.serve()
    warm, _ = node.start("--x=1")
    assert (warm["parent"], warm["decimal"], cold["decimal"]) == (server_pid, True, False)
    differing = {name for name in warm if warm[name] != cold[name]}
    assert differing == {"pid", "parent", "decimal"}
    assert warm["directory"] == "/"


def test_new_code_is_imported_and_no_old_one(node):
    node.serve()
    node.code("2", "two")
    found, _ = node.start(code="2")
    assert (found["code"], found["decimal"]) == ("two", True)
    assert not any(each.endswith("/1") for each in found["path"])


@pytest.mark.parametrize("changes", [{"A": "other"}, {"WORKERGROUPS_WARM": "uid-2"}, {"WORKERGROUPS_WARM": ""}])
def test_another_environment_or_another_group_starts_cold(node, changes):
    node.serve()
    found, _ = node.start(**changes)
    assert found["decimal"] is False
    assert changes.get("WORKERGROUPS_WARM", "of-a-unit-test") in found["variables"]["WORKERGROUPS_WARM"]


def test_a_rank_that_was_started_by_rays_own_program_has_no_server():
    assert places.own_directory({"WORKERGROUPS_WARM": "0b7a-uid"}) is None
    assert places.own_directory({"WORKERGROUPS_WARM": str(directory())}) == directory()


@pytest.mark.parametrize("module", ["_pydecimal", "sitecustomize"])
def test_code_that_hides_what_the_server_has_imported_starts_cold(node, module):
    node.serve()
    node.code("2", "two")
    (node.directory / "2" / f"{module}.py").touch()
    assert node.start(code="2")[0]["parent"] == os.getpid()
    assert node.start()[0]["decimal"]


def test_a_killed_server_is_replaced_and_until_then_processes_start_cold(node):
    pid = node.serve()
    os.kill(pid, signal.SIGKILL)
    until(lambda: not runs(pid))
    assert node.start()[0]["decimal"] is False
    assert node.serve() != pid
    assert node.start()[0]["decimal"] is True


def test_a_server_that_hangs_costs_two_seconds_and_never_starts_a_second_worker(node):
    pid = node.serve()
    os.kill(pid, signal.SIGSTOP)
    try:
        found, seconds = node.start()
    finally:
        os.kill(pid, signal.SIGCONT)
    assert found["decimal"] is False
    assert 2 <= seconds < 10  # beyond the two, what a start takes on a busy machine
    assert node.start(output="other")[0]["decimal"] is True  # the server has served the first one by now
    until(lambda: not children(pid))
    assert len((node.directory / "output").read_text().splitlines()) == 1


def children(pid):
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_dead_forks_are_buried_at_once(node):
    pid = node.serve()
    node.start("--die")
    until(lambda: not children(pid))


@pytest.mark.parametrize("message", [b"", b"\0\0\0\x02{}", b"\0\0\0\x02[]", b"\xff\xff\xff\xffx", b'\0\0\0\x03{"}'])
def test_a_server_survives_what_it_does_not_understand(node, message):
    node.serve()
    with socket.socket(socket.AF_UNIX) as other:
        other.connect(str(node.place() / places.SOCKET))
        other.sendall(message)
    assert node.start()[0]["decimal"] is True


STARTS_A_THREAD = "import threading, time; threading.Thread(target=time.sleep, args=(600,), daemon=True).start()"


def test_modules_that_start_threads_are_left_out(node):
    (node.library / "odd.py").write_text(STARTS_A_THREAD)
    (node.library / "numpy.py").write_text("import _pydecimal")
    node.serve(modules=["odd", "numpy"])
    found, _ = node.start()
    assert (found["decimal"], found["threads"]) == (True, 1)


def test_there_is_no_server_if_torch_itself_starts_threads(node):
    (node.library / "torch.py").write_text(STARTS_A_THREAD)
    unfit = node.place() / places.UNFIT
    pid = node.serve(modules=["torch"], is_ready=unfit.exists)
    until(lambda: not runs(pid))
    assert "cannot be forked: it has threads" in node.log.read_text()
    assert learning._lock(node.place()) is None
    assert node.start()[0]["parent"] == os.getpid()
    shutil.rmtree(node.place().parents[1])


def test_what_the_code_sets_itself_is_set_for_the_imports_and_not_for_the_forks(node):
    node.serve(variables={"OF_THE_CODE": "x"})
    assert "imports again with the variables that the code sets itself: OF_THE_CODE" in node.log.read_text()
    found, _ = node.start()
    assert (found["decimal"], "OF_THE_CODE" in found["variables"]) == (True, False)
    node.code("2", "two")  # it may no longer set them
    assert node.start(code="2")[0]["decimal"] is False


def test_a_server_ends_with_the_raylet_and_leaves_nothing(node):
    pid = node.serve()
    node.raylet.kill()
    node.raylet.wait()
    until(lambda: not runs(pid))
    assert not node.place().exists()


def test_a_server_with_other_variables_takes_the_place_of_the_one_before(node):
    first = node.serve()
    environment = node.environment
    node.environment = lambda *args, **changes: environment(*args, **{"A": "new", **changes})
    second = node.serve()
    until(lambda: not runs(first))
    assert runs(second)
