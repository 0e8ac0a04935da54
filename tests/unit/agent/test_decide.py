"""What the executor does, from the plan and Ray's state."""

import pytest
from ray_world import NODES, group, placement, plan, pool, rank, state

from workergroups.naming import RankName
from workergroups_agent.executor.decide import (
    CreatePlacement,
    EndRanks,
    Launch,
    RemovePlacement,
    Seat,
    decide,
)

NOTHING = frozenset()


def created(actions):
    return {action.name.index: action.name.node_id for action in actions if isinstance(action, CreatePlacement)}


def test_entries_get_nodes_of_their_size_in_the_order_of_the_pods_names():
    actions = decide(plan(pool(nodes=(2, 1, 2))), state(), NOTHING)
    assert created(actions) == {0: "n-b", 1: "n-single", 2: "n-c"}
    first = next(action for action in actions if action.name.index == 0)
    assert first.bundles == ({"CPU": 10.0, "GPU": 1.0},) * 2


def test_what_is_reserved_stays_where_it_is():
    kept = placement(index=0, node="n-c")
    assert created(decide(plan(pool(nodes=(2, 2))), state(kept), NOTHING)) == {1: "n-b"}


def test_an_entry_waits_while_there_is_no_node_for_it():
    assert decide(plan(pool(nodes=(7,))), state(), NOTHING) == []


def test_entries_of_one_size_wait_for_each_other_and_for_nobody_else():
    assert created(decide(plan(pool(nodes=(2, 1, 2, 2))), state(), NOTHING)) == {1: "n-single"}


def test_an_entry_whose_node_is_lost_moves_and_gives_up_the_old_place():
    lost = placement(index=0, node="n-gone", state="RESCHEDULING")
    actions = decide(plan(pool(nodes=(2,))), state(lost), NOTHING)
    assert actions[0] == RemovePlacement(lost.name)
    assert created(actions) == {0: "n-b"}


@pytest.mark.parametrize("stray", [placement(uid="uid-of-another"), placement(index=1)])
def test_a_placement_group_without_an_owner_is_removed(stray):
    assert RemovePlacement(stray.name) in decide(plan(pool(nodes=(2,))), state(stray), NOTHING)


RESERVED = (placement(index=0, node="n-b"), placement(index=1, node="n-c"))
TWO_NODES = pool(nodes=(2, 2))


def launches(actions):
    return [action for action in actions if isinstance(action, Launch)]


def test_a_group_is_launched_when_all_its_seats_are_reserved():
    (launch,) = launches(decide(plan(TWO_NODES, group(count=4)), state(*RESERVED), NOTHING))
    assert launch.seats == tuple(Seat(where.name, bundle, bundle, 2) for where in RESERVED for bundle in range(2))
    assert launch.num_gpus == 0.1


def test_local_ranks_count_the_groups_own_ranks_on_a_node():
    (launch,) = launches(decide(plan(TWO_NODES, group(start=1, count=2)), state(*RESERVED), NOTHING))
    assert [(seat.bundle, seat.local_rank, seat.local_world_size) for seat in launch.seats] == [(1, 0, 1), (0, 0, 1)]


def test_a_group_waits_while_one_of_its_seats_is_not_reserved():
    pending = placement(index=1, node="n-c", state="PENDING")
    assert launches(decide(plan(TWO_NODES, group(count=4)), state(RESERVED[0], pending), NOTHING)) == []
    assert launches(decide(plan(TWO_NODES, group(count=2)), state(RESERVED[0], pending), NOTHING)) != []


def test_a_group_that_is_being_launched_or_has_failed_to_is_let_be():
    assert launches(decide(plan(TWO_NODES, group()), state(*RESERVED), frozenset({("uid-g", 1)}))) == []


def test_ranks_that_are_there_are_adopted():
    there = [rank(number) for number in range(4)]
    assert decide(plan(TWO_NODES, group()), state(*RESERVED, ranks=there), NOTHING) == []


def test_dead_ranks_are_not_made_again():
    there = [rank(0), rank(1, state="DEAD"), rank(2), rank(3)]
    assert decide(plan(TWO_NODES, group()), state(*RESERVED, ranks=there), NOTHING) == []


def test_a_launch_that_was_cut_short_is_cleared_away_first():
    actions = decide(plan(TWO_NODES, group()), state(*RESERVED, ranks=[rank(0), rank(1)]), NOTHING)
    assert actions == [EndRanks((rank(0).name, rank(1).name), "n-b")]


@pytest.mark.parametrize(
    "stale",
    [RankName("g", "uid-before", 1, 0, 4), RankName("g", "uid-g", 0, 0, 4), RankName("other", "uid-other", 1, 0, 1)],
)
def test_ranks_without_an_owner_are_ended(stale):
    actions = decide(plan(TWO_NODES, group()), state(*RESERVED, ranks=[rank(name=stale)]), NOTHING)
    assert EndRanks((stale,), "n-b") in actions


def test_a_rank_that_waits_for_its_place_is_ended_from_a_pod_that_is_not_the_agents():
    (action,) = decide(plan(TWO_NODES), state(*RESERVED, ranks=[rank(state="PENDING_CREATION", node="")]), NOTHING)
    assert NODES[action.node_id].node_group is not None


def test_nodes_of_the_cluster_that_are_no_pools_are_left_alone():
    assert {"n-head", "n-agent"} <= NODES.keys()
    assert set(created(decide(plan(pool(nodes=(2, 2, 1))), state(), NOTHING)).values()) == {"n-b", "n-c", "n-single"}
