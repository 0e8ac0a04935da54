"""What `up` asks, and what it passes on to the job, without a cluster."""

import contextlib
from unittest.mock import MagicMock, Mock

import pytest
import yaml
from typer.testing import CliRunner

from tests.unit.client.fake_cluster import FakeCluster, condition, pool
from workergroups_cli import lifecycle_commands, progress
from workergroups_cli.app import app
from workergroups_client.errors import ClientError
from workergroups_client.objects.names import POOL, Target
from workergroups_client.objects.status import status_of

MANIFEST = {
    "apiVersion": "workergroups.dev/v1alpha1",
    "kind": "ResourcePool",
    "metadata": {"name": "ppo", "namespace": "team"},
    "spec": {"nodes": 2},
}


class Applied(FakeCluster):
    """Has one pool or none, and keeps the names of what is applied."""

    def __init__(self, before=None):
        super().__init__()
        self.applied, self._before = [], before

    def present(self, manifest):
        return self._before(manifest) if callable(self._before) else self._before

    def apply(self, manifest, *, force, dry_run=False):
        if manifest["spec"]["nodes"] < 1:
            raise ClientError("spec.nodes: must be at least 1")
        if not dry_run:
            self.applied.append(manifest["metadata"]["name"])
        return manifest


@pytest.fixture
def submitted():
    return Mock()


@pytest.fixture
def up(monkeypatch, tmp_path, submitted):
    """Types `up` with this, on a terminal or not, and returns the result."""

    def typed(cluster, *words, manifests=(MANIFEST,), is_terminal=False, answer=None, statuses=()):
        (tmp_path / "all.yaml").write_text(yaml.safe_dump_all(manifests))
        monkeypatch.setattr(lifecycle_commands, "Cluster", lambda *_: cluster)
        monkeypatch.setattr(progress, "wait_until_ready", lambda *_: statuses)
        monkeypatch.setattr(lifecycle_commands, "Pool", lambda *_: contextlib.nullcontext(Mock(submit=submitted)))
        if is_terminal:
            monkeypatch.setattr(lifecycle_commands, "sys", Mock(stdin=Mock(isatty=lambda: True)))
            monkeypatch.setattr(lifecycle_commands, "err", Mock(is_terminal=True))
            monkeypatch.setattr(progress, "_Progress", MagicMock())
        return CliRunner().invoke(app, ["up", "-f", str(tmp_path / "all.yaml"), *words], input=answer)

    return typed


@pytest.mark.parametrize(
    ("words", "is_terminal", "answer", "is_asked", "code"),
    [
        ([], True, "y\n", True, 0),
        ([], True, "n\n", True, 1),
        ([], True, "", True, 1),
        (["--yes"], True, None, False, 0),
        ([], False, None, False, 0),
    ],
)
def test_only_a_terminal_is_asked(up, words, is_terminal, answer, is_asked, code):
    cluster = Applied()
    result = up(cluster, *words, is_terminal=is_terminal, answer=answer)
    assert ("Apply? [y/N]" in result.output, result.exit_code) == (is_asked, code)
    assert cluster.applied == ([] if code else ["ppo"])


def test_what_is_older_than_the_spec_is_named_when_all_is_ready(up):
    conditions = [condition("Ready", "True"), condition("UpToDate", "False", "OldPods", "restart it with: x")]
    old = status_of(Target(POOL, pool("ppo", status={"conditions": conditions, "observedGeneration": 2})))
    assert "pool ppo: UpToDate=False: restart it with: x\n" in up(Applied(), statuses=[old]).output


def test_nothing_is_asked_if_nothing_changes(up):
    cluster = Applied(before=MANIFEST)
    result = up(cluster, is_terminal=True)
    assert (result.exit_code, cluster.applied) == (0, ["ppo"])
    assert "Apply?" not in result.output


def test_the_plan_is_shown_before_it_is_applied(up):
    assert up(Applied()).output.splitlines() == [
        "In namespace team (context example), this will:",
        "  create ResourcePool ppo",
        "ResourcePool ppo applied",
    ]
    assert up(Applied(before=MANIFEST)).output.splitlines() == [
        "In namespace team (context example), nothing changes",
        "ResourcePool ppo unchanged",
    ]


def test_objects_of_one_name_in_two_namespaces_are_told_apart(up):
    here, there = ({**MANIFEST, "kind": "Role", "metadata": {"name": "r", "namespace": each}} for each in "ab")
    cluster = Applied(before=lambda manifest: None if manifest == there else here)
    result = up(cluster, manifests=[here, there])
    assert result.output.splitlines()[1:5] == [
        "  leave Role r",
        "  create Role r",
        "Role r unchanged",
        "Role r applied",
    ]


@pytest.mark.parametrize("words", [["--attach"], ["--", "true"], []])
def test_pools_that_may_be_idle_are_woken_before_one_waits_for_them_if_they_are_used(up, monkeypatch, words):
    order = []
    monkeypatch.setattr(lifecycle_commands, "begin_to_wake", lambda _, pool, __: order.append(f"wake {pool.name}"))
    monkeypatch.setattr(lifecycle_commands, "show_until_ready", lambda *_: order.append("wait"))
    monkeypatch.setattr(lifecycle_commands, "follow", lambda *_: 0)
    monkeypatch.setattr(lifecycle_commands, "hold", lambda _: None)
    assert up(Applied(), *words).exit_code == 0
    assert order == (["wake ppo", "wait"] if words else ["wait"])


def test_a_rejected_object_ends_up_before_anything_is_applied(up):
    cluster = Applied()
    rejected = {**MANIFEST, "metadata": {"name": "wrong", "namespace": "team"}, "spec": {"nodes": 0}}
    result = up(cluster, "--yes", manifests=[MANIFEST, rejected])
    assert (str(result.exception), cluster.applied) == ("spec.nodes: must be at least 1", [])


def test_the_options_of_the_command_reach_the_job_and_the_time_limit_the_wait(up, submitted, monkeypatch, tmp_path):
    waited = []
    monkeypatch.setattr(lifecycle_commands, "follow", lambda *_: 7)
    monkeypatch.setattr(lifecycle_commands, "show_until_ready", lambda _, __, seconds: waited.append(seconds))
    options = ["--working-dir", str(tmp_path), "--env", "A=b", "--env", "C=d=e", "--env-from", "secret/keys"]
    result = up(Applied(), *options, "--timeout", "90s", "--", "python", "train.py", "--env", "x")
    assert (result.exit_code, waited) == (7, [90])
    submitted.assert_called_once_with(
        ["python", "train.py", "--env", "x"],
        working_dir=tmp_path,
        env={"A": "b", "C": "d=e"},
        env_from=["secret/keys"],
    )


@pytest.mark.parametrize("words", [["--attach"], ["--", "true"]])
def test_what_has_no_pool_is_not_applied_if_something_is_to_run_on_one(up, words):
    cluster = Applied()
    other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "code"}, "spec": {"nodes": 1}}
    done = up(cluster, *words, manifests=(other,))
    assert "there is no pool and no group among the objects" in str(done.exception)
    assert (done.exit_code, cluster.applied) == (1, [])
