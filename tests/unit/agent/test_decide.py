"""What the executor does, from the plan and Ray's state."""

import dataclasses

import pytest

from tests.unit.agent.ray_world import (
    KEY,
    NODES,
    RESERVED,
    group,
    launches,
    placement,
    plan,
    pool,
    rank,
    ranks,
    reborn,
    state,
)
from workergroups.announcements.runs import RunRecord, RunStep
from workergroups.naming import RankName
from workergroups_agent.executor.decide import (
    Announce,
    AnnouncePool,
    CreatePlacement,
    EndRanks,
    LaunchGroup,
    Rebirth,
    RemovePlacement,
    RunGroup,
    decide,
)
from workergroups_agent.launch_state import launch_state
from workergroups_agent.placements import RankPlacement
from workergroups_agent.ray_state import JoinedNode
from workergroups_api.conditions import Explanation

WHY = Explanation("LaunchFailed", "ImportError: x")


def of_kind(kind, plan_, state_, launches_=None):
    return [action for action in decide(plan_, state_, launches_ or launches()) if isinstance(action, kind)]


def created(plan_, state_):
    return {action.name.index: action.name.node_id for action in of_kind(CreatePlacement, plan_, state_)}


def test_nodes_are_taken_in_the_order_of_the_pods_names():
    actions = of_kind(CreatePlacement, plan(pool()), state())
    assert [(action.name.index, action.name.node_id) for action in actions] == [(0, "n-b"), (1, "n-c")]
    assert actions[0].bundles == ({"CPU": 10.0, "GPU": 1.0},) * 2


def test_what_is_reserved_stays_where_it_is():
    assert created(plan(pool()), state(placement(index=0, node="n-c"))) == {1: "n-b"}


def test_the_nodes_of_a_pool_wait_for_each_other_and_for_no_other_pool():
    assert created(plan(pool(nodes=3), pool(nodes=1, name="q")), state()) == {0: "n-other"}


def test_a_pool_that_reserves_nothing_keeps_no_placement_group():
    bare = plan(pool(reserves=False))
    assert of_kind((CreatePlacement, AnnouncePool), bare, state()) == []
    assert of_kind(RemovePlacement, bare, state(*RESERVED)) == [RemovePlacement(each.name) for each in RESERVED]


def test_a_reserved_pool_is_announced_to_drivers():
    assert of_kind(AnnouncePool, plan(pool(nodes=3)), state()) == [AnnouncePool("p", "uid-p", 3)]


def test_a_node_that_is_lost_is_replaced_and_gives_up_the_old_place():
    lost = placement(index=0, node="n-gone", state="RESCHEDULING")
    actions = decide(plan(pool(nodes=1)), state(lost), launches())
    assert actions[0] == RemovePlacement(lost.name)
    assert created(plan(pool(nodes=1)), state(lost)) == {0: "n-b"}


@pytest.mark.parametrize("stray", [placement(uid="uid-of-another"), placement(index=1)])
def test_a_placement_group_without_an_owner_is_removed(stray):
    assert RemovePlacement(stray.name) in decide(plan(pool(nodes=1)), state(stray), launches())


MORE = NODES | {name: JoinedNode(name, f"p-worker-{name}", "p-1") for name in ("n-d", "n-e")}


@pytest.mark.parametrize(
    ("settled", "nodes", "places"),
    [
        (2, ["n-b", "n-c", "n-d"], {}),
        (2, ["n-b", "n-c", "n-d", "n-e"], {2: "n-d", 3: "n-e"}),
        (2, ["n-b", "n-d"], {1: "n-d"}),
        (0, ["n-b", "n-d"], {}),
        (2, ["n-d"], {}),
        (2, ["n-d", "n-e"], {0: "n-d", 1: "n-e"}),
    ],
    ids=[
        "new nodes wait for each other",
        "and then get the next numbers",
        "a node that had its bundles does not wait for them",
        "at the start all wait",
        "two that are lost wait for each other",
        "and for no others",
    ],
)
def test_nodes_that_a_pool_grows_by_wait_for_each_other_and_the_others_do_not_wait_for_them(settled, nodes, places):
    here = {name: MORE[name] for name in nodes}
    assert created(plan(pool(nodes=4, settled=settled)), state(*RESERVED, nodes=here)) == places


