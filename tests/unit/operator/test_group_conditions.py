"""What a group says of itself, from what is observed."""

from datetime import timedelta
from typing import Any

import pytest

from tests.unit.operator.make import HEAD, NOW, SESSION, decided, group, observed, pool, ready_pool, status_of, statuses
from workergroups_api.conditions import find
from workergroups_operator.desired.plan import cluster_plan
from workergroups_operator.observed import AgentHeartbeat


def update_of(group_, *pools_, **parts):
    return status_of(observed(pools=pools_, groups=(group_,), **parts))


def ranks(**report: Any) -> dict[str, Any]:
    defaults = {"session": SESSION, "incarnation": 1, "state": "Launched", "created": 4}
    return {"ranks": defaults | {"readyCount": 4, "ready": "0-3"} | report}


NEVER = {"restart": "Never"}


def failure(rank: int, **more: Any) -> dict[str, Any]:
    return {"rank": rank, "reason": "ConstructorFailed", "message": "ValueError: boom", "pod": "p-0"} | more


def test_a_group_with_all_ranks_is_ready():
    update = update_of(group(status=ranks()), ready_pool())
    assert (update.ready.status, update.ready.message) == ("True", "4 of 4 ranks ready")
    after = update.after
    assert (after.world_size, after.ready_ranks, after.incarnation, after.session) == (4, 4, 1, SESSION)


def test_a_group_runs_on_the_pool_of_its_own_name_unless_it_says_otherwise():
    assert update_of(group("actors", pools=[], status=ranks()), ready_pool()).ready.status == "True"


@pytest.mark.parametrize(
    ("status_", "reason", "words"),
    [
        ({}, "Launching", "0 of 4 ranks created"),
        (
            ranks(state="WaitingForCode", created=0, readyCount=0, message="there is no ConfigMap code: create it"),
            "WaitingForCode",
            "there is no ConfigMap code: create it",
        ),
        (ranks(state="Launching", created=1, readyCount=0), "Launching", "1 of 4 ranks created"),
        (
            ranks(state="LaunchFailed", created=0, readyCount=0, message="ModuleNotFoundError: No module named 'x'"),
            "LaunchFailed",
            "ModuleNotFoundError: No module named 'x'; a package comes with the pool's spec.image or spec.setup, after "
            "a restart of the pool; correct spec.worker",
        ),
        (ranks(readyCount=3), "RanksStarting", "3 of 4 ranks ready"),
        (
            ranks(readyCount=2, failures=[failure(1), failure(3)]),
            "ConstructorFailed",
            "rank 1 in pod p-0 (and 1 more): ValueError: boom; 2 of 4 ranks ready; correct spec.worker or spec.roles, "
            "spec.env or the code, and the ranks start again; to start them unchanged: workergroups restart trainer",
        ),
        (ranks(incarnation=7), "Launching", "0 of 4 ranks created"),
        (ranks(session="before"), "Launching", "0 of 4 ranks created"),
        (ranks(state="AReasonOfTheFuture", created=0, readyCount=0), "AReasonOfTheFuture", "0 of 4"),
    ],
)
def test_a_group_says_how_far_it_is(status_, reason, words):
    ready = update_of(group(status=status_, failurePolicy=NEVER), ready_pool()).ready
    assert (ready.status, ready.reason) == ("False", reason)
    assert words in ready.message


@pytest.mark.parametrize(
    ("state", "is_cause"),
    [("WaitingForCode", True), ("WaitingForEnvironment", True), ("Launching", False), ("WaitingForPools", False)],
)
def test_what_its_author_must_supply_is_a_cause_and_so_an_event(state, is_cause):
    waits = ranks(state=state, created=0, readyCount=0, message="create it")
    assert update_of(group(status=waits), ready_pool()).is_cause == is_cause


