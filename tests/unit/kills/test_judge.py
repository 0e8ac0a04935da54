"""What `make kills` calls untrue, and what it calls without an owner."""

import pytest

from tests.kills.judge import AGENT, DRAIN, DRIVER, HEAD, OPERATOR, POD, RANK, Held, Kill, steps_lost, unowned, untruths
from tests.truth.watch import GROUPS, POOLS, Seen

READY = {POOLS: "session/pods", GROUPS: "session/1"}


def seen(at, status, life="session/1"):
    return Seen(at=at, wall=0.0, status=status, reason="x", message="", life=life)


def killed(kind, at=10.0, lives=READY):
    return Kill(kind, "something", at - 0.1, at, lives)


CALM = [seen(11.0, "True")]
TOLD = [seen(10.5, "False"), seen(13.0, "True", "session/2")]
RELAPSED = [seen(10.5, "False"), seen(11.0, "True"), seen(12.0, "False")]


@pytest.mark.parametrize(
    ("kind", "pool", "group", "wrong"),
    [
        (RANK, CALM, TOLD, []),
        (RANK, [], TOLD, []),
        (RANK, CALM, [], [GROUPS]),
        (RANK, CALM, [seen(15.5, "False")], [GROUPS]),
        (RANK, CALM, RELAPSED, [GROUPS]),
        (RANK, TOLD, TOLD, [POOLS]),
        (POD, TOLD, TOLD, []),
        (POD, TOLD, CALM, [GROUPS]),
        (HEAD, CALM, [seen(11.0, "Unknown"), seen(20.0, "True")], []),
        (HEAD, CALM, TOLD, [GROUPS]),
        (AGENT, [seen(11.0, "Unknown"), seen(14.0, "True")], [seen(11.0, "Unknown")], []),
        (AGENT, CALM, [seen(11.0, "False")], [GROUPS]),
        (OPERATOR, CALM, CALM, []),
        (OPERATOR, [seen(11.0, "Unknown")], CALM, [POOLS]),
        (DRIVER, CALM, TOLD, [GROUPS]),
    ],
)
def test_what_a_status_must_and_must_not_report_of_a_kill(kind, pool, group, wrong):
    found = untruths([killed(kind)], {POOLS: pool, GROUPS: group})
    assert [each.partition(":")[0] for each in found] == wrong


def test_what_was_not_ready_before_has_nothing_to_deny():
    for kind in (RANK, POD, HEAD, AGENT, OPERATOR, DRIVER):
        assert untruths([killed(kind, lives={})], {POOLS: TOLD, GROUPS: RELAPSED}) == []


@pytest.mark.parametrize(
    ("status", "again"),
    [
        # The GCS that was killed just before is back before the drain has ended anything.
        ("Unknown", 0),
        ("False", 2),
    ],
)
def test_what_is_unknown_while_a_drain_begins_is_no_denial(status, again):
    drain = Kill(DRAIN, "node", 5.0, 10.0, READY)
    history = [seen(5.5, status), seen(7.0, "True"), seen(8.5, "False"), seen(13.0, "True", "session/2")]
    pool = [seen(5.5, status, "session/pods"), seen(7.0, "True", "session/pods"), seen(8.5, "False", "session/pods")]
    assert len(untruths([drain], {POOLS: pool, GROUPS: history})) == again


def test_of_kills_in_haste_only_a_life_that_comes_back_counts():
    kills = [killed(RANK), killed(POD, at=11.5, lives={POOLS: READY[POOLS]})]
    late = [seen(19.0, "False", "session/pods"), seen(30.0, "True", "session/others")]
    assert untruths(kills, {POOLS: late, GROUPS: TOLD}) == []
    (found,) = untruths(kills, {POOLS: late, GROUPS: RELAPSED})
    assert found == "workergroups: Ready again 1.0 s after the rank was killed, in that life"


PLACEMENTS = ("p/uid-p/0/n-a", "p/uid-p/1/n-b")
RANKS = ("g/uid-g/7/0-of-2", "g/uid-g/7/1-of-2")


@pytest.mark.parametrize(
    ("placements", "actors", "world_size", "wrong"),
    [
        (PLACEMENTS, RANKS, 2, []),
        (PLACEMENTS, (*RANKS, "launcher"), 2, []),
        (PLACEMENTS, (), 0, []),
        (PLACEMENTS, RANKS[:1], 2, ["ranks [0] of incarnation 7 instead of [0, 1]"]),
        (PLACEMENTS, ("g/uid-g/6/0-of-2", *RANKS), 2, ["rank g/uid-g/6/0-of-2 of no group"]),
        (PLACEMENTS, RANKS[:1], 0, ["ranks [0] of incarnation 7 instead of []"]),
        (PLACEMENTS[:1], RANKS, 2, ["placement groups of nodes [0] instead of [0, 1]"]),
        ((*PLACEMENTS, "p/uid-p/1/n-c"), RANKS, 2, ["placement groups of nodes [0, 1, 1] instead of [0, 1]"]),
        ((*PLACEMENTS, "p/uid-old/0/n-c"), RANKS, 2, ["placement group p/uid-old/0/n-c of no pool"]),
        ((*PLACEMENTS, "mine"), RANKS, 2, ["placement group mine"]),
    ],
)
def test_what_is_held_without_an_owner(placements, actors, world_size, wrong):
    assert unowned(Held(placements, actors), "uid-p", 2, "uid-g", 7, world_size) == wrong


@pytest.mark.parametrize(
    ("log", "lost"),
    [
        ("", 0),
        (
            "attempt 000001 ends after step 7\n\nattempt 000002, incarnation 2: from step 7\n",
            0,
        ),
        ("attempt 000001 ends after step 7\nattempt 000002, incarnation 2: from step 0\n", 7),
        # The driver ended, too, and said nothing.
        ("attempt 000003, incarnation 2: from step 40\n", 0),
    ],
)
def test_a_training_that_goes_on_where_it_was_has_lost_no_step(log, lost):
    assert steps_lost(log) == lost