# Four nodes that joined, by their domains, and those of them that have their bundles, by index.
@pytest.mark.parametrize(
    ("domains", "kept", "places"),
    [
        ("1221", {}, "becd"),
        ("2211", {}, "debc"),
        (" 1 1", {}, "cebd"),
        ("    ", {}, "bcde"),
        ("1212", {0: "c"}, "cebd"),
        ("1212", {0: "c", 1: "b"}, "cbed"),
        ("1212", {0: "c", 1: "e", 2: "b"}, "cebd"),
        ("121?", {}, ""),
        ("121?", {3: "e"}, "bdce"),
        ("121?", {3: "c"}, "c"),
    ],
    ids=[
        "nodes of one domain are adjacent",
        "the first domain comes first",
        "nodes in no domain come last",
        "without domains the names decide",
        "a domain that has bundles comes first",
        "domains keep their order",
        "the last one takes the last place",
        "all wait for one whose domain is unknown",
        "nobody waits for one that has its bundles",
        "those that lack bundles wait for each other",
    ],
)
def test_nodes_are_numbered_along_the_topology(domains, kept, places):
    nodes = {f"n-{pod}": JoinedNode(f"n-{pod}", f"p-{pod}", "p-1") for pod in "bcde"}
    known = {f"p-{pod}": domain.strip() for pod, domain in zip("bcde", domains, strict=True) if domain != "?"}
    reserved = [placement(index=index, node=f"n-{pod}") for index, pod in kept.items()]
    found = created(plan(pool(nodes=4, domains=known)), state(*reserved, nodes=nodes))
    found |= {index: f"n-{pod}" for index, pod in kept.items()}
    assert "".join(found[index].removeprefix("n-") for index in sorted(found)) == places


def test_drivers_get_the_nodes_that_have_had_their_bundles():
    assert of_kind(AnnouncePool, plan(pool(nodes=4, settled=2)), state()) == [AnnouncePool("p", "uid-p", 2)]


OLD = RankName("g", "uid-g", 1, 2, 4)


@pytest.mark.parametrize(
    ("ranks_", "removed"), [([rank(name=OLD, node="n-c")], []), ([rank(name=OLD, node="n-b")], [1]), ([], [1])]
)
def test_a_node_that_a_pool_gives_up_keeps_its_bundles_until_the_ranks_there_have_ended(ranks_, removed):
    """They are of a group that runs on fewer nodes now, or is deleted."""
    smaller = plan(pool(nodes=1), group(("p", 0, 2), incarnation=2))
    actions = decide(smaller, state(*RESERVED, ranks=ranks_), launches())
    assert [each.name.index for each in actions if isinstance(each, RemovePlacement)] == removed
    assert bool([each for each in actions if isinstance(each, EndRanks)]) is bool(ranks_)
    dead = [rank(state="DEAD", name=OLD, node="n-c")]
    actions = decide(smaller, state(*RESERVED, ranks=dead), launches())
    assert RemovePlacement(RESERVED[1].name) in actions


def test_no_bundles_are_reserved_on_a_node_whose_last_ranks_still_run():
    smaller = plan(pool(nodes=1), group(("p", 0, 2), incarnation=2))
    here = {name: NODES[name] for name in ("n-c",)}
    assert created(smaller, state(RESERVED[1], ranks=[rank(name=OLD, node="n-c")], nodes=here)) == {}
    assert created(smaller, state(RESERVED[1], nodes=here)) == {0: "n-c"}


def test_nodes_of_the_cluster_that_are_no_pools_are_left_alone():
    assert {"n-head", "n-agent"} <= NODES.keys()
    actions = of_kind(CreatePlacement, plan(pool(), pool(nodes=1, name="q")), state())
    assert {action.name.node_id for action in actions} == {"n-b", "n-c", "n-other"}


def launched(*bundles, known=None, more=(), **kwargs):
    return of_kind(LaunchGroup, plan(pool(), group(*bundles), *more), state(*RESERVED, **kwargs), known)


def test_a_group_is_launched_when_all_its_bundles_are_reserved():
    (action,) = launched()
    assert action.placements == tuple(
        RankPlacement(where.name, bundle, bundle, 2, 0.1, 1, "GPU") for where in RESERVED for bundle in range(2)
    )


def test_local_ranks_count_the_groups_own_ranks_on_a_node():
    (action,) = launched(("p", 1, 2))
    assert [(where.bundle, where.local_rank, where.local_world_size) for where in action.placements] == [
        (1, 0, 1),
        (0, 0, 1),
    ]


