"""What `wait --for` waits for, and when waiting cannot help."""

import pytest
from typer.testing import CliRunner

from tests.unit.client.fake_cluster import FakeCluster, condition, group
from workergroups_cli import wait_command
from workergroups_cli.app import app
from workergroups_client.errors import CannotBeReadyError, ClientError, DeadlineError, NotSeenError
from workergroups_client.objects.goals import Goal, wait_for
from workergroups_client.objects.names import GROUP, POOL, find_all


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    monkeypatch.setattr("workergroups_client.waiting.time.sleep", lambda _: None)


@pytest.mark.parametrize(
    ("text", "goal", "kinds"),
    [
        ("Ready", Goal("Ready"), (POOL, GROUP)),
        ("ready", Goal("Ready"), (POOL, GROUP)),
        ("condition=Complete", Goal("Complete"), (GROUP,)),
        ("NodesReady=true", Goal("NodesReady"), (POOL,)),
        ("condition=UpToDate=False", Goal("UpToDate", "False"), (POOL, GROUP)),
        ("ready=unknown", Goal("Ready", "Unknown"), (POOL, GROUP)),
    ],
)
def test_a_goal_is_a_condition_and_its_status(text, goal, kinds):
    assert (Goal.read(text), Goal.read(text).kinds) == (goal, kinds)


@pytest.mark.parametrize("text", ["", "Redy", "delete", "Ready=", "Ready=Maybe", "jsonpath={.status.nodes}=2"])
def test_what_is_no_condition_is_refused_with_all_of_them(text):
    with pytest.raises(ClientError, match="is no condition: write one of Admitted, ClusterReady, "):
        Goal.read(text)


def waited(goal, *conditions, observed=2, seconds=0.1, **spec):
    cluster = FakeCluster(group("ppo", status={"conditions": list(conditions), "observedGeneration": observed}, **spec))
    told = []
    wait_for(cluster, find_all(cluster, "ppo"), Goal.read(goal), told.append, seconds)
    return told


def test_it_returns_when_the_condition_has_the_status():
    assert waited("UpToDate", condition("UpToDate", "True")) == []
    assert waited("Ready=False", condition("Ready", "False")) == []


def test_the_status_of_an_older_spec_does_not_count():
    with pytest.raises(DeadlineError, match="group ppo: the operator has not seen it yet"):
        waited("UpToDate", condition("UpToDate", "True"), observed=1)


def test_it_says_what_the_condition_is():
    with pytest.raises(DeadlineError, match="not Complete within 0s: group ppo: Complete=False, Because: it is so"):
        waited("Complete", condition("Complete", "False"), run={"method": "train"})


@pytest.mark.parametrize(
    ("goal", "error", "said"),
    [
        ("Complete", CannotBeReadyError, "group ppo will not be Complete: LaunchFailed: no such class"),
        ("RanksReady", CannotBeReadyError, "group ppo will not be RanksReady: LaunchFailed: no such class"),
        ("Suspended", DeadlineError, "not Suspended within 0s: group ppo: Suspended=False, Because: it is so"),
    ],
)
def test_a_group_that_has_failed_ends_it_unless_it_may_still_get_there(goal, error, said):
    failed = condition("Failed", "True"), condition("Ready", "False", "LaunchFailed", "no such class")
    with pytest.raises(error, match=said):
        waited(goal, *failed, condition(goal, "False"), run={"method": "train"})


def test_only_a_run_can_be_complete():
    with pytest.raises(CannotBeReadyError, match=r"group ppo runs no method, .* set its spec\.run"):
        waited("Complete")


@pytest.mark.parametrize(
    ("error", "code"), [(DeadlineError("not ready within 5s"), 124), (NotSeenError("not seen"), 1)]
)
def test_wait_ends_with_124_only_when_its_time_is_up(monkeypatch, error, code):
    def show_until_ready(*_):
        raise error

    monkeypatch.setattr(wait_command, "Cluster", lambda *_: FakeCluster(group("ppo")))
    monkeypatch.setattr(wait_command, "show_until_ready", show_until_ready)
    assert CliRunner().invoke(app, ["wait", "ppo"]).exit_code == code
