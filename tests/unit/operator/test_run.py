"""Groups that run a method: when they are complete, when they have taken too long, and what is left of them."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.unit.operator.make import HEAD, NOW, SESSION, decided, group, observed, ready_pool, statuses, written
from workergroups_api.conditions import Condition, Explanation, find
from workergroups_api.launch import digest
from workergroups_api.manifest import RESOURCE_POOL
from workergroups_api.run import RunStatus
from workergroups_api.worker_group import WorkerGroupSpec
from workergroups_operator.desired.plan import cluster_plan
from workergroups_operator.observed import AgentHeartbeat, UnreadableObject
from workergroups_operator.policy.idle import in_use
from workergroups_operator.policy.incarnation import GroupIncarnation, latest
from workergroups_operator.policy.run import expires_at, present_run, started

RUN = {"method": "train"}
BUNDLES = [{"pool": "actors", "uid": "uid-actors", "start": 0, "count": 4}]


def ago(seconds):
    return NOW - timedelta(seconds=seconds)


def spec(**more):
    return WorkerGroupSpec.model_validate({"worker": {"class": "train.Trainer"}, "run": RUN} | more)


def run(revision="asked", since: int | None = 100, reason: str | None = None):
    end = None if reason is None else ago(10)
    start = None if since is None else ago(since)
    return RunStatus(revision=revision, start_time=start, end_time=end, reason=reason)


@pytest.mark.parametrize(
    ("before", "limit", "has_returned", "reason"),
    [
        (run(), None, False, None),
        (run(), None, True, "Complete"),
        (run(), 101, False, None),
        (run(), 100, False, "DeadlineExceeded"),
        # Who arrives at the last moment has arrived.
        (run(), 100, True, "Complete"),
        (run(since=None), 1, False, None),
        # What has ended stays so.
        (run(reason="Complete"), 1, False, "Complete"),
        (run(reason="DeadlineExceeded"), 1000, True, "DeadlineExceeded"),
        # What another spec has reached is not of this one.
        (run("other"), 100, True, None),
        (run("other", reason="Complete"), None, False, None),
        (None, 1, False, None),
    ],
)
def test_a_run_ends_when_all_ranks_have_returned_or_its_time_is_over(before, limit, has_returned, reason):
    last = GroupIncarnation(3, run=before)
    found = present_run(spec(activeDeadlineSeconds=limit), last, "asked", NOW, has_returned=has_returned)
    assert (found.revision, found.reason) == ("asked", reason)
    assert (found.end_time is None) is (reason is None)


def test_a_run_starts_when_there_is_a_session_and_only_once():
    assert started(None, SESSION, NOW) is None
    assert started(run(since=None), None, NOW).start_time is None
    assert started(run(since=None), SESSION, NOW).start_time == NOW
    assert started(run(since=50), SESSION, NOW).start_time == ago(50)


def test_an_end_outlives_a_status_or_a_plan_that_was_not_written():
    going = GroupIncarnation(3, "r", SESSION, run=run())
    ended = GroupIncarnation(3, "r", None, run=run(reason="Complete"))
    assert latest(going, ended) is latest(ended, going) is ended
    again = GroupIncarnation(4, "r", None)
    assert latest(ended, again) is again


def running(returned=0, failures=(), since=100, status: Any = None, **more: Any):
    """A group whose four ranks run `train`."""
    made = group(**({"run": RUN} | more))
    report = {"session": SESSION, "incarnation": 3, "state": "Launched", "created": 4, "readyCount": 4, "ready": "0-3"}
    report |= {"run": {"begun": 4, "returned": returned}, "failures": failures}
    # What the operator would have written.
    revision = decided(observed(pools=(ready_pool(),), groups=(made,))).groups.incarnations["trainer"].revision
    before = {
        "incarnation": 3,
        "revision": revision,
        "session": SESSION,
        "bundles": BUNDLES,
        "run": run(digest(made.launch.to_json()), since).to_json(),
        "ranks": report,
        "observedGeneration": 1,
    } | (status or {})
    return made.model_copy(update={"status": type(made.status).model_validate(before)})


def world(subject, *others, **more: Any):
    return observed(pools=(ready_pool(),), groups=(subject, *others), **more)


def conditions(seen, **more: Any):
    found = next(each for each in statuses(seen, **more).updates if each.metadata["name"] == "trainer").after
    return {each.type: (each.status, each.reason) for each in found.conditions}, found


def test_a_group_that_runs_is_ready_and_not_complete():
    found, status = conditions(world(running(returned=1)))
    assert (found["Ready"], found["Complete"]) == (("True", "RanksReady"), ("False", "RunBegun"))
    message = "train has begun on 4 of 4 ranks, and returned on 1"
    assert find(status.conditions, "Complete").message == message


def test_a_group_whose_run_ends_while_its_pool_cannot_be_read_is_planned_once():
    seen = world(running(returned=4))
    before = cluster_plan(seen, decided(world(running(returned=1))))
    odd = UnreadableObject(RESOURCE_POOL, {"metadata": seen.pools[0].metadata}, Explanation("InvalidSpec", "odd"))
    seen = replace(seen, pools=(), unreadable=(odd,), plan=before)
    assert [each.name for each in cluster_plan(seen, decided(seen)).groups] == ["trainer"]


def test_other_groups_do_not_have_the_condition():
    found, status = conditions(world(group()))
    assert "Complete" not in found
    assert status.run is None


def ended(seen):
    """Return the group as it is after a reconcile in which its run has ended, with what the agent then reports."""
    before = seen.groups[0]
    update = next(each for each in statuses(seen).updates if each.metadata["name"] == "trainer")
    number = update.after.incarnation
    ranks = {"session": SESSION, "incarnation": number, "state": "Suspended"}
    after = update.after.to_json() | {"ranks": ranks}
    return before.model_copy(update={"status": type(before.status).model_validate(after)})


def test_a_group_whose_ranks_have_all_returned_is_complete_and_has_no_ranks():
    seen = world(running(returned=4))
    planned = cluster_plan(seen, decided(seen)).groups[0]
    assert (planned.incarnation, planned.session, planned.bundles) == (3, None, ())
    found, status = conditions(seen)
    assert found["Complete"] == found["Ready"] == ("True", "Complete")
    assert (found["Failed"][0], found["Progressing"][0], found["UpToDate"][0]) == ("False", "True", "True")
    assert (found["RanksReady"], found["PoolsReady"]) == (("False", "Complete"), ("False", "Complete"))
    assert (status.incarnation, status.run.reason, status.run.end_time, status.deadline) == (3, "Complete", NOW, None)


@pytest.mark.parametrize("more", [{}, {"agent": AgentHeartbeat()}, {"at": NOW + timedelta(days=1)}])
def test_it_stays_complete_for_ever(more):
    complete = ended(world(running(returned=4)))
    for groups in ((complete,), (complete.model_copy(update={"status": complete.status}), group("other"))):
        found, status = conditions(replace(world(*groups), **more))
        assert found["Complete"] == found["Ready"] == ("True", "Complete")
        assert status.incarnation == 3


def test_it_stays_complete_if_its_pool_is_deleted():
    found, _ = conditions(observed(groups=(ended(world(running(returned=4))),)))
    assert found["Complete"] == found["Ready"] == ("True", "Complete")


def test_its_bundles_are_free_and_it_keeps_no_pool_awake():
    complete = ended(world(running(returned=4)))
    pool = ready_pool()
    narrow = pool.model_copy(update={"spec": pool.spec.model_copy(update={"max_colocate_count": 1})})
    both = observed(pools=(narrow,), groups=(complete, group("other")))
    assert decided(both).groups.bundles["other"].bundles[0].count == 4
    assert in_use(narrow, observed(pools=(narrow,), groups=(complete,))) != "group trainer wants it"
    assert in_use(narrow, observed(pools=(narrow,), groups=(running(),))) == "group trainer wants it"


def test_another_spec_is_another_run_in_another_incarnation():
    complete = ended(world(running(returned=4)))
    changed = group(run={"method": "evaluate"}).model_copy(update={"status": complete.status})
    seen = world(changed)
    planned = cluster_plan(seen, decided(seen)).groups[0]
    assert (planned.incarnation, planned.session, planned.world_size) == (4, SESSION, 4)
    found, status = conditions(seen)
    assert (found["Complete"], found["Ready"][0]) == (("False", "RunNotBegun"), "False")
    assert (status.run.start_time, status.run.reason) == (NOW, None)


def test_a_group_whose_run_is_removed_from_the_spec_is_a_group_like_any_other():
    complete = ended(world(running(returned=4)))
    found, status = conditions(world(group().model_copy(update={"status": complete.status})))
    assert (status.incarnation, status.run) == (4, None)
    assert "Complete" not in found


def test_other_code_alone_does_not_run_it_again():
    code = {"code": {"configMap": {"name": "code"}}}
    made = ended(world(running(returned=4, **code), launch_revisions={"trainer": "with the old code"}))
    seen = world(made, launch_revisions={"trainer": "with the new code"})
    assert decided(seen).groups.finished["trainer"].reason == "Complete"
    assert written(made) is None
    assert decided(world(made)).groups.finished["trainer"].reason == "Complete"


def test_a_run_that_takes_too_long_has_failed_and_its_ranks_end():
    seen = world(running(returned=3, activeDeadlineSeconds=60))
    assert cluster_plan(seen, decided(seen)).groups[0].bundles == ()
    found, status = conditions(seen)
    assert found["Failed"] == found["Stalled"] == ("True", "DeadlineExceeded")
    assert found["Ready"] == found["Complete"] == found["Progressing"] == ("False", "DeadlineExceeded")
    assert "100 s after they were first asked for" in find(status.conditions, "Ready").message
    # A longer limit comes too late.
    late = ended(seen)
    longer = late.model_copy(update={"spec": late.spec.model_copy(update={"active_deadline_seconds": 1000})})
    assert conditions(world(longer))[0]["Failed"] == ("True", "DeadlineExceeded")


def test_the_operator_looks_again_when_the_time_of_a_run_is_over():
    assert statuses(world(running(activeDeadlineSeconds=107))).requeue_after == 7


def test_an_agent_that_is_lost_completes_nothing():
    found, _ = conditions(world(running(returned=4), agent=AgentHeartbeat(known=(HEAD, SESSION), away_seconds=60.0)))
    assert found["Complete"][0] == "Unknown"


RAISED = [{"rank": 1, "reason": "RunFailed", "message": "ValueError: nan", "pod": "p-0"}]


def test_an_exception_restarts_the_group_and_the_time_of_the_run_goes_on():
    seen = world(running(returned=3, failures=RAISED))
    decisions = decided(seen)
    assert decisions.groups.incarnations["trainer"].number == 4
    assert cluster_plan(seen, decisions).groups[0].world_size == 4
    _, status = conditions(seen)
    assert status.failures[0].reason == "RunFailed"
    assert status.run.start_time == ago(100)


def test_an_exception_that_restarts_nothing_fails_the_group_whose_ranks_stay():
    seen = world(running(returned=3, failures=RAISED, failurePolicy={"restart": "Never"}))
    assert cluster_plan(seen, decided(seen)).groups[0].world_size == 4
    found, status = conditions(seen)
    assert (found["Failed"], found["Complete"][0]) == (("True", "RunFailed"), "False")
    assert "ValueError: nan" in find(status.conditions, "Failed").message


def test_a_rank_that_died_after_all_have_returned_changes_nothing():
    died = [{"rank": 1, "reason": "ProcessExited", "message": "it exited", "pod": "p-0"}]
    assert conditions(world(running(returned=4, failures=died)))[0]["Complete"][0] == "True"


def test_a_run_that_is_suspended_begins_again_when_it_is_resumed():
    asleep = ended(world(running(returned=1, suspend=True)))
    assert (asleep.status.incarnation, asleep.status.run) == (4, None)
    awake = asleep.model_copy(update={"spec": asleep.spec.model_copy(update={"suspend": False})})
    _, status = conditions(world(awake))
    assert (status.incarnation, status.run.start_time) == (4, NOW)


def told(type_, seconds, status: Any = "True"):
    return Condition(type=type_, status=status, reason="r", message="", last_transition_time=ago(seconds))


@pytest.mark.parametrize(
    ("ttl", "before", "concluded", "left"),
    [
        (None, told("Complete", 5), told("Complete", 5), None),
        (0, told("Complete", 5), told("Complete", 5), -5),
        (60, told("Complete", 5), told("Complete", 5), 55),
        (60, told("Failed", 100), told("Failed", 100), -40),
        # The status must tell of it first, and nothing may have changed.
        (0, told("Complete", 5, "False"), told("Complete", 0), None),
        (0, told("Failed", 5), told("Failed", 0, "False"), None),
    ],
)
def test_a_finished_group_expires_after_its_status_has_told_of_the_end(ttl, before, concluded, left):
    found = expires_at(spec(ttlSecondsAfterFinished=ttl), (before,), (concluded,))
    assert (None if found is None else (found - NOW).total_seconds()) == left


def test_an_expired_group_is_deleted_unless_it_has_changed():
    complete = ended(world(running(returned=4, ttlSecondsAfterFinished=30)))
    soon = statuses(world(complete))
    assert (soon.expired, soon.requeue_after) == ((), 30)
    later = {"at": NOW + timedelta(seconds=31)}
    assert statuses(world(complete, **later), now=later["at"]).expired == (complete,)
    changed = complete.model_copy(update={"metadata": complete.metadata | {"generation": 2}})
    assert statuses(world(changed, **later), now=later["at"]).expired == ()
