"""What the executor makes of launches that have ended, or that nobody needs any more."""

from dataclasses import replace

import pytest
import ray

from tests.unit.agent.ray_world import KEY, NODES, PREPARED, RESERVED, group, plan, pool, rank, ranks, reborn, state
from workergroups.node_tasks import _remote, on_node, start_on_node
from workergroups_agent.executor import ending, launch_record, pod_tasks
from workergroups_agent.executor.decide import LaunchGroup, Rebirth, decide
from workergroups_agent.executor.launch_record import LaunchStep, Record
from workergroups_agent.executor.pod_tasks import EndingTasks, LaunchTasks
from workergroups_agent.launch_state import launch_state

ATTEMPT = "a"
FAILED = Record(ATTEMPT, LaunchStep.FAILED, "ImportError: x")
CREATED = Record(ATTEMPT, LaunchStep.CREATED)
NODE_IDS = [f"{number:056x}" for number in (1, 2, 3)]
TWO_ARE_DEAD = [*ranks(0, 3), *ranks(1, 2, state="DEAD")]


class World:
    """Launches of one group, and what the GCS and the test say of them."""

    def __init__(self, monkeypatch):
        self.tasks = LaunchTasks()
        self.records, self.claims, self.killed = {}, {}, []
        monkeypatch.setattr(launch_record, "known", lambda: self.records.keys() | self.claims.keys())
        monkeypatch.setattr(launch_record, "read", self.records.get)
        monkeypatch.setattr(launch_record, "claimed_by", self.claims.get)
        monkeypatch.setattr(launch_record, "forget", lambda key: (self.records.pop(key, 0), self.claims.pop(key, 0)))
        monkeypatch.setattr(ray, "kill", self.killed.append)

    def begin(self, birth=0):
        """A launch runs, and needs both nodes."""
        task = pod_tasks._Task(ATTEMPT, (*KEY, birth), f"launcher {birth}", "ref", 0.0, ("n-b", "n-c"), "p-worker-b")
        self.tasks._running[KEY], self.tasks._recorded = task, {task.key}

    def end(self, record, *, claim=None, birth=0):
        """The GCS has this record and claim of the launch, which ends if it runs."""
        self.records |= {(*KEY, birth): record} if record else {}
        self.claims |= {(*KEY, birth): claim} if claim else {}
        self.ended = {KEY: record} if KEY in self.tasks._running else {}

    def look(self, group, *, ranks=(), nodes=None):
        """Take note of what has ended; return how far the launch is, and what is launched now."""
        now = state(*RESERVED, ranks=ranks, nodes=nodes)
        plan_ = plan(pool(), group)
        self.tasks.take_note(self.__dict__.pop("ended", {}), plan_, now)
        launches = self.tasks.snapshot({PREPARED.uid: PREPARED})
        rebirths = [each.rebirth for each in decide(plan_, now, launches) if isinstance(each, LaunchGroup)]
        return launch_state(group, plan_, now, launches), rebirths


@pytest.fixture
def world(monkeypatch):
    return World(monkeypatch)


def test_ranks_of_a_second_restart_are_launched_after_those_of_the_first(world):
    planned = group(births={1: 1, 2: 2})
    world.begin(birth=1)
    world.end(CREATED, claim=ATTEMPT, birth=1)
    why, rebirths = world.look(planned, ranks=[*TWO_ARE_DEAD, reborn(1, 1)])
    assert (why.reason, rebirths) == ("Launching", [Rebirth(2, (2,), "actor-0")])


def test_a_launch_that_creates_a_rank_which_is_planned_anew_has_not_failed(world):
    world.begin(birth=1)
    world.end(CREATED, claim=ATTEMPT, birth=1)
    there = [*ranks(0, 2, 3), rank(1, state="DEAD"), reborn(1, 1, "DEAD")]
    assert world.look(group(births={1: 2}), ranks=there)[1] == [Rebirth(2, (1,), "actor-0")]


@pytest.mark.parametrize(("birth", "there"), [(0, []), (1, TWO_ARE_DEAD)])
def test_a_launch_has_failed_if_ray_has_no_record_of_its_own_ranks(world, birth, there):
    world.begin(birth)
    world.end(CREATED, claim=ATTEMPT, birth=birth)
    why, rebirths = world.look(group(births={1: 1, 2: 2} if birth else None), ranks=there)
    assert (why.reason, rebirths) == ("LaunchFailed", [])
    assert "Ray has no record of them" in why.message