def test_a_failure_that_waiting_does_not_mend_keeps_its_reason_past_the_deadline():
    late = group(status=ranks(failures=[failure(0)]), failurePolicy=NEVER, progressDeadlineSeconds=5)
    update = update_of(late, ready_pool())
    assert update.ready.reason == "ConstructorFailed"
    assert update.after.deadline is None


def test_a_dead_rank_is_the_reason_even_while_the_pool_gets_its_node_back():
    lost = group(status=ranks(failures=[failure(0, reason="NodeLost")]))
    assert update_of(lost, pool()).ready.reason == "NodeLost"


def test_a_group_whose_pool_is_not_ready_passes_on_why():
    ready = update_of(group(status=ranks()), pool()).ready
    assert ready.reason == "PoolNotReady"
    assert ready.message.startswith("pool actors: 0 of 2 nodes joined Ray")


def test_a_group_without_its_pool_says_which_field_names_it():
    update = update_of(group(pools=["elsewhere"]))
    assert update.ready.reason == "PoolNotFound"
    assert update.ready.message.startswith("spec.pools[0]: there is no usable ResourcePool elsewhere")
    assert update.after.world_size is None


def test_with_a_lost_agent_nobody_knows_of_the_ranks():
    silent = AgentHeartbeat(SESSION, (HEAD, SESSION), is_silent=True)
    update = update_of(group(status=ranks()), ready_pool(), agent=silent)
    assert find(update.after.conditions, "RanksReady").status == "Unknown"
    assert update.after.ready_ranks is None


def doubts(why, *uids, **more):
    return AgentHeartbeat(SESSION, (HEAD, SESSION), doubts=dict.fromkeys(uids, why), **more)


@pytest.mark.parametrize("uid", ["uid-trainer", "*"])
def test_a_status_that_is_not_vouched_for_is_not_believed(uid):
    update = update_of(group(status=ranks()), ready_pool(), agent=doubts("403: no", uid))
    ranks_ready = find(update.after.conditions, "RanksReady")
    assert update.ready.status == "Unknown"
    assert (ranks_ready.status, ranks_ready.reason) == ("Unknown", "StatusNotWritten")
    assert "403: no" in ranks_ready.message
    assert update.after.ready_ranks is None


def test_what_is_not_vouched_for_of_others_is_no_matter():
    assert update_of(group(status=ranks()), ready_pool(), agent=doubts("403: no", "uid-other")).ready.status == "True"


def test_a_group_on_a_pool_that_is_not_vouched_for_is_unknown():
    update = update_of(group(status=ranks()), ready_pool(), agent=doubts("403: no", "uid-actors"))
    assert (update.ready.status, update.ready.reason) == ("Unknown", "PoolNotReady")
    assert find(update.after.conditions, "RanksReady").status == "True"


def test_a_lost_agent_that_told_why_is_quoted():
    lost = doubts("reports.json cannot be read: it is not a regular file", "*", is_silent=True)
    update = update_of(group(status=ranks()), ready_pool(), agent=lost)
    assert "the state is unknown: reports.json cannot be read" in find(update.after.conditions, "RanksReady").message


CODE = {"code": {"configMap": {"name": "code"}}}


def up_to_date(group_):
    condition = find(update_of(group_, ready_pool()).after.conditions, "UpToDate")
    return condition.status, condition.reason


def test_old_code_that_still_runs_is_reported():
    first = update_of(group(status=ranks(code="digest-1"), **CODE), ready_pool()).after.to_json()
    assert up_to_date(group(status=first | ranks(code="digest-1"), **CODE)) == ("True", "UpToDate")
    changed = group(status=first | ranks(code="digest-2"), **CODE)
    assert up_to_date(changed) == ("False", "OldIncarnation")
    update = update_of(changed, ready_pool())
    assert (update.after.incarnation, update.ready.status) == (2, "False")
    gone = group(status=first | ranks(code=None), **CODE)
    assert up_to_date(gone) == ("Unknown", "CodeMissing")
    assert update_of(gone, ready_pool()).ready.status == "True"


