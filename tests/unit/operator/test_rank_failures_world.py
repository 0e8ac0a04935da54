"""A group whose ranks fail, turn by turn: when it gets new ones, and what its status says of that."""

from datetime import timedelta
from typing import Any

import pytest

from tests.unit.operator.make import HEAD, NOW, SESSION, decided, group, observed, ready_pool, statuses
from workergroups_api.conditions import find
from workergroups_operator.desired.plan import cluster_plan
from workergroups_operator.observed import AgentHeartbeat


class Failing:
    """A group whose ranks fail again and again, and an operator that remembers nothing but what the status holds."""

    def __init__(self, **policy: Any) -> None:
        self.now, self.status, self.policy, self.plan = NOW, {}, policy, None
        self.reason, self.spec = "ProcessDied", {}
        self.agent = AgentHeartbeat(SESSION, (HEAD, SESSION))
        self.turn(fails=False)

    @property
    def incarnation(self) -> int:
        return int(self.status.get("incarnation", 1))

    def turn(self, after=0.0, *, fails=True, **report: Any):
        """Look once, with the agent's report on the incarnation that the status names; return its Ready."""
        self.now += timedelta(seconds=after)
        failures = [{"rank": 2, "reason": self.reason, "message": "boom", "pod": "p-0"}] if fails else []
        ranks = {"session": SESSION, "incarnation": self.incarnation, "state": "Launched", "created": 4}
        ranks |= {"readyCount": 3 if fails else 4, "failures": failures} | report
        subject = group(
            status=self.status | {"ranks": ranks}, failurePolicy=self.policy, progressDeadlineSeconds=3600, **self.spec
        )
        seen = observed(pools=(ready_pool(),), groups=(subject,), at=self.now, agent=self.agent, plan=self.plan)
        self.found = statuses(seen, now=self.now)
        update = self.found.updates[-1]
        self.status = update.after.to_json()
        self.plan = cluster_plan(seen, decided(seen))
        return update.ready

    @property
    def is_final(self):
        """What the plan tells drivers."""
        return self.plan.groups[0].is_final

    @property
    def cause(self):
        """What the plan tells drivers of the latest failure."""
        return self.plan.groups[0].cause

    def condition(self, type_):
        return find(self.found.updates[-1].after.conditions, type_)


def test_ranks_that_fail_again_and_again_are_restarted_later_and_later_and_then_not():
    world = Failing()
    world.turn()
    assert world.incarnation == 2, "the first restart is immediate"
    for number, pause in ((2, 10), (3, 20)):
        ready = world.turn(after=1)
        assert (world.incarnation, ready.reason, ready.status) == (number, "ProcessDied", "False")
        until = (world.now + timedelta(seconds=pause)).strftime("%H:%M:%SZ")
        assert f"all ranks are restarted at {until}, restart {number} of 3 within 600 s" in ready.message
        assert world.found.requeue_after == pause
        assert (world.condition("Failed").status, world.is_final) == ("False", None)
        world.turn(after=pause - 1)
        assert world.incarnation == number
        world.turn(after=1)
        assert world.incarnation == number + 1
    ready = world.turn(after=1)
    assert (world.incarnation, world.status["restarts"]["count"]) == (4, 3)
    assert "allows 3 restarts within 600 s, and there were 3; correct spec.worker" in ready.message
    for type_ in ("Failed", "Stalled"):
        assert (world.condition(type_).status, world.condition(type_).reason) == ("True", "ProcessDied")
    assert world.is_final
    world.turn(after=86400)
    assert (world.incarnation, world.is_final) == (4, True), "what is final stays final when the window has passed"
    world.agent = AgentHeartbeat(SESSION, (HEAD, SESSION), is_silent=True)
    world.turn()
    assert world.is_final, "drivers are not told otherwise because the agent is silent"


def test_drivers_are_told_why_the_ranks_are_new_until_others_replace_them():
    world = Failing()
    assert world.cause is None
    for number in range(2):
        world.turn(fails=number == 0)
        assert (world.incarnation, world.cause) == (2, "rank 2: ProcessDied: boom")
    world.reason = "Hung"
    world.turn(after=1)
    assert world.cause == "rank 2: ProcessDied: boom", "what has failed now is not replaced yet"
    world.turn(after=20)
    assert (world.incarnation, world.cause) == (3, "rank 2: Hung: boom")
    world.spec = {"worker": {"class": "other.Class"}}
    world.turn(fails=False)
    assert (world.incarnation, world.cause) == (4, None)