# By what the record and the claim of a launch say: what another launch does not hear of, but this one when it is next.
OUTCOMES = [
    (FAILED, None, "LaunchFailed"),
    (Record(ATTEMPT, LaunchStep.LOADING), ATTEMPT, "LaunchFailed"),
    (Record(ATTEMPT, LaunchStep.LOADING), "another", "LaunchInterrupted"),
    (Record(ATTEMPT, LaunchStep.LATE, "late"), None, "Launching"),
]


@pytest.mark.parametrize(("record", "claim", "reason"), OUTCOMES, ids=["failed", "died", "begun", "late"])
def test_what_became_of_one_launch_stands_only_for_its_own_ranks(world, record, claim, reason):
    world.begin(birth=1)
    world.end(record, claim=claim, birth=1)
    one_is_dead = [*ranks(0, 2, 3), rank(1, state="DEAD")]
    first = world.look(group(births={1: 1}), ranks=one_is_dead)
    assert (first[0].reason, first[1]) == (reason, [])
    rank_zero_too = [*ranks(2, 3), *ranks(0, 1, state="DEAD")]
    planned = group(births={0: 2, 1: 1})
    assert world.look(planned, ranks=rank_zero_too)[1] == [Rebirth(2, (0,), None)]
    assert world.look(planned, ranks=[*rank_zero_too, reborn(0, 2)]) == first


def test_an_executor_hears_of_all_launches_of_the_one_before(world):
    world.end(FAILED, birth=1)
    dead, planned = [*ranks(2, 3), *ranks(0, 1, state="DEAD")], group(births={0: 2, 1: 1})
    assert world.look(planned, ranks=dead)[1] == [Rebirth(2, (0,), None)]
    assert world.look(planned, ranks=[*dead, reborn(0, 2)])[0].message == "ImportError: x"


def test_the_record_of_a_launch_goes_when_ray_has_its_ranks(world):
    world.end(CREATED, claim=ATTEMPT, birth=1)
    world.look(group(births={1: 1, 2: 2}), ranks=[*TWO_ARE_DEAD, reborn(1, 1)])
    assert (world.records, world.claims) == ({}, {})


@pytest.mark.parametrize("planned", [group(session=None).model_copy(update={"bundles": ()}), group(incarnation=2)])
def test_the_launch_of_a_group_whose_run_or_incarnation_has_ended_is_ended(world, planned):
    world.begin()
    world.look(planned)
    assert (world.killed, world.tasks.are_running()) == (["launcher 0"], False)


def without(*lost):
    return {node_id: node for node_id, node in NODES.items() if node_id not in lost}


@pytest.mark.parametrize(
    ("claim", "reason"),
    [(None, "WaitingForPools"), (ATTEMPT, "LaunchInterrupted"), ("another", "LaunchInterrupted")],
)
def test_a_launch_that_fails_with_one_of_its_nodes_is_no_failure_of_the_user(world, claim, reason):
    world.begin()
    world.end(replace(FAILED, message="Failed to look up placement group"), claim=claim)
    why, rebirths = world.look(group(), nodes=without("n-c"))
    assert (why.reason, rebirths) == (reason, [])


def test_a_launch_that_fails_on_its_nodes_has_failed_even_if_another_node_goes(world):
    world.begin()
    world.end(FAILED)
    assert world.look(group(), nodes=without("n-other"))[0].message == "ImportError: x"


class TestRemote:
    """The GCS keeps each remote function and class as long as the executor lives."""

    @pytest.fixture
    def made(self, monkeypatch):
        class Remote:
            def options(self, **_):
                return self

            def remote(self, *_):
                return None

        made = []
        _remote.cache_clear()
        monkeypatch.setattr(ray, "remote", lambda **_: lambda each: made.append(each) or Remote())
        yield made
        _remote.cache_clear()

    def test_a_function_is_made_remote_once_however_many_nodes_run_it(self, made):
        for node in NODE_IDS:
            start_on_node(len, node, "x")
        assert made == [len]

    def test_a_class_is_made_remote_once_whatever_its_actors_variables(self, made):
        for node in NODE_IDS:
            on_node(node, runtime_env={"env_vars": {"NODE": node}})(World).remote()
        assert made == [World]

    def test_ranks_are_ended_by_the_same_remote_function_each_time(self, made, monkeypatch):
        monkeypatch.setattr(ray, "wait", lambda refs, **_: (refs, []))
        tasks = EndingTasks()
        assert [tasks.end(["rank"], [node], 0) for node in NODE_IDS] == [1, 1, 1]
        assert made == [ending.end]
