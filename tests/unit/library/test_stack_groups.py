"""Which ranks the others wait for, by their stacks."""

import pytest

from workergroups.stacks.rank_stack import Doing, Frame, RankStack
from workergroups.stacks.stack_groups import diagnose

TORCH = "/usr/lib/python3.11/site-packages/torch"
STEP = Frame("/code/trainer.py", 41, "step")
READ = Frame("/code/data.py", 17, "read_shard")


def method(*frames):
    return RankStack(Doing.METHOD, frames)


def collective(name, line=3008, step=STEP):
    return method(
        Frame(f"{TORCH}/distributed/distributed_c10d.py", line, name),
        Frame(f"{TORCH}/distributed/c10d_logger.py", 83, "wrapper"),
        step,
    )


REDUCE = collective("all_reduce")
BROADCAST = collective("broadcast", step=Frame("/code/trainer.py", 50, "share"))
READING = method(READ, STEP)
LOCKED = method(Frame("/usr/lib/python3.11/threading.py", 320, "wait"), Frame("/code/trainer.py", 60, "meet"))
LOOPING = method(Frame("/code/trainer.py", 59, "meet"))
ITEM = method(Frame("/code/trainer.py", 45, "step"))
IDLE = RankStack(Doing.NOTHING)
AWAITING = RankStack(Doing.ASYNC)
FROZEN = RankStack(Doing.UNKNOWN, note="no stacks within 3 s")


@pytest.mark.parametrize(
    ("stacks", "suspects"),
    [
        # Those in a collective wait for those that are in none, however many these are.
        ([REDUCE, REDUCE, READING, REDUCE], (2,)),
        ([REDUCE, READING, READING, READING], (1, 2, 3)),
        ([READING, REDUCE], (0,)),
        ([REDUCE, IDLE], (1,)),
        ([REDUCE, FROZEN, REDUCE, READING], (1, 3)),
        # Of ranks in different collectives, most are right.
        ([REDUCE, REDUCE, BROADCAST], (2,)),
        ([REDUCE, BROADCAST], ()),
        # Without a collective, most ranks wait at the same place.
        ([LOCKED, LOCKED, READING, LOCKED], (2,)),
        ([ITEM, ITEM, method(Frame("/code/trainer.py", 44, "step"))], (2,)),
        ([LOCKED, READING], ()),
        ([LOCKED, LOCKED, READING, READING], ()),
        # Without such a place, the driver waits for those that still run.
        ([IDLE, READING], (1,)),
        ([IDLE, LOCKED, READING], (1, 2)),
        ([IDLE, IDLE, READING, READING], (2, 3)),
        ([IDLE, LOCKED, LOCKED], (0,)),
        # A rank without stacks is suspect, however many there are.
        ([FROZEN, READING, READING], (0,)),
        ([FROZEN, FROZEN, READING], (0, 1)),
        ([FROZEN, FROZEN, LOCKED, LOCKED, READING], (0, 1, 4)),
        ([FROZEN, REDUCE, REDUCE], (0,)),
        ([FROZEN, FROZEN], ()),
        # Ranks that wait in a loop are at any of its lines.
        ([LOCKED, LOOPING, LOOPING, READING], (3,)),
        ([LOCKED, LOCKED, LOOPING, LOCKED], (2,)),
        # Lines within libraries do not count.
        ([REDUCE, collective("all_reduce", line=2990)], ()),
        ([REDUCE, REDUCE, REDUCE], ()),
        ([AWAITING, AWAITING], ()),
        ([READING], ()),
        ([method()], ()),
    ],
)
def test_suspects(stacks, suspects):
    assert diagnose(dict(enumerate(stacks))).suspects == suspects


def test_suspects_come_first_then_the_largest_block():
    diagnosis = diagnose({0: BROADCAST, 1: REDUCE, 2: READING, 3: REDUCE})
    assert [block.ranks for block in diagnosis.blocks] == [(2,), (1, 3), (0,)]
    assert [block.is_suspect for block in diagnosis.blocks] == [True, False, False]


@pytest.mark.parametrize(
    ("stacks", "sentence"),
    [
        (
            [REDUCE, REDUCE, READING, REDUCE],
            "ranks 0-1,3 wait in torch.distributed.all_reduce (trainer.py:41 in step); "
            "suspect: rank 2 in data.py:17 in read_shard",
        ),
        (
            [REDUCE, IDLE],
            "rank 0 waits in torch.distributed.all_reduce (trainer.py:41 in step); suspect: rank 1 in no method",
        ),
        (
            [LOCKED, FROZEN, LOCKED],
            "ranks 0,2 are in trainer.py:60 in meet; suspect: rank 1 without stacks (no stacks within 3 s)",
        ),
        (
            [REDUCE, REDUCE],
            "ranks 0-1 wait in torch.distributed.all_reduce (trainer.py:41 in step); "
            "no rank is suspect, since all stacks are alike",
        ),
        (
            [LOCKED, READING],
            "rank 0 is in trainer.py:60 in meet; rank 1 is in data.py:17 in read_shard; "
            "no rank is suspect, since no place has most of the ranks",
        ),
        ([FROZEN, FROZEN], "ranks 0-1 are without stacks (no stacks within 3 s)"),
        ([READING], "rank 0 is in data.py:17 in read_shard"),
        ([AWAITING], "rank 0 is in an event loop"),
        ([method()], "rank 0 is at the start of a method"),
    ],
)
def test_the_sentence(stacks, sentence):
    assert str(diagnose(dict(enumerate(stacks)))) == sentence


def test_ranks_that_are_at_the_same_place_for_other_reasons_differ_by_their_callers():
    wait = Frame("/code/files.py", 3, "wait_for")
    stacks = [method(wait, STEP), method(wait, READ, STEP), method(wait, STEP)]
    assert str(diagnose(dict(enumerate(stacks)))) == (
        "ranks 0,2 are in files.py:3 in wait_for; "
        "suspect: rank 1 in files.py:3 in wait_for, called from data.py:17 in read_shard"
    )


def test_a_sentence_about_many_places_is_short():
    stacks = {rank: method(Frame("/code/trainer.py", rank, "step")) for rank in range(512)}
    assert str(diagnose(stacks)).count("is in trainer.py") == 4
    assert "and 508 more" in str(diagnose(stacks))


def test_a_package_is_named_by_its_folder():
    assert diagnose({0: method(Frame("/code/loader/__init__.py", 3, "load"))}).blocks[0].where == (
        "in loader/__init__.py:3 in load"
    )
