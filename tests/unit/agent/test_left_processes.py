"""What goes on of a rank that has ended is found, and ended."""

import os
import select
import subprocess
import sys

import pytest

from workergroups.node import own_processes
from workergroups.node.own_processes import KernelProcess
from workergroups.processes.stack_dump import FILE_NAME
from workergroups_agent.left_processes import KnownProcess, descendants_of, end, left_by_ranks, ranks

RANK, OTHER = KnownProcess(10, 1), KnownProcess(11, 1)
# Of the rank, of its child, of the other rank; and a process that is nobody's.
CHILD, GRANDCHILD, OTHERS_CHILD, NOBODYS = (KnownProcess(10 * n, n) for n in range(2, 6))
PARENTS = {RANK: 1, OTHER: 1, CHILD: RANK.pid, GRANDCHILD: CHILD.pid, OTHERS_CHILD: OTHER.pid, NOBODYS: 1}


def table(*processes, parents=PARENTS):
    return {each.pid: KernelProcess(ended=False, parent=parents[each], start=each.start) for each in processes}


def left(*processes, parents=PARENTS, is_ours=lambda pid: False):
    before = descendants_of([RANK, OTHER], table(*PARENTS))
    return left_by_ranks(before, table(*processes, parents={**PARENTS, **parents}), is_ours)


def test_descendants_are_those_of_children_too():
    found = descendants_of([RANK, OTHER], table(*PARENTS))
    assert found == {RANK: {CHILD, GRANDCHILD}, OTHER: {OTHERS_CHILD}}


def test_nothing_is_left_by_ranks_that_run():
    assert left(*PARENTS) == frozenset()


def test_orphans_of_a_rank_that_has_ended_are_left():
    rest = [each for each in PARENTS if each != RANK]
    assert left(*rest, parents={CHILD: 1}) == {CHILD, GRANDCHILD}


def test_what_an_orphan_has_started_since_is_left_too():
    later = KnownProcess(60, 9)
    assert left(OTHER, CHILD, later, NOBODYS, parents={CHILD: 1, later: CHILD.pid}) == {CHILD, later}


def test_another_process_with_the_id_of_a_child_is_not_left():
    again = KnownProcess(CHILD.pid, 99)
    assert left(OTHER, again, parents={again: 1}) == frozenset()


def test_another_process_with_the_id_of_the_rank_is_not_the_rank():
    again = KnownProcess(RANK.pid, 99)
    assert left(again, OTHER, CHILD, parents={again: 1, CHILD: 1}) == {CHILD}


def test_a_fork_server_stays():
    assert left(OTHER, CHILD, GRANDCHILD, is_ours=lambda pid: pid == CHILD.pid) == {GRANDCHILD}


PROGRAM = f"""
import os, subprocess, sys, time
name = os.memfd_create("{FILE_NAME}0123")
print(subprocess.Popen(["sleep", "600"], start_new_session=True).pid, flush=True)
time.sleep(600)
"""


@pytest.fixture
def rank():
    """A process that looks like a rank, and has a child with its own session."""
    named = ["bash", "-c", 'exec -a ray::Rank.step "$0" -c "$1"', sys.executable, PROGRAM]
    with subprocess.Popen(named, stdout=subprocess.PIPE) as process:
        yield process
        process.kill()


def test_a_child_with_a_session_of_its_own_ends_after_its_rank(rank):
    child = int(rank.stdout.readline())
    assert os.getsid(child) == child
    found = [each for each in ranks(own_processes.table(), ()) if each.pid == rank.pid]
    before = descendants_of(found, own_processes.table())
    assert left_by_ranks(before, own_processes.table()) == frozenset()
    rank.kill()
    rank.wait()
    (orphan,) = left_by_ranks(before, own_processes.table())
    assert orphan.pid == child
    ends = os.pidfd_open(child)
    end(orphan)
    assert select.select([ends], [], [], 10)[0]
