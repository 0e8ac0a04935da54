"""Whatever the garbage collector and the operator do at the same time, no child is left without an owner."""

from dataclasses import replace
from itertools import permutations

import pytest

from tests.unit.operator.make import child, observed, pool
from workergroups_operator.desired.ownership import owned

POOLS = (pool("actors"), pool("critics", clusterName="actors"))
MANIFEST = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "actors-plan"}, "data": {}}


def owners(live, pools):
    """The owners with which the operator applies the object that it has read, for the pools that it has read."""
    return owned(MANIFEST, replace(observed(pools=pools), children=live))["metadata"]["ownerReferences"]


def read(present):
    return child("ConfigMap", "actors-plan", metadata={"ownerReferences": present})


class Cluster:
    """Two pools that are deleted, while the garbage collector and the operator each look once and write once."""

    def __init__(self):
        self.pools, self.owners = list(POOLS), owners({}, POOLS)
        self.listed, self.found, self.applied = list(self.owners), [], None

    def delete_pool(self):
        del self.pools[0]

    def collector_asks_for_an_owner(self):
        owner = self.listed[len(self.found)]
        self.found.append(owner["uid"] in {pool.uid for pool in self.pools})

    def collector_writes(self):
        """Remove owners that are gone, if others are not; delete an object that has none left."""
        gone = [owner["uid"] for owner, is_there in zip(self.listed, self.found, strict=True) if not is_there]
        if len(gone) < len(self.listed):
            self.owners = [owner for owner in self.owners if owner["uid"] not in gone]

    def operator_reads(self):
        self.applied = owners(read(self.owners), tuple(self.pools)) if self.pools else None

    def operator_writes(self):
        self.owners = self.applied or self.owners


STEPS = {
    "pools": ("delete_pool", "delete_pool"),
    "collector": ("collector_asks_for_an_owner", "collector_asks_for_an_owner", "collector_writes"),
    "operator": ("operator_reads", "operator_writes"),
}
ORDERS = sorted(set(permutations([who for who, steps in STEPS.items() for _ in steps])))


def play(order):
    cluster, steps = Cluster(), {who: iter(each) for who, each in STEPS.items()}
    for who in order:
        getattr(cluster, next(steps[who]))()
    return cluster.owners


def test_in_every_order_an_owner_is_left_for_whom_the_garbage_collector_deletes_the_object():
    assert [order for order in ORDERS if not play(order)] == []


@pytest.mark.parametrize(
    ("live", "pools", "names"),
    [
        ({}, POOLS, ["actors", "critics"]),
        (read(owners({}, POOLS)), POOLS[1:], ["actors", "critics"]),
        (read(owners({}, POOLS[1:])), POOLS, ["critics", "actors"]),
        (read([{"apiVersion": "v1", "kind": "Pod", "name": "of-others", "uid": "1"}]), POOLS[:1], ["actors"]),
        (read([owners({}, POOLS)[0] | {"controller": True}]), POOLS[:1], ["actors"]),
    ],
)
def test_the_operator_adds_owners_and_never_removes_one(live, pools, names):
    found = owners(live, pools)
    assert [owner["name"] for owner in found] == names
    assert all(owner.keys() == {"apiVersion", "kind", "name", "uid"} for owner in found)


def test_a_pool_that_is_gone_changes_nothing_until_the_garbage_collector_has_removed_it():
    both, one = (owned(MANIFEST, observed(pools=pools)) for pools in (POOLS, POOLS[1:]))
    live = {("ConfigMap", "actors-plan"): both}
    assert owned(MANIFEST, replace(observed(pools=POOLS[1:]), children=live)) == both
    assert both["metadata"]["annotations"] == one["metadata"]["annotations"]
