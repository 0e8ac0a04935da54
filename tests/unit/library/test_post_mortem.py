"""Which exceptions are looked at before they leave a rank."""

import asyncio
import pickle

import pytest
from ray import cloudpickle

from workergroups.debugger.post_mortem import with_post_mortem

seen = []


class Rank:
    """Methods of all kinds, each of which raises."""

    def plain(self, what="plain"):
        raise LookupError(what)

    async def late(self):
        raise LookupError("late")

    def pieces(self):
        yield 1
        raise LookupError("pieces")

    async def late_pieces(self):
        yield 1
        raise LookupError("late pieces")

    def caught(self):
        try:
            self.plain()
        except LookupError:
            return "caught"

    def through(self):
        self.plain()

    async def through_late(self):
        await self.late()

    def leaves(self):
        raise SystemExit(0)

    @staticmethod
    def apart():
        return "apart"


plain_with_mark = Rank.plain
plain_with_mark.mark = "registered"


@pytest.fixture
def rank():
    seen.clear()
    return type("Rank", (Rank,), with_post_mortem(Rank, lambda error: seen.append(str(error))))()


async def all_of(pieces):
    return [piece async for piece in pieces]


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda rank: rank.plain(), "plain"),
        (lambda rank: rank.plain(what="other"), "other"),
        (lambda rank: asyncio.run(rank.late()), "late"),
        (lambda rank: list(rank.pieces()), "pieces"),
        (lambda rank: asyncio.run(all_of(rank.late_pieces())), "late pieces"),
        (lambda rank: rank.through(), "plain"),
        (lambda rank: asyncio.run(rank.through_late()), "late"),
    ],
)
def test_an_exception_is_looked_at_once_and_raised(rank, call, error):
    with pytest.raises(LookupError, match=error):
        call(rank)
    assert seen == [error]


def test_what_is_caught_on_the_way_is_not_looked_at(rank):
    assert rank.caught() == "caught"
    assert rank.apart() == "apart"
    with pytest.raises(SystemExit):
        rank.leaves()
    assert seen == []


def test_methods_keep_their_names_and_what_they_are_registered_as(rank):
    assert (rank.plain.__name__, rank.plain.mark) == ("plain", "registered")


def test_it_is_the_same_after_the_way_to_a_rank(capsys):
    class Far(Rank):
        pass

    sent = cloudpickle.dumps(type("Far", (Far,), with_post_mortem(Far, print)))
    far = pickle.loads(sent)()
    assert far.caught() == "caught"
    with pytest.raises(LookupError):
        far.through()
    assert capsys.readouterr().out == "plain\n"