def test_ranks_keep_running_while_a_spec_names_code_that_never_existed():
    first = update_of(group(status=ranks()), ready_pool()).after.to_json()
    renamed = group(status=first | ranks(code=None), **CODE)
    update = update_of(renamed, ready_pool())
    assert (update.after.incarnation, update.ready.status) == (1, "True")
    said = find(update.after.conditions, "UpToDate")
    assert said.reason == "CodeMissing"
    assert "there is no ConfigMap code: create it" in said.message


def pause(rank: int, **more: Any) -> dict[str, Any]:
    said = {"rank": rank, "where": "train.py:12 in Trainer.step", "port": 5680, "since": "2026-01-01T00:00:00Z"}
    return said | more


def test_a_rank_that_waits_for_a_debugger_is_a_reason_and_no_failure():
    ready = update_of(group(status=ranks(paused="2", pauses=[pause(2)])), ready_pool()).ready
    assert (ready.status, ready.reason) == ("True", "PausedByDebugger")
    assert "rank 2 waits for a debugger at train.py:12 in Trainer.step" in ready.message
    attached = update_of(group(status=ranks(paused="2", pauses=[pause(2, attached=True)])), ready_pool()).ready
    assert (attached.status, attached.reason) == ("True", "DebuggerAttached")


def test_a_constructor_that_waits_for_a_debugger_has_no_deadline():
    update = update_of(group(status=ranks(readyCount=3, paused="3", pauses=[pause(3)])), ready_pool())
    assert (update.ready.status, update.ready.reason, update.after.deadline) == ("False", "PausedByDebugger", None)


def test_a_rank_that_died_is_reported_before_one_that_is_paused():
    said = ranks(readyCount=2, failures=[failure(1)], paused="2", pauses=[pause(2)])
    assert update_of(group(status=said), ready_pool()).ready.reason == "ConstructorFailed"


HANG = {
    "method": "step",
    "since": "2026-01-01T00:00:00Z",
    "ranks": "0-3",
    "suspects": "2",
    "pod": "p-0",
    "message": "call `step` has run for more than 60 s on ranks 0-3; suspect: rank 2 in data.py:17 in read_shard",
}
WATCHED = NEVER | {"hangSeconds": 60}


def test_a_group_with_a_call_that_hangs_is_not_ready_and_names_the_suspects():
    update = update_of(group(status=ranks(hang=HANG), failurePolicy=WATCHED), ready_pool())
    assert (update.ready.status, update.ready.reason) == ("False", "Hung")
    assert update.ready.message == (
        f"{HANG['message']}; 4 of 4 ranks ready; the call may still return; to recreate the ranks: "
        "workergroups restart trainer -n team"
    )
    assert find(update.after.conditions, "Progressing").reason == "WaitingForReady"
    assert find(update.after.conditions, "Failed").status == "False"
    assert (update.after.ready_ranks, update.after.incarnation) == (4, 1)


def test_a_call_that_hangs_is_a_failure_after_which_the_ranks_are_recreated():
    before = update_of(group(status=ranks()), ready_pool()).after.to_json()
    update = update_of(group(status=before | ranks(hang=HANG), failurePolicy={"hangSeconds": 60}), ready_pool())
    assert update.after.incarnation == 2
    (kept,) = update.after.failures
    assert (kept.rank, kept.pod, kept.reason, kept.message) == (2, "p-0", "Hung", HANG["message"])
    assert f"since rank 2 of incarnation 1 in pod p-0 failed: {HANG['message']}" in update.ready.message


def test_a_call_that_hangs_is_final_when_the_budget_is_spent():
    update = update_of(group(status=ranks(hang=HANG), failurePolicy={"maxRestarts": 0}), ready_pool())
    assert (update.after.incarnation, update.ready.reason) == (1, "Hung")
    assert find(update.after.conditions, "Failed").status == "True"