def test_drivers_are_told_why_single_ranks_are_new():
    world = Failing(restart="Rank")
    world.turn(**dead(2))
    assert (world.incarnation, world.cause) == (1, "rank 2: ProcessDied: boom")
    world.turn(after=1, fails=False, birth=1)
    assert world.cause == "rank 2: ProcessDied: boom"


def test_a_larger_budget_restarts_a_group_that_had_failed():
    world = Failing(maxRestarts=0)
    world.turn()
    assert world.condition("Failed").status == "True"
    world.policy = {"maxRestarts": 1}
    world.turn(after=3600)
    assert (world.incarnation, world.condition("Failed").status, world.is_final) == (2, "False", None)


def test_never_means_that_the_other_ranks_keep_running():
    world = Failing(restart="Never")
    for _ in range(3):
        ready = world.turn(after=60)
    assert (world.incarnation, ready.reason) == (1, "ProcessDied")
    assert "restart trainer" in ready.message
    assert world.condition("Failed").status == "True"


def test_nodes_that_are_drained_one_by_one_never_end_a_group():
    world = Failing()
    world.reason = "NodeLost"
    for number in range(20):
        world.turn(after=10)
        assert world.incarnation == number + 2
    assert (world.status["restarts"]["count"], "recent" in world.status["restarts"]) == (20, True)
    assert world.status["restarts"]["recent"] == []


def test_a_group_that_recovers_by_itself_before_its_restart_is_not_restarted():
    world = Failing()
    world.turn()
    world.turn(after=1)
    assert "failedAt" in world.status["restarts"]
    ready = world.turn(after=1, fails=False)
    assert (world.incarnation, ready.status) == (2, "True")
    assert "failedAt" not in world.status["restarts"]


def test_nothing_is_restarted_on_the_word_of_an_agent_that_nobody_vouches_for():
    world = Failing()
    world.agent = AgentHeartbeat(SESSION, (HEAD, SESSION), doubts={"uid-trainer": "403"})
    assert (world.turn().status, world.incarnation) == ("Unknown", 1)
    assert world.condition("Failed").status == "Unknown"
    world.agent = AgentHeartbeat(SESSION, (HEAD, SESSION), is_silent=True)
    assert (world.turn().status, world.incarnation) == ("Unknown", 1)


def test_a_report_on_another_incarnation_or_session_restarts_nothing():
    for other in ({"incarnation": 7}, {"session": "before"}):
        world = Failing()
        world.turn(**other)
        assert (world.incarnation, world.status["failures"]) == (1, [])


def test_what_a_person_debugs_is_not_taken_away():
    pause = {"rank": 0, "where": "train.py:12 in step", "since": "2026-01-01T00:00:00Z"}
    world = Failing()
    ready = world.turn(paused="0", pauses=[pause])
    assert (world.incarnation, ready.status) == (1, "False")
    assert "the ranks are restarted once no rank is paused" in ready.message
    assert not world.is_final
    world.turn()
    assert world.incarnation == 2


def dead(*numbers, birth=None, **more):
    """What the agent reports if these of the four ranks are dead."""
    ranks = [{"rank": each, "birth": birth, "reason": "ProcessDied", "message": "boom"} for each in numbers]
    alive = [each for each in range(4) if each not in numbers]
    ready = {"readyCount": len(alive), "ready": ",".join(map(str, alive))}
    return {"failures": ranks, "failed": ",".join(map(str, numbers)), **ready, **more}


def reborn_of(world):
    planned = world.plan.groups[0]
    assert world.status.get("births", {}) == {str(rank): birth for rank, birth in (planned.births or {}).items()}
    return planned.incarnation, planned.births


def test_only_the_rank_that_failed_is_recreated():
    world = Failing(restart="Rank")
    ready = world.turn(**dead(2))
    assert reborn_of(world) == (1, {2: 1})
    assert (ready.status, ready.reason, world.status["readyRanks"]) == ("False", "Launching", 3)
    assert "3 of 4 ranks created, since rank 2 of incarnation 1 failed: boom" in ready.message
    assert world.status["restarts"]["count"] == 1
    # A late report of the same death costs nothing.
    assert world.turn(after=1, **dead(2)).status == "False"
    assert reborn_of(world) == (1, {2: 1})
    waiting = {"state": "Launched", "created": 4, "birth": 1}
    ready = world.turn(fails=False, **waiting, readyCount=3, ready="0-1,3")
    assert (ready.reason, world.status["readyRanks"]) == ("RanksStarting", 3)
    assert "3 of 4 ranks ready, since rank 2 of incarnation 1 failed: boom" in ready.message
    assert world.turn(fails=False, birth=1, ready="0-3").status == "True"
    assert [each["rank"] for each in world.status["failures"]] == [2]


