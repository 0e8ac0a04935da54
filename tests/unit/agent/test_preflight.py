"""Which nodes of a pool are checked, when, and what is reported of it."""

import pytest

from tests.unit.agent.ray_world import NODES, RESERVED, Store, group, launches, placement, plan, pool, ranks, state
from workergroups.checking.answers import Question
from workergroups_agent.executor import preflight_tasks
from workergroups_agent.executor.preflight import PreflightOrder, failed, judged
from workergroups_agent.executor.preflight_tasks import START_SECONDS, PreflightTasks, order_for
from workergroups_agent.launch_state import Heard, launch_state, observed_launch_state
from workergroups_agent.preflight_records import NAMESPACE, PreflightReader, PreflightRecord, write
from workergroups_agent.preflight_state import held_nodes, nodes_to_ask, preflight_report
from workergroups_agent.ray_state import JoinedNode
from workergroups_api.vocabulary import PreflightState

MORE = NODES | {"n-d": JoinedNode("n-d", "p-worker-d", "p-1")}
ANSWER = {
    "devices": 2,
    "versions": {"Ray": "2.60.0", "Python": "3.11.2"},
    "shared_memory": 2**30,
    "unwritable": {},
    "unreachable": {},
    "adapters": [],
    "settings": {},
    "troubles": {},
}


def record(state_="Passed", passed=(), asked=(), level="Basic", generation=7, **more):
    return PreflightRecord(
        attempt="a", level=level, generation=generation, state=state_, asked=asked, passed=passed, **more
    )


def asked(pool_, *placements, nodes=None, record_=None):
    seen = state(*placements, nodes=nodes, preflights={"uid-p": record_} if record_ else None)
    return [node.id for node in nodes_to_ask(pool_, held_nodes(pool_, plan(pool_), seen), seen)]


GROWN = (*RESERVED, placement(index=2, node="n-d"))


@pytest.mark.parametrize(
    ("pool_", "placements", "record_", "nodes"),
    [
        ({}, RESERVED, None, ["n-b", "n-c"]),
        # All nodes are compared with each other, so the check waits for all.
        ({}, RESERVED[:1], None, []),
        ({}, (RESERVED[0], placement(index=1, node="n-c", state="PENDING")), None, []),
        ({}, RESERVED, record(passed=("n-b", "n-c")), []),
        # A node that replaces another.
        ({}, RESERVED, record(passed=("n-b", "n-gone")), ["n-c"]),
        # Nodes that had their bundles do not wait for those that the pool grows by.
        ({"nodes": 3, "settled": 2}, RESERVED, record(passed=("n-b", "n-gone")), ["n-c"]),
        ({"nodes": 3}, RESERVED, record(passed=("n-b", "n-gone")), []),
        ({"nodes": 3, "settled": 2}, GROWN, record(passed=("n-b", "n-c")), ["n-d"]),
        # What a weaker check found does not count, that of a stricter one does.
        ({"preflight": "Fabric"}, RESERVED, record(passed=("n-b", "n-c")), ["n-b", "n-c"]),
        ({}, RESERVED, record(passed=("n-b", "n-c"), level="Fabric"), []),
        ({"reserves": False}, (), None, ["n-b", "n-c"]),
    ],
)
def test_the_nodes_that_have_not_passed_are_asked_once_all_are_there(pool_, placements, record_, nodes):
    assert (
        asked(
            pool(**{"preflight": "Basic", **pool_}),
            *placements,
            nodes=MORE if placements == GROWN else None,
            record_=record_,
        )
        == nodes
    )


RUNNING = record("Checking", asked=("n-b", "n-c"), message="asking the nodes")
FAILED = record("Failed", asked=("n-b", "n-c"), message="devices: p-worker-c has 7 of 8")


@pytest.mark.parametrize(
    ("placements", "record_", "silence", "said"),
    [
        (RESERVED[:1], None, None, ("Waiting", "", "until all nodes")),
        (RESERVED, None, None, ("Waiting", "", "waiting for the executor to begin")),
        (RESERVED, None, "the executor is silent", ("Waiting", "", "the executor is silent")),
        (RESERVED, RUNNING, None, ("Checking", "", "asking the nodes")),
        (RESERVED, RUNNING, "the executor is silent", ("Checking", "", "the executor is silent")),
        (RESERVED, FAILED, None, ("Failed", "", "p-worker-c has 7 of 8")),
        # What was found about other nodes, or for another spec, is not reported.
        (RESERVED, record("Failed", asked=("n-b", "n-gone")), None, ("Waiting", "", "begin")),
        (RESERVED, record("Failed", asked=("n-b", "n-c"), generation=6), None, ("Waiting", "", "begin")),
        (RESERVED, record("Checking", asked=("n-c",), passed=("n-b",)), None, ("Checking", "0", None)),
        (RESERVED, record(passed=("n-b", "n-c"), message="44 GB/s"), None, ("Passed", "0-1", "44 GB/s")),
        # The nodes that had passed before a try that failed, whose node is gone, still have.
        (RESERVED, record("Failed", asked=("n-gone",), passed=("n-b", "n-c")), None, ("Passed", "0-1", None)),
    ],
)
def test_what_is_reported_is_about_the_present_nodes(placements, record_, silence, said):
    checked = pool(preflight="Basic")
    seen = state(*placements, preflights={"uid-p": record_} if record_ else None)
    report = preflight_report(checked, plan(checked), seen, silence)
    assert (report.level, report.state, report.passed) == ("Basic", *said[:2])
    assert report.message is None if said[2] is None else said[2] in report.message