@pytest.mark.parametrize(
    ("suspects", "hung", "rank"),
    [("2,4-7", "0-7", 2), ("", "3-5", 3), ("", "", 0), ("x", "", 0), ("9" * 99, "", 0)],
)
def test_the_failure_is_of_the_first_suspect_or_else_of_the_first_rank_that_has_not_returned(suspects, hung, rank):
    hang = {**HANG, "suspects": suspects, "ranks": hung}
    update = update_of(group(status=ranks(hang=hang), failurePolicy=WATCHED), ready_pool())
    assert [kept.rank for kept in update.after.failures] == [rank]


def test_a_call_that_returns_before_the_restart_is_due_costs_none():
    hanging = group(status=ranks(hang=HANG), failurePolicy=NEVER)
    before = update_of(hanging, ready_pool()).after.to_json()
    update = update_of(group(status=before | ranks(), failurePolicy={"restart": "Group"}), ready_pool())
    assert (update.ready.status, update.after.incarnation) == ("True", 1)


def test_a_call_that_hangs_is_the_reason_even_while_the_pool_is_not_ready():
    assert update_of(group(status=ranks(hang=HANG), failurePolicy=WATCHED), pool()).ready.reason == "Hung"


def test_a_rank_that_died_is_reported_before_a_call_that_hangs():
    said = ranks(readyCount=3, failures=[failure(1)], hang=HANG)
    assert update_of(group(status=said, failurePolicy=WATCHED), ready_pool()).ready.reason == "ConstructorFailed"


def test_a_hang_of_an_older_incarnation_does_not_count():
    said = ranks(hang=HANG, incarnation=7)
    assert update_of(group(status=said, failurePolicy=WATCHED), ready_pool()).ready.reason == "Launching"


def test_hang_seconds_are_planned_and_recreate_nothing():
    def planned(**policy):
        seen = observed(pools=(ready_pool(),), groups=(group(status=ranks(), failurePolicy=policy),))
        (found,) = cluster_plan(seen, decided(seen)).groups
        return found

    assert planned().hang_seconds is None
    assert planned(hangSeconds=60) == planned().model_copy(update={"hang_seconds": 60})


class CutShort:
    """A group whose launches are all cut short, and an operator that remembers nothing but what the status holds."""

    def __init__(self):
        self.now, self.status = NOW, {}

    def turn(self, after=0.0):
        """Look at it once, with the agent's report on the incarnation that the status names."""
        self.now += timedelta(seconds=after)
        incarnation = self.status.get("incarnation", 1)
        report = ranks(incarnation=incarnation, state="LaunchInterrupted", created=1, readyCount=0, message="cut short")
        seen = observed(
            pools=(ready_pool(),),
            groups=(group(status=self.status | report, progressDeadlineSeconds=3600),),
            at=self.now,
        )
        found = statuses(seen, now=self.now)
        self.status = found.updates[-1].after.to_json()
        return self.status["incarnation"], found


def test_launches_that_are_always_cut_short_are_retried_later_and_later_and_then_given_up():
    world = CutShort()
    assert [world.turn()[0], world.turn()[0]] == [1, 2], "the first retry is immediate"
    for number, pause in ((2, 10), (3, 20), (4, 40), (5, 80)):
        incarnation, found = world.turn()
        ready = found.updates[-1].ready
        assert (incarnation, ready.reason, found.requeue_after <= pause) == (number, "LaunchInterrupted", True)
        until = (world.now + timedelta(seconds=pause)).strftime("%H:%M:%SZ")
        assert ready.message == f"incarnation {number}: cut short; trying again at {until}, {number} of 5"
        assert world.turn(after=pause - 1)[0] == number
        assert world.turn(after=1)[0] == number + 1
    incarnation, found = world.turn()
    ready = found.updates[-1].ready
    assert (incarnation, ready.reason) == (6, "LaunchFailed")
    assert "so were the 5 incarnations before it; correct spec.worker" in ready.message
    assert world.turn(after=86400)[0] == 6
    assert world.status["retries"] == {"failures": 6}
