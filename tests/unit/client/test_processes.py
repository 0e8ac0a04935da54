"""Which processes a target names, what they wait for, and which of them the others seem to wait for."""

import pytest
from typer.testing import CliRunner

from tests.unit.client.fake_cluster import FakeCluster, pool
from workergroups.processes import listing
from workergroups.processes.tables import ActorRow, DriverRow, GcsTables, NodeProcess, TaskRow
from workergroups.stacks.orphaned_calls import orphaned
from workergroups_cli import group_commands, pod_commands
from workergroups_cli.app import app
from workergroups_client.errors import ClientError, NotFoundError
from workergroups_client.pods.process_groups import process_groups
from workergroups_client.pods.processes import Processes, pool_of

PACKAGES = "/usr/lib/python3.11/site-packages"
BY_RAY = f"""  File "{PACKAGES}/ray/_private/function_manager.py", line 740 in actor_method_executor
  File "{PACKAGES}/ray/_private/worker.py", line 1069 in main_loop
  File "{PACKAGES}/ray/_private/workers/default_worker.py", line 323 in <module>
"""
IN_GET = f'  File "{PACKAGES}/ray/_private/worker.py", line 3009 in get\n'


def stack(*frames):
    return "Current thread 0x00007f07 (most recent call first):\n" + "".join(frames) + BY_RAY


def at(line, function):
    return f'  File "/code/trainer.py", line {line} in {function}\n'


# A driver waits for a runner, which waits for two rollouts. A loader is being constructed.
TABLES = GcsTables(
    actors=(
        ActorRow("run", "TaskRunner", "runner", "anybody", "w1", "02000000"),
        ActorRow("r0", "Rollout", "", "rl", "w2", "02000000"),
        ActorRow("r1", "Rollout", "", "rl", "w3", "02000000"),
        ActorRow("load", "Loader", "", "rl", "", "02000000"),
    ),
    drivers=(DriverRow("02000000", "ppo-7k2p", "head", 31),),
    tasks=(
        TaskRow("driver", "", "", "", "", "running", 99.0, "02000000"),
        TaskRow("t1", "driver", "run", "w1", "TaskRunner.run", "running", 60.0, "02000000"),
        TaskRow("t2", "t1", "r0", "w2", "Rollout.generate", "running", 41.0, "02000000"),
        TaskRow("t3", "t1", "r1", "w3", "Rollout.generate", "running", 41.0, "02000000"),
        TaskRow("t4", "t1", "r1", "", "Rollout.generate", "queued", 40.0, "02000000"),
        TaskRow("t5", "driver", "load", "", "Loader.__init__", "running", 5.0, "02000000"),
        TaskRow("t6", "driver", "", "w5", "fit", "running", 7.0, "02000000"),
    ),
    pauses=(),
)
ON_NODES = {
    "head": [NodeProcess(71, "w1", "TaskRunner.run"), NodeProcess(72, "w5", "fit")],
    "ppo-b": [NodeProcess(12, "w3", "Rollout.generate"), NodeProcess(13, "w4", "Loader.__init__")],
    "ppo-a": [NodeProcess(12, "w2", "Rollout.generate")],
}
STACKS = {
    "head": {"31": "no stacks: it ended", "71": stack(IN_GET, at(9, "run")), "72": stack(at(3, "fit"))},
    "ppo-a": {"12": stack(at(41, "generate"))},
    "ppo-b": {"12": stack(at(41, "generate")), "13": stack(at(77, "read"), at(70, "__init__"))},
}


LOG = "2020-01-01 12:00:00 old\nof old\n9999-01-01 12:00:00 new\nof new\n"


def ask(pod, module, *words):
    if module == "in_gcs":
        return TABLES.to_json()
    question, *ids = words
    answers = {"stacks": STACKS[pod], "logs": dict.fromkeys(ids, LOG)}
    return {id_: answers[question][id_] for id_ in ids} if question in answers else ON_NODES[pod]


@pytest.fixture
def processes():
    return Processes("head", list(ON_NODES), ask)


