"""Which ranks are missing in a collective, by torch's flight recorders."""

import pytest

from workergroups.stacks.flight_recorder import Flight, Joined, read
from workergroups.stacks.missing_ranks import missing_ranks

WORLD = "0:default_pg"
ALL = (0, 1, 2)


def flight(rank, last, completed=None, name="nccl:all_reduce", group=WORLD, members=ALL, **more):
    joined = Joined(last, last if completed is None else completed, name, members)
    return Flight(rank, {group: joined, **more})


def waiting(rank, last=7, **more):
    return flight(rank, last, last - 1, **more)


@pytest.mark.parametrize(
    ("flights", "ranks"),
    [
        # The rank that is behind, although each of the others waits.
        ([waiting(0), flight(1, 6), waiting(2)], (1,)),
        # NCCL returns before a collective ends, so the others may be several ahead.
        ([flight(0, 12, 6), flight(1, 6), flight(2, 9, 6)], (1,)),
        # A rank that has joined nothing at all, or does not answer.
        ([waiting(0, last=1), Flight(1), waiting(2, last=1)], (1,)),
        ([waiting(0), None, waiting(2)], (1,)),
        ([waiting(0), None, flight(2, 6)], (2,)),
        # Most ranks called the right collective.
        ([waiting(0), waiting(1, name="nccl:broadcast"), waiting(2)], (1,)),
        # All have joined, or nobody waits, or nobody answers.
        ([waiting(0), waiting(1), waiting(2)], None),
        ([flight(0, 7), flight(1, 6), flight(2, 7)], None),
        ([None, None, None], None),
        ([Flight(0), Flight(1), Flight(2)], None),
        ([], None),
        # Torch does not tell the members: those that have joined before are known.
        ([waiting(0, members=()), flight(1, 6, members=()), waiting(2, members=())], (1,)),
        ([waiting(0, members=()), None, waiting(2, members=())], None),
        # Only members are missing.
        ([waiting(0, members=(0, 1)), flight(1, 6, members=(0, 1)), Flight(2)], (1,)),
        # Torch numbers the ranks in another order.
        ([waiting(2), Flight(0), waiting(1)], (1,)),
    ],
)
def test_who_is_missing(flights, ranks):
    found = missing_ranks(dict(enumerate(flights)))
    assert (found and found.ranks) == ranks


def test_a_rank_that_waits_elsewhere_is_not_the_first():
    pair = Joined(3, 2, "nccl:send", (1, 2))
    flights = {
        0: waiting(0),
        # It is missing in the world's collective, since it waits for rank 2 in another process group.
        1: flight(1, 6, pair=pair),
        2: Flight(2, {WORLD: Joined(7, 6, "nccl:all_reduce", ALL), "pair": Joined(2, 2, "nccl:send", (1, 2))}),
    }
    assert missing_ranks(flights).ranks == (1,), "both wait, and each is missing where the other waits"
    flights[2] = Flight(2, {WORLD: Joined(6, 6, "nccl:all_reduce", ALL), "pair": Joined(2, 2, "nccl:send", (1, 2))})
    found = missing_ranks(flights)
    assert (found.ranks, found.process_group) == ((2,), "pair")


def test_the_sentence():
    assert str(missing_ranks({0: waiting(0), 1: flight(1, 6), 2: waiting(2)})) == (
        "suspect: rank 1, by torch's flight recorder: it has not joined nccl:all_reduce, collective 7 of process group "
        "default_pg"
    )
    others = {0: waiting(0), 1: waiting(1, name="nccl:broadcast"), 2: waiting(2)}
    assert str(missing_ranks(others)) == (
        "suspect: rank 1, by torch's flight recorder: it called nccl:broadcast instead of nccl:all_reduce, collective "
        "7 of process group default_pg"
    )


@pytest.mark.parametrize(
    "answer",
    [
        None,
        [],
        {},
        {"rank": "0", "joined": {}},
        {"rank": True, "joined": {}},
        {"rank": 0, "joined": []},
        {"rank": 0, "joined": {"a": {"last": 10**30, "completed": 0, "name": "", "members": []}}},
        {"rank": 0, "joined": {"a": {"last": 1, "completed": 0, "name": "", "members": ["x"]}}},
        {"rank": 0, "joined": {"a": {"last": 1, "completed": 0, "name": "", "members": 7}}},
    ],
)
def test_nonsense_is_no_answer(answer):
    assert read(answer) is None


def test_an_answer_is_bounded():
    joined = {"last": 1, "completed": 0, "name": "n" * 10_000, "members": [0] * 100_000}
    found = read({"rank": 0, "joined": {f"{number}": joined for number in range(1000)}})
    assert len(found.joined) == 64
    assert len(found.joined["0"].name) == 100
    assert len(found.joined["0"].members) == 10_000
