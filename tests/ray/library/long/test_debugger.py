"""breakpoint() and post-mortem in ranks: who is paused is known, and an editor or a prompt can come in."""

import re
import socket
import subprocess
import sys
import time

import pytest
import ray

from tests.ray.library import debugged
from tests.ray.library.debugged import Debugged
from workergroups import RayClassWithInitArgs, RayResourcePool, RayWorkerGroup
from workergroups.debugger import announced
from workergroups.debugger.dap import Attached, DebuggerGoneError
from workergroups.single_controller.ray.ranks import create_ranks

pytestmark = pytest.mark.usefixtures("local_ray")


@pytest.fixture
def group():
    with RayResourcePool([4]) as pool, RayWorkerGroup(pool, RayClassWithInitArgs(Debugged)) as group:
        yield group


def paused(count=1, seconds=20, known=()):
    """The announced pauses, without those of known times, as soon as debugpy serves `count` of them."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = [pause for pause in announced.announced().values() if pause.port and pause.since not in known]
        if len(found) == count:
            return sorted(found, key=lambda pause: pause.port)
        time.sleep(0.05)
    raise TimeoutError(f"{len(found)} ranks are paused, not {count}")


def until_only_call(group, rank, state, seconds=10):
    """Wait until Ray, whose processes report once a second, lists one call of a rank, and that in this state."""
    deadline = time.monotonic() + seconds
    while (found := [call.state for call in group.calls() if call.rank == rank]) != [state]:
        assert time.monotonic() < deadline, found
        time.sleep(0.1)


def none_paused(seconds=10):
    deadline = time.monotonic() + seconds
    while announced.announced():
        assert time.monotonic() < deadline, announced.announced()
        time.sleep(0.05)


def type_into(pause, *lines):
    """What the prompt shows when these lines are typed."""
    command = [sys.executable, "-m", "workergroups.debugger.prompt", str(pause.port)]
    typed = "".join(f"{line}\n" for line in lines)
    return subprocess.run(command, input=typed, capture_output=True, text=True, timeout=60, check=True).stdout


def test_an_editor_attaches_to_the_rank_that_is_paused_and_lets_it_continue(group):
    call = group.execute_all_async("step", [2])
    (pause,) = paused()
    assert pause.where.startswith(f"{debugged.__file__}:")
    assert pause.where.endswith(" in Debugged.step")
    assert debugged.__file__.startswith(pause.directory)
    assert (pause.port, pause.error, pause.is_attached) == (5678 + 2, "", False)
    editor = Attached(pause.port)
    thread = editor.wait_until_stopped()
    frame = editor.frames(thread)[0]
    assert (frame.name, editor.evaluate("total, self.rank", frame)) == ("step", "(40, 2)")
    (attached,) = paused()
    assert attached.is_attached
    until_only_call(group, 2, f"running, paused at {pause.where}")
    with pytest.raises(DebuggerGoneError):
        Attached(pause.port)
    editor.ask("continue", threadId=thread)
    assert ray.get(call) == [41, 41, 42, 41]
    editor.close()
    none_paused()


def test_a_prompt_shows_and_changes_what_a_rank_has(group):
    call = group.execute_all_async("step", [1])
    (pause,) = paused()
    shown = type_into(
        *(pause, "p total", "total = 70", "n", "p total", "no_such_name", "w", "l", "a", "h", "u", "d", "d", "c")
    )
    for words in (
        "(rank) 40\n",
        "(rank) 71\n",
        "*** NameError: name 'no_such_name' is not defined",
        "there is no further frame",
        "Documented commands",
    ):
        assert words in shown
    assert re.search(r"(?m)^   1\d -> +total \+= 1$", shown), shown
    assert ray.get(call) == [41, 72, 41, 41]
    none_paused()


@pytest.mark.parametrize("leave", [("q",), ()])
def test_whoever_leaves_the_prompt_lets_the_rank_continue(group, leave):
    call = group.execute_all_async("step", [1])
    (pause,) = paused()
    type_into(pause, *leave)
    assert ray.get(call) == [41, 42, 41, 41]


def test_a_breakpoint_of_the_prompt_is_stopped_at(group):
    call = group.execute_all_async("step", [1])
    (pause,) = paused()
    line = int(pause.where.split(":")[1].split(" ")[0])
    shown = type_into(pause, f"b {line + 2}", "c", "p total", "cl", "c")
    assert "(rank) 41\n" in shown
    assert ray.get(call) == [41, 42, 41, 41]


def test_several_ranks_pause_at_ports_of_their_own(group):
    call = group.execute_all_async("step", [0, 1, 3])
    found = paused(3)
    assert [pause.port for pause in found] == [5678, 5679, 5681]
    for pause in found:
        type_into(pause, "c")
    assert ray.get(call) == [42, 42, 41, 42]


def test_a_rank_can_pause_again_and_again(group):
    for _ in range(3):
        call = group.execute_all_async("step", [1])
        (pause,) = paused()
        editor = Attached(pause.port)
        editor.wait_until_stopped()
        editor.close()
        assert ray.get(call) == [41, 42, 41, 41]
        none_paused()


def test_a_group_that_is_closed_has_no_paused_ranks():
    with RayResourcePool([2]) as pool, RayWorkerGroup(pool, RayClassWithInitArgs(Debugged)) as group:
        group.execute_all_async("step", [1])
        paused()
    assert not announced.announced()


def test_a_rank_that_pauses_again_at_once_is_known_again(group):
    call = group.execute_all_async("step_often", 1, 10)
    known = set()
    for _ in range(10):
        (pause,) = paused(known=known)
        known.add(pause.since)
        editor = Attached(pause.port)
        editor.wait_until_stopped()
        editor.close()
    assert ray.get(call, timeout=20) == [10, 10, 10, 10]
    none_paused()


def test_a_connection_that_is_cut_lets_the_rank_continue(group):
    call = group.execute_all_async("step", [1])
    (pause,) = paused()
    script = (
        f"import os, workergroups.debugger.dap as dap; dap.Attached({pause.port}).wait_until_stopped(); os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
    assert ray.get(call, timeout=20) == [41, 42, 41, 41]
    none_paused()


def test_nothing_listens_but_on_loopback(group):
    group.execute_all_async("step", [1])
    (pause,) = paused()
    address = ray.util.get_node_ip_address()
    assert address != "127.0.0.1"
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((address, pause.port), timeout=5)
    socket.create_connection(("127.0.0.1", pause.port), timeout=5).close()


def test_a_constructor_can_be_paused():
    debugged = RayClassWithInitArgs(Debugged, at_construction=(1,))
    with RayResourcePool([2]) as pool, RayWorkerGroup(pool, debugged) as group:
        (pause,) = paused()
        assert pause.where.endswith(" in Debugged.__init__")
        type_into(pause, "c")
        assert group.execute_all_sync("step", []) == [41, 41]


@pytest.fixture
def post_mortem():
    """Two ranks of which each exception is looked at."""
    pool = RayResourcePool([2])
    ranks = create_ranks(
        RayClassWithInitArgs(Debugged), pool.seats(), names=["a", "b"], namespace="tests", post_mortem=True
    )
    yield ranks
    for rank in ranks:
        ray.kill(rank)
    announced.withdraw_all(rank._actor_id.hex() for rank in ranks)
    pool.close()


def test_an_exception_is_looked_at_where_it_was_raised_and_then_raised(post_mortem):
    call = post_mortem[1].fail.remote()
    (pause,) = paused()
    assert pause.where.endswith(" in Debugged.fail after LookupError: no plums")
    editor = Attached(pause.port)
    frame = editor.frames(editor.wait_until_stopped())[0]
    assert (frame.name, editor.evaluate("wanted", frame)) == ("fail", "'plums'")
    editor.close()
    with pytest.raises(LookupError, match="no plums"):
        ray.get(call)
    none_paused()


def test_an_exception_is_looked_at_from_the_prompt(post_mortem):
    call = post_mortem[0].fail.remote()
    (pause,) = paused()
    assert "(rank) 'plums'" in type_into(pause, "p wanted", "q")
    with pytest.raises(LookupError, match="no plums"):
        ray.get(call)


def test_what_a_method_catches_is_not_looked_at(post_mortem):
    assert ray.get(post_mortem[0].raise_caught.remote(), timeout=30) == "caught"
    assert not announced.announced()