@pytest.mark.parametrize(
    ("target", "pids"),
    [
        ("all", ["head 31", "head 71", "head 72", "ppo-a 12", "ppo-b 12", "ppo-b 13"]),
        ("job/ppo-7k2p", ["head 31", "head 71", "head 72", "ppo-a 12", "ppo-b 12", "ppo-b 13"]),
        ("actor/Rollout", ["ppo-a 12", "ppo-b 12"]),
        ("actor/runner", ["head 71"]),
        ("actor/Loader", ["ppo-b 13"]),
        ("node/ppo-b", ["ppo-b 12", "ppo-b 13"]),
    ],
)
def test_a_target_names_processes(processes, target, pids):
    assert [f"{each.pod} {each.pid}" for each in processes.find(target)] == pids


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("actor/Rolout", "there is no process of actor/Rolout; there are Loader, Rollout, TaskRunner, runner"),
        ("job/other", "there is no process of job/other; there are ppo-7k2p"),
        ("actor/", "actor/ names no processes"),
        ("pod/x", "pod/x names no processes: write job/ID, actor/NAME, actor/CLASS, node/POD or all"),
    ],
)
def test_where_a_target_names_none_it_says_which_there_are(processes, target, said):
    with pytest.raises(NotFoundError, match=said):
        processes.find(target)


@pytest.mark.parametrize("name", ["actor", "job", "node", "group/actor", "actors/x", ""])
def test_a_group_may_have_the_name_of_a_kind_of_target(name):
    assert not listing.is_target(name)


def test_a_pod_that_does_not_answer_is_named_and_the_others_are_shown():
    def ask_some(pod, module, *words):
        if pod == "ppo-a":
            raise ClientError("pod ppo-a could not be asked")
        return ask(pod, module, *words)

    found = Processes("head", list(ON_NODES), ask_some).activity("actor/Rollout")
    assert [each.pod for each in found.processes] == ["ppo-b"]
    assert found.troubles == ["pod ppo-a could not be asked"]


def test_without_an_answer_of_ray_the_processes_have_the_names_that_the_kernel_knows():
    def ask_nodes(pod, module, *words):
        if module == "in_gcs":
            raise ClientError("the GCS does not answer")
        return ask(pod, module, *words)

    found = Processes("head", list(ON_NODES), ask_nodes).activity("all")
    assert [str(each) for each in found.processes][:2] == ["task TaskRunner.run", "task fit"]
    assert "in generate\n" in found.stacks["w2"]


def test_a_call_whose_caller_has_ended_is_listed_while_the_process_runs_it(processes):
    state = orphaned("running")
    lost = [
        TaskRow("t7", "gone", "r0", "w2", "Rollout.generate", state, 70.0, "01000000"),
        TaskRow("t8", "gone", "r1", "w3", "Rollout.save", orphaned("queued"), 3.0, "01000000"),
    ]

    def ask_now(tasks):
        def answer(pod, module, *words):
            return TABLES._replace(tasks=(*tasks, *lost)).to_json() if module == "in_gcs" else ask(pod, module, *words)

        return Processes("head", list(ON_NODES), answer).activity("actor/Rollout").calls

    assert [(call.name, call.state) for call in ask_now(()) if not call.caller] == [
        ("Rollout.generate", state),
        ("Rollout.save", orphaned("queued")),
    ]
    assert [call.name for call in ask_now(TABLES.tasks) if not call.caller] == ["Rollout.save"]


def test_who_runs_a_call_and_waits_for_none_is_suspect_and_comes_first(processes):
    groups = process_groups(processes.activity("job/ppo-7k2p"))
    assert [(group.who, group.suspect, group.where) for group in groups] == [
        ("task fit (pid 72 in head)", True, "in trainer.py:3 in fit"),
        ("2 actors Rollout", True, "in trainer.py:41 in generate"),
        ("actor Loader (pid 13 in ppo-b)", True, "in trainer.py:77 in read"),
        ("driver (pid 31 in head)", False, "without stacks (no stacks: it ended)"),
        ("actor TaskRunner runner (pid 71 in head)", False, "in trainer.py:9 in run"),
    ]


