"""Which dead ranks the observer reports as out of memory, because the kernel ended a process of their pod then."""

from dataclasses import replace

import pytest

from tests.unit.agent.ray_world import NODES, rank, state
from workergroups.node.memory_kills import KV_NAMESPACE, to_record
from workergroups.ray_private.death import Death
from workergroups.ray_private.death_cause import SILENT_END
from workergroups_agent.observer.silent_ends import EXPLANATION, SETTLED_SECONDS, MemoryKills

SILENT = Death("ProcessDied", SILENT_END, "")
PODS = {node.id: node.pod for node in NODES.values()}
KILLED_AT = 1000.0


class Gcs:
    """What nodes have written of kills, and when worker processes ended."""

    def __init__(self, kills=None, ends=None):
        self.kills = {"p-worker-b": [KILLED_AT]} if kills is None else kills
        self.ends = {"w-0": KILLED_AT + 0.5} if ends is None else ends
        self.questions = 0

    def get_many(self, namespace, keys):
        assert namespace == KV_NAMESPACE
        self.questions += 1
        return {key: to_record(self.kills[key]) for key in keys if key in self.kills}

    def worker_end(self, worker_id):
        self.questions += 1
        if isinstance(self.ends[worker_id], Exception):
            raise self.ends[worker_id]
        return self.ends[worker_id]


def dead(number=0, death=SILENT, node="n-b"):
    return replace(rank(number, "DEAD", death, node), worker_id=f"w-{number}")


def seen(*ranks):
    return replace(state(ranks=ranks), pods=PODS)


def ends(gcs, *ranks):
    return [each.death and each.death.reason for each in MemoryKills(gcs).explained(seen(*ranks)).ranks]


@pytest.mark.parametrize(
    ("gcs", "rank_", "reason"),
    [
        (Gcs(), dead(), "OutOfMemory"),
        (Gcs(ends={"w-0": KILLED_AT + 60}), dead(), "ProcessDied"),
        (Gcs(ends={"w-0": None}), dead(), "ProcessDied"),
        (Gcs(ends={"w-0": ValueError("no text")}), dead(), "ProcessDied"),
        (Gcs(kills={"p-worker-c": [KILLED_AT]}), dead(), "ProcessDied"),
        (Gcs(kills={"p-worker-b": []}), dead(), "ProcessDied"),
        # Ray knows why it ended, or it lives.
        (Gcs(), dead(death=Death("ProcessDied", "it received a SIGTERM", "")), "ProcessDied"),
        (Gcs(), dead(death=Death("Removed", "killed by `ray.kill`", "")), "Removed"),
        (Gcs(), dead(death=Death("ConstructorFailed", "ValueError: boom", "")), "ConstructorFailed"),
        (Gcs(), rank(), None),
        # It had no process yet, or nobody knows its pod.
        (Gcs(), replace(dead(), worker_id=""), "ProcessDied"),
        (Gcs(), dead(node="n-unknown"), "ProcessDied"),
    ],
)
def test_a_rank_that_died_when_the_kernel_ended_a_process_of_its_pod(gcs, rank_, reason):
    assert ends(gcs, rank_) == [reason]


def test_the_message_does_not_claim_that_it_was_this_rank():
    assert "a process of this pod" in EXPLANATION.message


def test_only_the_ranks_of_that_pod_and_time_are_explained():
    gcs = Gcs(ends={"w-0": KILLED_AT + 0.5, "w-1": KILLED_AT - 60, "w-2": KILLED_AT})
    assert ends(gcs, dead(0), dead(1), dead(2, node="n-c"), rank(3)) == [
        "OutOfMemory",
        "ProcessDied",
        "ProcessDied",
        None,
    ]


def test_while_nobody_dies_nothing_is_asked_and_a_death_is_asked_about_for_a_moment():
    now = [0.0]
    gcs = Gcs(kills={})
    kills = MemoryKills(gcs, lambda: now[0])
    alive, dying = seen(rank()), seen(dead())
    assert kills.explained(alive) is alive
    assert gcs.questions == 0
    assert kills.explained(dying) is dying
    # The node was slower than Ray.
    gcs.kills["p-worker-b"] = [KILLED_AT]
    assert kills.explained(dying).ranks[0].death == EXPLANATION
    asked = gcs.questions
    assert kills.explained(dying).ranks[0].death == EXPLANATION
    now[0] = SETTLED_SECONDS + 1
    other = seen(dead(), dead(1))
    gcs.ends["w-1"] = 0.0
    assert [each.death.reason for each in kills.explained(other).ranks] == ["OutOfMemory", "ProcessDied"]
    now[0] *= 3
    before = gcs.questions
    kills.explained(other)
    assert gcs.questions == before > asked