def test_a_pool_may_appear_twice_and_in_any_order():
    (action,) = launched(("p", 3, 1), ("p", 0, 2))
    assert [(str(where.placement)[8:9], where.bundle, where.local_rank) for where in action.placements] == [
        ("1", 1, 0),
        ("0", 0, 0),
        ("0", 1, 1),
    ]


@pytest.mark.parametrize(("devices", "share"), [(0, 0), (1, 0.1), (4, 0.1)])
def test_a_rank_takes_the_same_small_share_of_a_bundle_of_any_size_and_sees_all_its_devices(devices, share):
    plan_ = plan(pool(devices=devices), group())
    (action,) = of_kind(LaunchGroup, plan_, state(*RESERVED))
    assert {(where.num_gpus, where.devices) for where in action.placements} == {(share, max(1, devices))}


def test_each_rank_takes_what_ray_calls_the_devices_of_its_own_pool():
    npus = pool(1, 2, name="q").model_copy(update={"bundle": {"CPU": 10.0, "NPU": 1.0}})
    none = pool(1, 2, devices=0)
    reserved = (placement(0, "n-b"), placement(0, "n-other", uid="uid-q", pool="q"))
    plan_ = plan(none, npus, group(("p", 0, 2), ("q", 0, 2)))
    (action,) = of_kind(LaunchGroup, plan_, state(*reserved))
    taken = [(where.device, where.num_gpus) for where in action.placements]
    assert taken == [(None, 0.0), (None, 0.0), ("NPU", 0.1), ("NPU", 0.1)]


def test_each_rank_sees_as_many_devices_as_its_own_pool_gives_to_a_process():
    pairs, fours = pool(1, 2, devices=2), pool(1, 2, devices=4, name="q")
    reserved = (placement(0, "n-b"), placement(0, "n-other", uid="uid-q", pool="q"))
    plan_ = plan(pairs, fours, group(("p", 0, 2), ("q", 0, 2)))
    (action,) = of_kind(LaunchGroup, plan_, state(*reserved))
    assert [where.devices for where in action.placements] == [2, 2, 4, 4]


@pytest.mark.parametrize(
    ("bundles", "is_launched"), [([("p", 0, 4)], False), ([("p", 0, 2)], True), ([("p", 1, 2)], False)]
)
def test_a_group_waits_while_one_of_its_bundles_is_not_reserved(bundles, is_launched):
    half = (RESERVED[0], placement(index=1, node="n-c", state="PENDING"))
    actions = of_kind(LaunchGroup, plan(pool(), group(*bundles)), state(*half))
    assert bool(actions) is is_launched


@pytest.mark.parametrize("bundles", [("p", 2, 4), ("of another cluster", 0, 1)])
def test_bundles_that_no_pool_has_are_waited_for(bundles):
    assert launched(bundles) == []


@pytest.mark.parametrize(
    "known",
    [
        launches(prepared=None),
        launches(running={KEY: None}),
        launches(failed={KEY: WHY}),
        launches(died={KEY: WHY}),
        launches(delayed={KEY: Explanation("Launching", "again soon")}),
        launches(begun=frozenset({KEY})),
    ],
)
def test_a_group_is_not_launched_without_its_launch_nor_twice(known):
    assert launched(known=known) == []


def test_another_incarnation_does_not_care_for_the_failure_of_the_one_before():
    plan_ = plan(pool(), group(incarnation=2))
    assert of_kind(LaunchGroup, plan_, state(*RESERVED), launches(failed={KEY: WHY}))


def test_a_group_is_launched_only_in_the_session_and_the_version_that_are_planned():
    for planned in (group(session=None), group(session="session-0"), group(revision="r2"), group(revision=None)):
        assert of_kind(LaunchGroup, plan(pool(), planned), state(*RESERVED)) == []


def test_ranks_that_are_there_are_adopted():
    assert of_kind((LaunchGroup, EndRanks), plan(pool(), group()), state(*RESERVED, ranks=ranks(0, 1, 2, 3))) == []


def test_dead_ranks_are_not_recreated():
    there = [*ranks(0, 2, 3), rank(1, state="DEAD")]
    assert launched(ranks=there) == []
    assert launched(ranks=ranks(0, 1, 2, 3, state="DEAD")) == []


