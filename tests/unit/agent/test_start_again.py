"""Which workers join again in their container, and what they end before."""

import subprocess
import sys

import pytest

from workergroups_agent.start_again import JOINED_SECONDS, End, gcs_of, others, starts_again

LONG = JOINED_SECONDS + 1


@pytest.mark.parametrize(
    ("arguments", "address"),
    [
        (["start", "--block", "--address=head:6379", "--num-cpus=1"], "head:6379"),
        (["start", "--head", "--block"], None),
    ],
)
def test_only_a_worker_has_a_gcs_to_wait_for(arguments, address):
    assert gcs_of(arguments) == address


@pytest.mark.parametrize(
    ("end", "again"),
    [
        (End(1, LONG), True),
        (End(1, JOINED_SECONDS - 1), False),
        (End(1, None), False),
        (End(0, LONG), False),
        (End(-9, LONG), False),
    ],
)
def test_ray_starts_again_if_its_node_was_part_of_a_cluster_and_it_ended_by_itself(end, again):
    assert starts_again(end) is again


# What stands in for `ray start`; it calls `joined` when its node has joined.
PROGRAM = """
import os, sys, time
from workergroups_agent.start_again import run

def ray_start(joined):
    {body}

end = run(ray_start)
print(end.code, end.joined_seconds)
"""


def end_of(body: str) -> End:
    program = PROGRAM.format(body=body)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, timeout=30)
    code, joined = done.stdout.split()
    return End(int(code), None if joined == b"None" else float(joined))


def test_a_node_that_joined_has_been_part_of_the_cluster_since_then():
    end = end_of("joined(); joined(); time.sleep(0.2); os._exit(1)")
    assert end.code == 1
    assert 0.2 <= end.joined_seconds < 10


@pytest.mark.parametrize(
    ("body", "code"),
    [("pass", 0), ("sys.exit(3)", 3), ("raise ValueError", 1), ("os.kill(os.getpid(), 9)", -9)],
)
def test_a_node_that_never_joined_says_only_how_it_ended(body, code):
    assert end_of(body) == End(code, None)


OWN, OTHER = "0::/", "0::/../other"


@pytest.fixture
def processes(tmp_path):
    """A directory like /proc of these processes: id, start, state, control group."""

    def write(*of: tuple[int, int, str, str]):
        for pid, start, state, group in of:
            (tmp_path / str(pid)).mkdir()
            (tmp_path / str(pid) / "stat").write_text(f"{pid} (a) 7 (b) {state} {'1 ' * 18}{start} 1 1")
            (tmp_path / str(pid) / "cgroup").write_text(group)
        (tmp_path / "self").mkdir()
        (tmp_path / "meminfo").touch()
        return tmp_path

    return write


def test_what_has_started_in_the_container_since_ray_has_belongs_to_the_old_node(processes):
    bash, own, rank, orphan = (1, 500, "S", OWN), (9, 501, "S", OWN), (30, 900, "R", OWN), (8, 901, "D", OWN)
    assert others(9, processes(bash, own, rank, orphan)) == [8, 30]


def test_what_the_command_has_started_before_ray_stays(processes):
    bash, daemon, own, child = (1, 500, "S", OWN), (7, 501, "S", OWN), (9, 501, "S", OWN), (10, 502, "S", OWN)
    assert others(9, processes(bash, daemon, own, child)) == [10]


def test_another_container_and_what_has_ended_stay(processes):
    own, other, zombie, dead = (9, 500, "S", OWN), (29, 900, "S", OTHER), (30, 900, "Z", OWN), (31, 900, "X", OWN)
    found = processes(own, other, zombie, dead)
    (found / "32").mkdir()
    assert others(9, found) == []
