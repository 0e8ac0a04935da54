"""Ranks of a group, and ranges of them."""

import pytest

from tests.unit.client.fake_cluster import FakeCluster, group
from workergroups_client.errors import ClientError, NotFoundError
from workergroups_client.objects.names import find
from workergroups_client.ray_cluster.ranks import RankActor, choose, ranks_of

RANKS = [RankActor(number, f"actor-{number}", "ALIVE", number, "node") for number in range(8)]


@pytest.mark.parametrize(
    ("wanted", "chosen"),
    [
        (None, list(range(8))),
        ("3", [3]),
        ("0-3", [0, 1, 2, 3]),
        ("0-1,7", [0, 1, 7]),
        ("5,2,5", [2, 5]),
        ("0-1, 7", [0, 1, 7]),
    ],
)
def test_ranks_are_chosen_by_ranges(wanted, chosen):
    assert [rank.rank for rank in choose(RANKS, wanted)] == chosen


ODD = ["", "a", "1-", "-1", "3-1", "1,,2", "0-99999999999", "1.5", "²", "0 3"]


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ("8", "there is no rank 8: the group has ranks 0-7"),
        ("0-9,12", "there is no rank 8-9,12:"),
        *((text, f"{text!r} is not a range of ranks: write 3, 0-3 or 0-3,7") for text in ODD),
    ],
)
def test_what_is_no_rank_is_refused(wanted, said):
    with pytest.raises(ClientError, match=said):
        choose(RANKS, wanted)


class Ray:
    """Ray's table of actors."""

    def __init__(self, *names):
        self.names = names

    def get(self, path, **query):
        actors = [
            {"name": name, "actor_id": name, "state": "ALIVE", "pid": 1, "node_id": "node"} for name in self.names
        ]
        return {"data": {"result": {"result": actors}}}


def test_only_ranks_of_the_groups_present_incarnation_count():
    found = find(FakeCluster(group("ppo", status={"incarnation": 2})), "ppo")
    ray = Ray(
        "ppo/uid-of-ppo/2/1-of-2", "ppo/uid-of-ppo/2/0-of-2", "ppo/uid-of-ppo/1/0-of-2", "ppo/old/2/0-of-2", "x", ""
    )
    assert [rank.rank for rank in ranks_of(ray, found)] == [0, 1]
    with pytest.raises(NotFoundError, match="group ppo has no ranks yet: workergroups status ppo says why"):
        ranks_of(Ray(), found)