def test_it_says_what_a_process_waits_for_and_who_waits_for_it(processes):
    (runner,) = process_groups(processes.activity("actor/runner"))
    assert runner.waits == (
        "waits for Rollout.generate, running for 41 s, on 2 actors Rollout",
        "waits for Rollout.generate, queued for 40 s, on actor Rollout (pid 12 in ppo-b)",
        "runs TaskRunner.run, running for 60 s, for driver (pid 31 in head)",
    )
    (loader,) = process_groups(processes.activity("actor/Loader"))
    assert loader.waits == ("runs Loader.__init__, running for 5 s, for driver (pid 31 in head)",)


def test_two_actors_of_a_class_that_both_start_are_not_taken_for_each_other():
    twice = TABLES._replace(actors=(*TABLES.actors, ActorRow("load2", "Loader", "", "rl", "", "02000000")))
    (loader,) = [each for each in listing.processes(twice, ON_NODES) if each.label == "Loader"]
    assert (loader.kind, loader.actor_id) == ("actor", "")


def test_a_target_needs_a_pool_only_where_several_are_possible():
    several = FakeCluster(pool("ppo"), pool("ppo-large"), pool("eval", clusterName="ppo"))
    assert pool_of(several, "job/ppo-7k2p", None).name == "ppo"
    assert pool_of(several, "job/ppo-large-7k2p", None).name == "ppo-large"
    assert pool_of(several, "actor/TaskRunner", "eval").name == "eval"
    with pytest.raises(NotFoundError, match="several Ray clusters, so actor/TaskRunner needs --pool: choose from eval"):
        pool_of(several, "actor/TaskRunner", None)
    assert pool_of(FakeCluster(pool("ppo"), pool("eval", clusterName="ppo")), "all", None).what == "pool"
    with pytest.raises(NotFoundError, match="no pools and no groups"):
        pool_of(FakeCluster(), "all", None)


@pytest.fixture
def shown(monkeypatch, processes):
    monkeypatch.setattr(group_commands, "Cluster", lambda *_: FakeCluster(pool("ppo")))
    monkeypatch.setattr(pod_commands, "Cluster", lambda *_: FakeCluster(pool("ppo")))
    monkeypatch.setattr(Processes, "of", lambda *_: processes)

    def invoke(*typed, code=0):
        result = CliRunner().invoke(app, typed)
        assert result.exit_code == code, result.output
        return result.output

    return invoke


def test_stacks_shows_each_place_with_who_waits_there_and_for_whom(shown):
    text = shown("stacks", "actor/Rollout")
    assert "suspect: 2 actors Rollout in trainer.py:41 in generate\n  runs Rollout.generate, running for 41" in text
    assert text.count("in generate\n") == 2  # the place, and one stack for both
    assert "trainer.py:3 in fit" in shown("stacks", "--all", "--pool", "ppo")


def test_calls_lists_who_calls_whom(shown):
    lines = [" ".join(line.split()) for line in shown("calls", "actor/TaskRunner").splitlines()]
    assert "driver TaskRunner.run running 1m0s actor TaskRunner runner - in trainer.py:9 in run" in lines
    assert "actor TaskRunner runner Rollout.generate running 41s actor Rollout suspect -" in lines


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ((), "name a group, or job/ID, actor/NAME or node/POD, or use --all"),
        (("ppo", "--all"), "--all means all processes: leave out ppo"),
        (("ppo", "--pool", "ppo"), "is a group"),
        (("actor/Rollout", "--rank", "0"), "--ranks needs a group"),
    ],
)
def test_what_does_not_go_together_is_refused(shown, typed, said):
    assert said in " ".join(shown("stacks", *typed, code=2).replace("│", " ").split())


@pytest.mark.parametrize(
    ("options", "lines"),
    [
        ((), LOG.splitlines()),
        (("--tail", "1"), ["of new"]),
        (("--since", "10m"), ["9999-01-01 12:00:00 new", "of new"]),
    ],
)
def test_the_lines_of_a_process_can_be_the_last_or_the_latest(shown, options, lines):
    assert shown("logs", "actor/runner", *options) == "".join(
        f"[actor TaskRunner runner 71] {line}\n" for line in lines
    )