def test_a_rank_that_fails_again_and_again_is_restarted_later_and_later_and_then_not():
    world = Failing(restart="Rank")
    world.turn(**dead(2))
    for birth, pause in ((1, 10), (2, 20)):
        ready = world.turn(after=1, **dead(2, birth=birth), birth=birth)
        until = (world.now + timedelta(seconds=pause)).strftime("%H:%M:%SZ")
        assert f"of the ranks only 2 is restarted at {until}, restart {birth + 1} of 3 within 600 s" in ready.message
        assert world.found.requeue_after == pause
        world.turn(after=pause, **dead(2, birth=birth), birth=birth)
        assert reborn_of(world) == (1, {2: birth + 1})
    world.turn(after=1, **dead(2, birth=3), birth=3)
    assert (reborn_of(world), world.is_final) == ((1, {2: 3}), True)
    assert world.condition("Failed").status == "True"
    assert [each.get("birth") for each in world.status["failures"]] == [3, 2, 1, None]


def test_each_rank_has_its_own_birth_and_all_share_the_budget():
    world = Failing(restart="Rank", backoffSeconds=0)
    world.turn(**dead(1, 3))
    assert reborn_of(world) == (1, {1: 1, 3: 1})
    world.turn(after=1, **dead(0, birth=None), birth=1)
    assert reborn_of(world) == (1, {0: 2, 1: 1, 3: 1})
    assert world.status["restarts"]["count"] == 2


@pytest.mark.parametrize("policy", [{"restart": "Group"}, {"restart": "Rank"}])
def test_if_all_ranks_fail_all_are_recreated_as_a_new_incarnation(policy):
    world = Failing(**policy, backoffSeconds=0)
    world.turn(**dead(0, 1, 2, 3))
    assert reborn_of(world) == (2, None)


def test_a_new_incarnation_has_no_births():
    world = Failing(restart="Rank")
    world.turn(**dead(2))
    world.status["revision"] = "of an older spec"
    world.turn(fails=False, birth=1)
    assert reborn_of(world) == (2, None)


def test_of_ranks_that_are_restarted_alone_each_that_hangs_is():
    hang = {"method": "step", "since": NOW.isoformat(), "ranks": "1-2", "suspects": "0", "message": "hangs"}
    world = Failing(restart="Rank")
    ready = world.turn(fails=False, ready="0-3", hang=hang)
    assert reborn_of(world) == (1, {1: 1, 2: 1})
    assert (ready.status, world.status["readyRanks"]) == ("False", 2)
    assert [(each["rank"], each["reason"]) for each in world.status["failures"]] == [(1, "Hung")]
    # The agent has seen the plan before it looks at calls again.
    world.turn(fails=False, birth=1, readyCount=2, ready="0,3", created=2, state="Launching", hang=hang)
    assert reborn_of(world) == (1, {1: 1, 2: 1})


def test_a_plan_that_could_not_be_written_costs_no_second_restart():
    world = Failing(restart="Rank", backoffSeconds=0)
    before = world.plan
    world.turn(**dead(2))
    world.plan = before
    world.turn(**dead(2))
    assert (reborn_of(world), world.status["restarts"]["count"]) == ((1, {2: 1}), 1)


def test_a_change_by_the_user_gives_back_the_budget():
    world = Failing(maxRestarts=1)
    world.turn()
    world.turn(after=60)
    assert world.condition("Failed").status == "True"
    world.status["revision"] = "of an older spec"
    world.turn()
    assert (world.incarnation, world.condition("Failed").status) == (3, "False")
    assert world.status["restarts"] == {"count": 1, "recent": []}


def test_the_status_keeps_the_latest_failures_with_where_and_when():
    world = Failing()
    world.turn()
    said = {"incarnation": 1, "rank": 2, "text": "killed in the middle of"}
    world.turn(after=5, lastWords=[said])
    second, first = world.status["failures"]
    assert (second["incarnation"], first["incarnation"]) == (2, 1)
    assert first == {
        "rank": 2,
        "incarnation": 1,
        "reason": "ProcessDied",
        "message": "boom",
        "pod": "p-0",
        "time": "2026-01-01T12:00:00Z",
        "lastWords": "killed in the middle of",
    }


def test_the_status_keeps_ten_failures():
    world = Failing(maxRestarts=100, backoffSeconds=0)
    for _ in range(15):
        world.turn(after=1)
    assert [each["incarnation"] for each in world.status["failures"]] == list(range(15, 5, -1))