def test_a_pool_without_a_check_reports_none():
    assert preflight_report(pool(), plan(pool()), state(*RESERVED), None) is None


@pytest.mark.parametrize(
    ("passed", "bundles", "waits"),
    [((), (0, 4), True), (("n-b",), (0, 4), True), (("n-b",), (0, 2), False), (("n-b", "n-c"), (0, 4), False)],
)
def test_a_group_is_launched_when_its_own_nodes_have_passed(passed, bundles, waits):
    wanted = group(("p", *bundles))
    plan_ = plan(pool(preflight="Basic"), wanted)
    seen = state(*RESERVED, preflights={"uid-p": record(passed=passed)})
    why = launch_state(wanted, plan_, seen, launches())
    assert why == observed_launch_state(wanted, plan_, seen, launches().prepared, Heard())
    assert (why.reason == "WaitingForPools") is waits
    assert waits is ("pool p has not passed its preflight" in why.message)


def test_ranks_that_exist_do_not_wait_for_a_check():
    wanted = group()
    seen = state(*RESERVED, ranks=ranks(0, 1, 2, 3))
    assert launch_state(wanted, plan(pool(preflight="Basic"), wanted), seen, launches()).reason == "Launched"


@pytest.mark.parametrize(
    ("level", "record_", "fabric", "known"),
    [
        ("Basic", None, False, ()),
        ("Fabric", None, True, ()),
        # Nothing is measured next to ranks that run on other nodes.
        ("Fabric", record(level="Fabric", passed=("n-b", "n-gone"), like={"n-b": ANSWER}), False, ("n-b",)),
        ("Fabric", record(level="Fabric", passed=("n-gone",), like={"n-gone": ANSWER}), True, ()),
    ],
)
def test_an_all_reduce_is_measured_when_no_node_has_passed_before(level, record_, fabric, known):
    seen = state(*RESERVED, preflights={"uid-p": record_} if record_ else None)
    checked = pool(preflight=level)
    nodes = nodes_to_ask(checked, held_nodes(checked, plan(checked), seen), seen)
    order = order_for(checked, nodes, {"n-b", "n-c"}, seen)
    assert (order.question["fabric"], order.begun.passed, tuple(order.begun.like)) == (fabric, known, known)
    assert order.question["node_ids"] == list(order.begun.asked) == [node.id for node in nodes]


def question(**more):
    fields = {"pool": "p", "node_group": "p-1", "nodes": 1, "node_ids": ["n-c"], "vendor": "nvidia", "processes": 2}
    fields |= {
        "devices": 1,
        "device": "GPU",
        "is_reserved": True,
        "shared_memory": None,
        "writable": [],
        "placement_name": "",
    }
    return Question(**{**fields, "fabric": False, **more})


def order(**more):
    begun = record("Checking", asked=("n-c",), passed=("n-b",), like={"n-b": {"node": "p-worker-b", **ANSWER}})
    return PreflightOrder("uid-p", question(**more), begun)


def said(**more):
    answers = [{"node": "p-worker-c", **ANSWER, **more}]
    return {"nodes": answers, "silent": {}, "all_reduce": None, "not_measured": None}


def test_a_node_that_has_what_the_others_have_passes():
    found = judged(order(), said())
    assert (found.state, found.passed, tuple(found.like)) == ("Passed", ("n-b", "n-c"), ("n-b",))


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({"devices": 1}, "devices: p-worker-c has 1 of 2"),
        ({"versions": {**ANSWER["versions"], "Ray": "2.59.0"}}, "Ray: p-worker-c has 2.59.0, p-worker-b has 2.60.0"),
        ({"unwritable": {"/data": "Read-only file system"}}, "p-worker-c cannot write to /data: Read-only"),
    ],
)
def test_what_is_wrong_names_the_node_and_the_others_have_still_passed(answer, words):
    found = judged(order(writable=["/data"]), said(**answer))
    assert (found.state, found.passed) == ("Failed", ("n-b",))
    assert words in found.message