def test_a_launch_that_was_cut_short_is_left_until_the_next_incarnation():
    plan_ = plan(pool(), group())
    assert of_kind((LaunchGroup, EndRanks), plan_, state(*RESERVED, ranks=ranks(0, 1))) == []
    plan_ = plan(pool(), group(incarnation=2))
    actions = decide(plan_, state(*RESERVED, ranks=ranks(0, 1)), launches())
    assert [type(action) for action in actions] == [Announce, EndRanks, AnnouncePool, LaunchGroup]


ONE_IS_DEAD = [*ranks(0, 2, 3), rank(1, state="DEAD")]


@pytest.mark.parametrize(
    ("births", "there", "rebirth"),
    [
        ({1: 1}, ONE_IS_DEAD, Rebirth(1, (1,), "actor-0")),
        # It may live, if it hangs.
        ({1: 1}, ranks(0, 1, 2, 3), Rebirth(1, (1,), "actor-0")),
        ({1: 1}, [*ONE_IS_DEAD, reborn(1, 1)], None),
        ({1: 1}, [*ONE_IS_DEAD, reborn(1, 1, "DEAD")], None),
        ({1: 2}, [*ONE_IS_DEAD, reborn(1, 1, "DEAD")], Rebirth(2, (1,), "actor-0")),
        ({0: 2, 1: 1}, [*ONE_IS_DEAD, reborn(1, 1)], Rebirth(2, (0,), None)),
        ({0: 1, 1: 2}, [*ranks(0, 1, 2, 3), reborn(0, 1)], Rebirth(2, (1,), "actor-0-1")),
        # Those of one restart together, one restart after the other, and that of rank 0 before the others.
        ({1: 1, 2: 1, 3: 2}, ranks(0), Rebirth(1, (1, 2), "actor-0")),
        ({0: 3, 1: 1}, ranks(2, 3), Rebirth(3, (0,), None)),
        ({0: 1, 1: 1}, ranks(2, 3), Rebirth(1, (0, 1), None)),
        # The plan has forgotten an early birth.
        ({2: 9}, [*ONE_IS_DEAD, reborn(1, 1), reborn(2, 9)], None),
    ],
)
def test_a_rank_is_recreated_alone_with_the_birth_that_is_planned(births, there, rebirth):
    actions = of_kind(LaunchGroup, plan(pool(), group(births=births)), state(*RESERVED, ranks=there))
    assert [action.rebirth for action in actions] == ([rebirth] if rebirth else [])
    if rebirth:
        (action,) = actions
        assert action.key == (*KEY, rebirth.number)
        assert action.used == tuple(action.placements[number] for number in rebirth.ranks)


def test_a_launch_that_was_cut_short_is_not_completed_by_a_restart_of_single_ranks():
    plan_ = plan(pool(), group(births={1: 1}))
    assert of_kind(LaunchGroup, plan_, state(*RESERVED, ranks=ranks(0, 1, 2))) == []


def test_a_rank_waits_for_its_bundle_after_the_loss_of_its_node():
    plan_, lost = plan(pool(), group(births={2: 1, 3: 1})), [*ranks(0, 1), *ranks(2, 3, state="DEAD")]
    assert of_kind(LaunchGroup, plan_, state(RESERVED[0], ranks=lost)) == []


def test_what_is_replaced_ends_after_drivers_could_learn_it():
    first, second, *_ = decide(
        plan(pool(), group(births={1: 1})), state(*RESERVED, ranks=[*ranks(0, 1, 2, 3), reborn(1, 1)]), launches()
    )
    assert first == Announce("g", "uid-g", 1, births={1: 1})
    assert second == EndRanks((RankName("g", "uid-g", 1, 1, 4),), second.node_ids)


@pytest.mark.parametrize(
    "stale",
    [RankName("g", "uid-before", 1, 0, 4), RankName("g", "uid-g", 0, 0, 4), RankName("other", "uid-other", 1, 0, 1)],
)
def test_ranks_without_an_owner_are_ended_after_their_successors_are_announced(stale):
    first, second, *_ = decide(plan(pool(), group()), state(*RESERVED, ranks=[rank(name=stale)]), launches())
    assert first == Announce("g", "uid-g", 1)
    assert isinstance(second, EndRanks)
    assert (second.names, second.node_ids[0]) == ((stale,), "n-b")


def test_drivers_are_told_that_the_failed_ranks_stay_as_they_are():
    failed = group().model_copy(update={"is_final": True})
    assert of_kind(Announce, plan(pool(), failed), state(*RESERVED)) == [Announce("g", "uid-g", 1, is_final=True)]


