"""What the observer reports, from the plan, Ray's state and what the executor knows of launches."""

import json

import pytest

from tests.unit.agent.ray_world import (
    KEY,
    NODES,
    RESERVED,
    SESSION,
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
from workergroups.ray_private.death import Death
from workergroups_agent.exchange import PreparedLaunch
from workergroups_agent.launch_state import Heard, launches_to_tell
from workergroups_agent.observer import report as observer_report
from workergroups_api.conditions import Explanation
from workergroups_api.report import MAX_FAILURES, MAX_NODES, MAX_PAUSES, LastWords, pods_digest

LAST_WORDS = {"uid-g": (LastWords(incarnation=1, rank=2, text="the end"),)}


def report(plan_, state_, launches_, silence=None):
    """What an executor that sees the same tells the observer, and what that makes of it."""
    heard = Heard(launches_to_tell(plan_, state_, launches_), silence)
    return observer_report.report(plan_, state_, launches_.prepared, heard, LAST_WORDS, {}, {})


def pool_report(*placements, nodes=2):
    return report(plan(pool(nodes=nodes)), state(*placements), launches()).pools["p"].report


def group_report(*there, known=None, reserved=True, planned=None):
    state_ = state(*(RESERVED if reserved else ()), ranks=there)
    return report(plan(pool(), planned or group()), state_, known or launches()).groups["g"].report


def test_each_report_names_the_session_and_the_object():
    reports = report(plan(pool(), group()), state(), launches())
    assert (reports.session, reports.pools["p"].uid, reports.groups["g"].uid) == (SESSION, "uid-p", "uid-g")
    assert reports.pools["p"].report.session == reports.groups["g"].report.session == SESSION


def test_a_pool_says_which_nodes_are_reserved_and_of_the_others_how_far_they_are():
    said = pool_report(placement(index=1, node="n-b"), placement(index=0, node="n-c", state="PENDING"), nodes=3)
    assert (said.reserved_nodes, said.reserved) == (1, "1")
    assert [(node.index, node.state, node.pod) for node in said.nodes] == [
        (0, "Reserving", "p-worker-c"),
        (2, "Waiting", None),
    ]


def test_a_pool_says_which_pods_have_joined():
    said = pool_report()
    assert said.joined_nodes == 2
    assert said.joined_pods == pods_digest(["p-worker-b", "p-worker-c"])


def test_a_pool_says_on_which_pods_its_nodes_are_and_of_which_plan_it_speaks():
    said = pool_report(placement(index=1, node="n-b"), placement(index=0, node="n-c"))
    assert (said.reserved, said.pods, said.leaving) == ("0-1", "p-worker-{c,b}", "")
    assert (said.generation, said.planned_nodes) == (7, 2)


def test_a_pool_that_shrinks_says_whose_bundles_are_not_released_yet():
    said = pool_report(placement(index=2, node="n-b"), placement(index=0, node="n-c"), nodes=1)
    assert (said.reserved, said.pods, said.leaving) == ("0", "p-worker-c", "2")
    gone = pool_report(placement(index=2, node="n-gone"), placement(index=0, node="n-c"), nodes=1)
    assert gone.leaving == ""


def test_a_placement_group_of_a_node_that_no_pool_can_have_holds_nothing():
    """A user can give a placement group any name."""
    assert pool_report(placement(index=512, node="n-c"), placement(index=10**8, node="n-b")).leaving == ""


def test_a_pool_that_reserves_nothing_says_who_has_joined_and_misses_nothing():
    said = report(plan(pool(reserves=False)), state(), launches()).pools["p"].report
    assert (said.joined_nodes, said.reserved_nodes, said.nodes, said.message) == (2, 0, (), None)
    assert said.pods == "p-worker-{b,c}"


def test_only_the_first_nodes_that_are_not_reserved_are_reported():
    assert [node.index for node in pool_report(RESERVED[0], nodes=512).nodes] == list(range(1, MAX_NODES + 1))


@pytest.mark.parametrize(
    ("scheduling_state", "words"),
    [("INFEASIBLE", "fewer resources than its bundles need"), ("NO_RESOURCES", "hold the Ray node's resources")],
)
def test_a_reservation_that_fails_says_why(scheduling_state, words):
    said = pool_report(placement(index=0, node="n-b", state="PENDING", scheduling_state=scheduling_state))
    assert words in said.message
    assert said.reserved == ""


NO_CODE = PreparedLaunch(uid="uid-g", missing=Explanation("WaitingForCode", "there is no ConfigMap code: create it"))
FAILED = Explanation("LaunchFailed", "ImportError: x")


OWNER_DIED = rank(3, state="DEAD", death=Death("OwnerDied", "Owner's worker process has crashed.", ""))


@pytest.mark.parametrize(
    ("there", "more", "expected", "words"),
    [
        ((), {"reserved": False}, ("WaitingForPools", 0, 0), None),
        ((), {"planned": group(session="session-0")}, ("WaitingForPools", 0, 0), "Ray was started again"),
        ((), {"known": launches(prepared=None)}, ("WaitingForCode", 0, 0), "to read the WorkerGroup"),
        ((), {"known": launches(NO_CODE)}, ("WaitingForCode", 0, 0), "there is no ConfigMap code: create it"),
        ((), {"planned": group(revision="r2")}, ("WaitingForCode", 0, 0), "waiting for the operator's plan"),
        ((), {}, ("Launching", 0, 0), None),
        (
            (rank(0), rank(1, state="PENDING_CREATION")),
            {"known": launches(running={KEY: None})},
            ("Launching", 2, 1),
            None,
        ),
        ((), {"known": launches(running={KEY: "for the kubelet"})}, ("Launching", 0, 0), "for the kubelet"),
        (
            (),
            {"known": launches(delayed={KEY: Explanation("Launching", "did not start")})},
            ("Launching", 0, 0),
            "did not start",
        ),
        ((), {"known": launches(failed={KEY: FAILED})}, ("LaunchFailed", 0, 0), "ImportError: x"),
        (ranks(0, 1, state="DEAD"), {"known": launches(failed={KEY: FAILED})}, ("LaunchFailed", 2, 0), "ImportError"),
        ((), {"known": launches(died={KEY: FAILED})}, ("LaunchFailed", 0, 0), "ImportError: x"),
        (ranks(0), {"known": launches(died={KEY: FAILED})}, ("LaunchInterrupted", 1, 1), "1 of 4 ranks"),
        (ranks(0, 1), {}, ("LaunchInterrupted", 2, 2), "cut short when 2 of 4 ranks"),
        (ranks(0, 1, state="DEAD"), {}, ("LaunchInterrupted", 2, 0), "cut short when 2 of 4 ranks"),
        ((), {"known": launches(begun=frozenset({KEY}))}, ("LaunchInterrupted", 0, 0), "cut short"),
        ((*ranks(0, 1, 2), OWNER_DIED), {}, ("LaunchInterrupted", 4, 3), "process ended while ranks were created"),
        (ranks(0, 1, 2, 3), {"known": launches(failed={KEY: FAILED})}, ("Launched", 4, 4), None),
        (ranks(0, 1, 2, 3), {"planned": group(session="session-0")}, ("Launched", 4, 4), None),
        (ranks(0, 1, 2, 3), {"planned": group(incarnation=2)}, ("WaitingForRanks", 0, 0), "4 earlier ranks"),
    ],
)
def test_a_group_says_how_far_it_is(there, more, expected, words):
    said = group_report(*there, **more)
    assert (said.state, said.created, said.ready_count) == expected
    assert (words in said.message) if words else said.message is None


def test_a_rank_that_is_recreated_alone_is_not_there_until_it_is_created():
    planned, there = group(births={1: 2}), [*ranks(0, 2, 3), rank(1, state="DEAD")]
    found = group_report(*there, planned=planned)
    assert (found.birth, found.state, found.created, found.ready, found.failed) == (2, "Launching", 3, "0,2-3", "")
    found = group_report(*there, planned=planned, reserved=False)
    assert (found.state, found.created, found.failures) == ("WaitingForPools", 3, ())
    found = group_report(*there, reborn(1, 2), planned=planned)
    assert (found.state, found.created, found.ready) == ("Launched", 4, "0-3")
    found = group_report(*there, reborn(1, 2, "DEAD"), planned=planned)
    assert (found.state, found.failed, [each.birth for each in found.failures]) == ("Launched", "1", [2])


def failures(rank_):
    return group_report(rank(0), rank(1), rank_, rank(3)).failures


A_HUNDRED = group(("p", 0, 100))


def a_hundred_ranks(state="ALIVE"):
    return [rank(number, state, name=RankName("g", "uid-g", 1, number, 100)) for number in range(100)]


def test_a_dead_rank_says_why_and_where_it_was():
    (failure,) = failures(rank(2, state="DEAD", death=Death("ProcessDied", "killed by signal 9", "")))
    assert (failure.rank, failure.reason, failure.pod) == (2, "ProcessDied", "p-worker-b")
    assert failure.message == "killed by signal 9"
    assert group_report(rank(0), rank(1), rank(2, state="DEAD"), rank(3)).ready == "0-1,3"


@pytest.mark.parametrize(
    ("reason", "reported"),
    [("ProcessDied", "NodeLost"), ("Removed", "NodeLost"), ("ConstructorFailed", "ConstructorFailed")],
)
def test_a_rank_that_went_with_its_node_reports_it(reason, reported):
    (failure,) = failures(rank(2, state="DEAD", death=Death(reason, "words", ""), node="n-gone"))
    assert (failure.reason, failure.pod) == (reported, "p-worker-gone")


def test_only_the_first_failures_are_reported_and_their_messages_are_short_and_plain():
    odd = Death("ConstructorFailed", "\U0001f4a5 " + "x" * 40_000 + "\0\ud800 end", "")
    (failure,) = failures(rank(2, state="DEAD", death=odd))
    assert len(failure.message) <= 1024
    assert failure.message.endswith("\N{REPLACEMENT CHARACTER}" * 2 + " end")
    many = group_report(*a_hundred_ranks("DEAD"), planned=A_HUNDRED)
    assert [failure.rank for failure in many.failures] == list(range(MAX_FAILURES))


@pytest.mark.parametrize(("message", "kib"), [("killed by signal 9", 20), ("x" * 40_000, 32)])
def test_a_report_of_4096_ranks_of_which_half_died_is_small(message, kib):
    death, numbers = Death("ConstructorFailed", message, ""), range(0, 4096, 2)
    half = [rank(n, "DEAD", death, name=RankName("g", "uid-g", 1, n, 4096)) for n in numbers]
    half += [rank(n + 1, name=RankName("g", "uid-g", 1, n + 1, 4096)) for n in numbers]
    seen = state(*RESERVED, ranks=half, pauses=range(1, 4096, 2))
    said = report(plan(pool(), group(("p", 0, 4096))), seen, launches()).groups["g"].report
    assert len(json.dumps(said.to_json())) < kib * 1024


def test_pods_of_other_pools_are_not_this_pools():
    assert {node.pod for node in NODES.values()} > {"p-worker-b", "p-worker-c"}
    assert report(plan(pool(name="q", nodes=1)), state(), launches()).pools["q"].report.joined_nodes == 1


def paused(*there, pauses):
    state_ = state(*RESERVED, ranks=there, pauses=pauses)
    return report(plan(pool(), group()), state_, launches()).groups["g"].report


def test_what_dead_ranks_printed_last_is_reported_whichever_incarnation_runs():
    assert group_report(*ranks(0, 1, 2, 3)).last_words == LAST_WORDS["uid-g"]


def test_ranks_that_wait_for_a_debugger_are_reported_with_their_places():
    said = paused(*ranks(0, 1, 2, 3), pauses=(1, 2))
    assert said.paused == "1-2"
    first = said.pauses[0]
    assert (first.rank, first.pod, first.attached) == (1, "p-worker-c", False)
    assert first.where == "/code/train.py:12 in Trainer.step"
    assert first.since.isoformat() == "2001-09-09T01:46:40+00:00"


def test_a_dead_rank_is_not_paused():
    assert paused(rank(0), rank(1, "DEAD"), pauses=(1,)).pauses == ()


def test_of_many_paused_ranks_all_are_told_as_ranges_and_the_first_with_their_places():
    seen = state(ranks=a_hundred_ranks(), pauses=range(100))
    said = report(plan(pool(), A_HUNDRED), seen, launches()).groups["g"].report
    assert (said.paused, len(said.pauses)) == ("0-99", MAX_PAUSES)


SILENCE = "the executor does not answer"


def observed(*there, heard, reserved=True):
    state_ = state(*(RESERVED if reserved else ()), ranks=there)
    return observer_report.report(plan(pool(), group()), state_, launches().prepared, heard, {}, {}, {})


@pytest.mark.parametrize("number", range(4))
def test_ranks_of_which_the_executor_has_not_told_yet_are_a_launch_under_way(number):
    said = observed(*ranks(*range(number)), heard=Heard()).groups["g"].report
    assert (said.state, said.created) == ("Launching", number)


def test_a_launch_is_over_for_the_observer_when_the_executor_reports_it():
    cut_short = Explanation("LaunchInterrupted", "cut short")
    said = observed(*ranks(0), heard=Heard({KEY: cut_short})).groups["g"].report
    assert (said.state, said.message) == ("LaunchInterrupted", "cut short")


def test_a_silent_executor_is_named_by_what_waits_for_it():
    reports = observed(heard=Heard(silence=SILENCE))
    assert (reports.groups["g"].report.state, reports.groups["g"].report.message) == ("Launching", SILENCE)
    assert reports.pools["p"].report.message is None
    reports = observed(heard=Heard(silence=SILENCE), reserved=False)
    assert reports.pools["p"].report.message == SILENCE


def test_a_silent_executor_takes_nothing_from_what_is_seen():
    reports = observed(*ranks(0, 1, 2), rank(3, "DEAD"), heard=Heard(silence=SILENCE))
    said = reports.groups["g"].report
    assert (said.state, said.ready, said.message) == ("Launched", "0-2", None)
    assert [failure.rank for failure in said.failures] == [3]


def test_nodes_that_have_not_joined_do_not_wait_for_the_executor():
    said = report(plan(pool(nodes=3)), state(), launches(), silence=SILENCE).pools["p"].report
    assert (said.joined_nodes, said.message) == (2, None)


def test_nodes_wait_until_the_plan_says_where_they_are():
    said = report(plan(pool(domains={"p-worker-b": "a"})), state(), launches(), silence=SILENCE).pools["p"].report
    assert (
        said.message == "waiting until the operator knows where in the topology 1 of the pods are, such as p-worker-c"
    )
    known = plan(pool(domains={"p-worker-b": "a", "p-worker-c": ""}))
    assert report(known, state(), launches()).pools["p"].report.message is None


@pytest.mark.parametrize(
    ("there", "state_", "words"),
    [
        (ranks(0, 1), "Suspending", "2 ranks of earlier"),
        (ranks(0, state="DEAD"), "Suspended", None),
        ([], "Suspended", None),
    ],
)
def test_a_suspended_group_has_ranks_left_or_none(there, state_, words):
    planned = group(session=None, incarnation=2, revision=None).model_copy(update={"bundles": ()})
    said = group_report(*there, planned=planned)
    assert (said.incarnation, said.state, said.created) == (2, state_, 0)
    assert said.message is None if words is None else words in said.message


def run_report(planned, runs, *there):
    return report(plan(pool(), planned), state(*RESERVED, ranks=there, runs=runs), launches()).groups["g"].report


def test_a_group_says_how_far_its_run_is():
    runs = {0: RunRecord(RunStep.RETURNED), 1: RunRecord(RunStep.BEGUN), 7: RunRecord(RunStep.RETURNED)}
    found = run_report(group(runs=True), runs, *ranks(0, 1, 2), rank(3, "DEAD"))
    assert (found.run.begun, found.run.returned) == (2, 1)
    assert [failure.rank for failure in found.failures] == [3]
    assert run_report(group(runs=True), {}).run.begun == 0
    assert run_report(group(), runs, *ranks(0, 1, 2, 3)).run is None


def test_an_exception_of_the_run_is_a_failure_of_a_rank_that_lives_or_has_died_since():
    runs = dict.fromkeys((1, 2), RunRecord(RunStep.RAISED, "ValueError: \x1bnan"))
    found = run_report(group(runs=True), runs, *ranks(0, 1, 3), rank(2, "DEAD"))
    expected = [(number, "RunFailed", "ValueError: \ufffdnan", "p-worker-b") for number in (1, 2)]
    assert [(each.rank, each.reason, each.message, each.pod) for each in found.failures] == expected
    assert (found.ready, found.run.returned) == ("0-1,3", 0)


def test_an_exception_of_the_run_of_a_rank_that_was_recreated_is_not_that_of_its_predecessor():
    runs = {"1-2": RunRecord(RunStep.RAISED, "ValueError: nan")}
    planned = group(runs=True).model_copy(update={"births": {1: 2}})
    found = run_report(planned, runs, *ranks(0, 2, 3), rank(1, "DEAD"), reborn(1, 2))
    assert [(each.rank, each.birth, each.reason) for each in found.failures] == [(1, 2, "RunFailed")]