class World:
    """An executor's checks, with processes that do nothing unless the test says how they end."""

    def __init__(self, monkeypatch):
        self.gcs, self.now, self.started, self.killed, self.done = Store(), 100.0, [], [], set()
        self.placed = {}
        monkeypatch.setattr(preflight_tasks, "on_node", lambda node: lambda _: self._process(node))
        monkeypatch.setattr(preflight_tasks.ray, "kill", self.killed.append)
        monkeypatch.setattr(
            preflight_tasks.ray, "wait", lambda refs, **_: ([ref for ref in refs if ref in self.done], [])
        )
        monkeypatch.setattr(preflight_tasks, "placement_group_table", self.placed.copy)
        monkeypatch.setattr(preflight_tasks, "get_placement_group", lambda name: name)
        monkeypatch.setattr(preflight_tasks, "remove_placement_group", self.placed.pop)
        self.tasks = PreflightTasks(self.gcs, lambda: self.now)

    def _process(self, node):
        world = self

        class Process:
            def __init__(self):
                self.run, self.node = self, node

            @staticmethod
            def remote(order=None):
                if order is None:
                    return Process()
                world.started.append((node, order))
                return len(world.started)

        return Process

    def look(self, *placements, nodes=None, checked=True, after=0.0):
        self.now += after
        pools = (pool(preflight="Basic"),) if checked else (pool(),)
        self.tasks.look(plan(*pools), self.seen(*placements, nodes=nodes))
        return preflight_report(pools[0], plan(*pools), self.seen(*placements, nodes=nodes), None)

    def seen(self, *placements, nodes=None):
        known = PreflightReader(self.gcs).read(["uid-p"])
        return state(*(placements or RESERVED), nodes=nodes, preflights=known)

    def end(self, make=None):
        _, order = self.started[-1]
        if make is not None:
            write(self.gcs, "uid-p", make(order))
        self.done.add(len(self.started))


def passes(order):
    passed = (*order.begun.passed, *order.begun.asked)
    return order.begun.model_copy(update={"state": PreflightState.PASSED, "passed": passed})


def fails(order):
    return failed(order.begun, "devices: p-worker-c has 1 of 2")


@pytest.fixture
def world(monkeypatch):
    return World(monkeypatch)


def test_a_check_runs_once_and_its_process_is_ended(world):
    assert world.look().state == "Checking"
    assert world.look().state == "Checking"
    world.end(passes)
    assert (world.look().state, len(world.killed)) == ("Passed", 1)
    world.look()
    assert len(world.started) == 1


def test_a_check_that_failed_is_repeated_after_a_pause_and_goes_on_saying_what_was_wrong(world):
    world.look()
    world.end(fails)
    assert world.look().state == "Failed"
    world.look(after=10)
    assert len(world.started) == 1
    assert world.look(after=15).state == "Failed"
    assert [node for node, _ in world.started] == ["n-b", "n-c"]
    world.end(passes)
    assert world.look().state == "Passed"


@pytest.mark.parametrize("is_done", [True, False])
def test_a_process_that_dies_or_hangs_is_a_failure_that_names_its_pod(world, is_done):
    world.look()
    if is_done:
        world.end()
    found = world.look(after=0 if is_done else START_SECONDS + 300)
    assert (found.state, len(world.killed)) == ("Failed", 1)
    assert "p-worker-b" in found.message


def test_a_check_ends_with_its_nodes_and_with_the_wish_for_it(world):
    world.look()
    world.look(nodes={key: node for key, node in NODES.items() if key != "n-c"})
    assert len(world.killed) == 1
    assert world.look().state == "Checking"
    world.look(checked=False)
    assert (len(world.killed), world.gcs.values) == (2, {})


def test_the_next_executor_begins_a_check_that_ended_with_the_last_one(world):
    world.look()
    world.tasks = PreflightTasks(world.gcs, lambda: world.now)
    assert world.look().state == "Checking"
    assert len(world.started) == 2


def test_records_of_pools_that_are_gone_are_removed(world):
    world.gcs.put(NAMESPACE, "uid-gone", b"{}")
    world.look()
    assert world.gcs.keys(NAMESPACE) == ["uid-p"]


def test_what_a_killed_process_had_reserved_is_removed(world):
    world.look()
    own = world.started[-1][1].question["placement_name"] + "n-b"
    world.placed |= {own: {"name": own, "state": "CREATED"}, "other": {"name": "other", "state": "CREATED"}}
    world.look()
    assert own in world.placed
    world.look(checked=False)
    assert world.placed.keys() == {"other"}
    # A request of the process that came late.
    world.placed[own] = {"name": own, "state": "PENDING"}
    world.look(checked=False, after=1.0)
    assert world.placed.keys() == {"other"}
