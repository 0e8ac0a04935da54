"""Which reserved bundles a pool of a program's gets."""

import pytest

from workergroups.for_verl.choice import OfferedNode, choose, shortage

BUNDLE = {"CPU": 10.0, "GPU": 1.0}
WANTED = {"CPU": 3, "GPU": 1}


def nodes(pool, *counts, bundle=BUNDLE):
    return [OfferedNode(pool, index, f"{pool}-{index}", [bundle] * count) for index, count in enumerate(counts)]


def keys(node, *numbers):
    return {(node, number) for number in numbers}


def chosen(process_on_nodes, offered, taken=frozenset(), name="global_pool", wanted=WANTED):
    shares = choose(name, process_on_nodes, wanted, offered, taken)
    return shares and [(share.node.placement_group, share.first, share.count) for share in shares]


@pytest.mark.parametrize(
    ("process_on_nodes", "offered", "taken", "expected"),
    [
        ([8, 8], nodes("ppo", 8, 8), (), [("ppo-0", 0, 8), ("ppo-1", 0, 8)]),
        # A node of verl's is a node of the pool's if there are enough, or else a part of one.
        ([4, 4], nodes("ppo", 8, 8), (), [("ppo-0", 0, 4), ("ppo-1", 0, 4)]),
        ([2] * 4, nodes("ppo", 8), (), [("ppo-0", first, 2) for first in (0, 2, 4, 6)]),
        # What is left after another pool of verl's.
        (
            [4, 4],
            nodes("ppo", 8, 8),
            keys("ppo-0", 0, 1, 2, 3) | keys("ppo-1", 0, 1, 2, 3),
            [("ppo-0", 4, 4), ("ppo-1", 4, 4)],
        ),
        ([2], nodes("ppo", 4), keys("ppo-0", 1), [("ppo-0", 2, 2)]),
        ([3], nodes("ppo", 4), keys("ppo-0", 1), None),
        ([2], nodes("ppo", 4), keys("ppo-0", 0, 2), None),
        # The pool's order, whatever the order of the offers.
        ([1, 1], list(reversed(nodes("ppo", 1, 1))), (), [("ppo-0", 0, 1), ("ppo-1", 0, 1)]),
        # The pool that leaves the least; the pool with verl's name; several pools only if none is enough.
        ([8], nodes("actor", 8, 8) + nodes("rollout", 8), (), [("rollout-0", 0, 8)]),
        ([8], nodes("global-pool", 8, 8) + nodes("rollout", 8), (), [("global-pool-0", 0, 8)]),
        ([8, 8], nodes("a", 8) + nodes("b", 8), (), [("a-0", 0, 8), ("b-0", 0, 8)]),
        ([8, 8, 8], nodes("a", 8) + nodes("b", 8), (), None),
        ([9], nodes("ppo", 8, 8), (), None),
        ([1], [], (), None),
        ([1], nodes("ppo", 1, bundle={"CPU": 10.0}), (), None),
        ([1], nodes("ppo", 1, bundle={"CPU": 2.0, "GPU": 1.0}), (), None),
        ([1], nodes("ppo", 1, bundle={"CPU": 10.0, "GPU": 2.0}), (), [("ppo-0", 0, 1)]),
    ],
)
def test_a_pool_gets_free_bundles_by_shape_in_the_order_of_the_nodes(process_on_nodes, offered, taken, expected):
    assert chosen(process_on_nodes, offered, taken) == expected


def test_what_is_short_is_said_in_a_sentence():
    offered = nodes("ppo", 8, 8) + nodes("small", 2)
    said = shortage("global_pool", [8, 8], WANTED, offered, keys("ppo-1", 0, 1))
    assert said == (
        "the program's pool 'global_pool' needs 8 + 8 bundles on its nodes, each with 3 CPU, 1 GPU. Free, and large "
        "enough, are: pool ppo: 8 + 6 of 8 + 8 on its nodes; pool small: 2 of 2 on its nodes"
    )