def test_an_incarnation_for_another_session_is_not_announced():
    assert of_kind(Announce, plan(pool(), group(session="session-0")), state(*RESERVED)) == []


def test_a_rank_that_waits_for_its_place_is_ended_from_a_pod_that_is_not_the_agents():
    plan_ = plan(pool())
    (action,) = of_kind(EndRanks, plan_, state(*RESERVED, ranks=[rank(state="PENDING_CREATION", node="")]))
    assert action.node_ids
    assert "n-agent" not in action.node_ids


WHOLE = ranks(0, 1, 2, 3)


@pytest.mark.parametrize(
    ("groups", "there", "seconds"),
    [
        ([group(incarnation=2)], WHOLE, 30),
        ([], WHOLE, 30),
        ([group().model_copy(update={"uid": "uid-again"})], WHOLE, 30),
        # One that has failed waits for nobody, and nobody for ranks that cannot answer yet.
        ([group(incarnation=2).model_copy(update={"cause": "rank 3: it was killed"})], WHOLE, 0),
        ([group(incarnation=2)], [*ranks(0, 1, 2), rank(3, "DEAD")], 0),
        ([group(incarnation=2)], [*ranks(0, 1, 2), rank(3, "PENDING_CREATION")], 0),
    ],
)
def test_ranks_that_nothing_is_wrong_with_are_told_before_they_end(groups, there, seconds):
    pool_ = pool().model_copy(update={"notice_seconds": 30})
    actions = decide(plan(pool_, *groups), state(*RESERVED, ranks=there), launches())
    (ended,) = [each for each in actions if isinstance(each, EndRanks)]
    assert ended.seconds == seconds
    assert len(ended.names) == len([each for each in there if each.is_alive])
    is_launched = bool([each for each in actions if isinstance(each, LaunchGroup)])
    assert is_launched == (bool(groups) and not seconds)


NOTICED = frozenset({"uid-g/1"})


@pytest.mark.parametrize("there", [WHOLE, [*ranks(0, 1, 2), rank(3, "DEAD")]])
@pytest.mark.parametrize("cause", [None, "rank 3: it was killed"])
def test_ranks_that_have_notice_keep_their_time_whatever_happens_to_others(there, cause):
    """One may die while it saves, or with the node from which they were told."""
    replaced = group(incarnation=2).model_copy(update={"cause": cause})
    seen = dataclasses.replace(state(*RESERVED, ranks=there), noticed=NOTICED)
    ended, *launched = of_kind((EndRanks, LaunchGroup), plan(pool(), replaced), seen)
    assert (ended.seconds, launched) == (30, [])
    waits = launch_state(replaced, plan(pool(), replaced), seen, launches())
    assert waits.reason == "WaitingForRanks"


def test_a_group_waits_for_the_ranks_of_another_one_that_had_its_place():
    others = [rank(number, name=RankName("other", "uid-other", 1, number, 4)) for number in range(4)]
    seen = state(*RESERVED, ranks=others)
    (ended,) = of_kind((EndRanks, LaunchGroup), plan(pool(), group()), seen)
    assert ended.seconds == 30
    # Not if that one stays on these nodes, nor if it heals, and so was there before.
    stays = group(incarnation=2).model_copy(update={"name": "other", "uid": "uid-other"})
    heals = group(incarnation=2).model_copy(update={"cause": "rank 0: it was killed"})
    for groups in ([group(), stays], [heals]):
        (launched,) = of_kind(LaunchGroup, plan(pool(), *groups), seen)
        assert launched.group.name == "g"


def test_an_incarnation_on_pools_of_different_grace_periods_ends_as_a_whole():
    short, long = pool(nodes=1), pool(nodes=1, name="q").model_copy(update={"notice_seconds": 3600})
    there = [*ranks(0, 1), *(rank(number, node="n-other") for number in (2, 3))]
    (ended,) = of_kind(EndRanks, plan(short, long), state(*RESERVED, ranks=there))
    assert (ended.seconds, len(ended.names)) == (30, 4)


def test_what_is_on_the_nodes_of_a_deleted_pool_ends_with_them():
    deleted = state(*RESERVED, ranks=WHOLE)
    assert of_kind((EndRanks, RemovePlacement), plan(pool(name="q")), deleted) == []


@pytest.mark.parametrize("left", [pool(name="q"), pool(reserves=False).model_copy(update={"gives_back": True})])
def test_ranks_of_a_deleted_or_suspended_pool_end_if_its_pods_stay(left):
    held = plan(left).model_copy(update={"pods_stay": True})
    (ended,) = of_kind(EndRanks, held, state(*RESERVED, ranks=WHOLE))
    assert len(ended.names) == 4


def suspended():
    return group(session=None, incarnation=2, revision=None).model_copy(update={"bundles": ()})


def test_ranks_of_a_suspended_group_end_after_drivers_could_learn_it():
    actions = decide(plan(pool(), suspended()), state(*RESERVED, ranks=ranks(0, 1)), launches())
    assert actions[0] == Announce("g", "uid-g", 2, False)
    assert [type(action) for action in actions[1:]] == [EndRanks, AnnouncePool]
    assert {name.rank for name in actions[1].names} == {0, 1}


GIVES_BACK = pool(reserves=False).model_copy(update={"gives_back": True})


def test_what_is_on_the_nodes_of_a_suspended_pool_ends_with_them():
    """Kubernetes tells the ranks there before it ends the pods."""
    seen = state(*RESERVED, ranks=ranks(0, 1))
    assert of_kind((EndRanks, RemovePlacement), plan(GIVES_BACK, suspended()), seen) == []
    # On a node of another pool, nobody else ends them.
    elsewhere = state(*RESERVED, ranks=[rank(0), rank(1, node="n-other")])
    (action,) = of_kind(EndRanks, plan(GIVES_BACK, pool(name="q"), suspended()), elsewhere)
    assert {name.rank for name in action.names} == {1}
    # What a node leaves behind is removed.
    gone = placement(index=0, node="n-gone")
    assert of_kind(RemovePlacement, plan(GIVES_BACK), state(gone)) == [RemovePlacement(gone.name)]


def test_a_partly_lost_pool_keeps_the_bundles_that_survived():
    """Nobody else gets them while the pool waits for its other node."""
    survivors = {name: node for name, node in NODES.items() if name != "n-c"}
    actions = decide(plan(pool()), state(*RESERVED, nodes=survivors), launches())
    assert actions == [RemovePlacement(RESERVED[1].name), AnnouncePool("p", "uid-p", 2)]


BEGUN, RETURNED = RunRecord(RunStep.BEGUN), RunRecord(RunStep.RETURNED)
FOUR = ranks(0, 1, 2, 3)


@pytest.mark.parametrize(
    ("planned", "there", "begun", "known", "is_called"),
    [
        (group(runs=True), FOUR, {}, launches(), True),
        # After an executor that could not call all of them: those that were called ignore it.
        (group(runs=True), FOUR, {0: BEGUN, 1: RETURNED}, launches(), True),
        (group(runs=True), FOUR, dict.fromkeys(range(4), BEGUN), launches(), False),
        (group(), FOUR, {}, launches(), False),
        # All ranks together, when all are ready.
        (group(runs=True), [*ranks(0, 1, 2), rank(3, "PENDING_CREATION")], {}, launches(), False),
        (group(runs=True), [*ranks(0, 1, 2), rank(3, "DEAD")], {}, launches(), False),
        (group(runs=True), ranks(0, 1, 2), {}, launches(), False),
        # Ranks of what the group was before, and a group whose code changes.
        (group(runs=True, revision="r2"), FOUR, {}, launches(), False),
        (group(runs=True, revision=None), FOUR, {}, launches(), False),
        (group(runs=True), FOUR, {}, launches(prepared=None), False),
        (group(runs=True, incarnation=2), FOUR, {}, launches(), False),
    ],
)
def test_a_method_is_called_on_all_ranks_when_they_are_ready(planned, there, begun, known, is_called):
    calls = of_kind(RunGroup, plan(pool(), planned), state(*RESERVED, ranks=there, runs=begun), known)
    assert [(call.node_id, [name.rank for name in call.ranks]) for call in calls] == (
        [("n-b", [0, 1, 2, 3])] if is_called else []
    )


def test_the_ranks_of_a_run_that_has_ended_are_ended_under_the_same_incarnation():
    finished = group(runs=True, session=None).model_copy(update={"bundles": ()})
    actions = of_kind((Announce, EndRanks, LaunchGroup, RunGroup), plan(pool(), finished), state(*RESERVED, ranks=FOUR))
    assert [type(action) for action in actions] == [Announce, EndRanks]
    assert actions[0] == Announce("g", "uid-g", 1)
