"""The commands as typed, without a cluster."""

import subprocess
import sys
from importlib import metadata
from unittest.mock import Mock

import pytest
from typer.testing import CliRunner

from tests.unit.client.fake_cluster import SOON, FakeCluster, condition, group, pool
from workergroups_api.launch import digest
from workergroups_cli import job_commands, lifecycle_commands
from workergroups_cli.app import app, main
from workergroups_cli.options import LONGEST_WAIT, seconds_of
from workergroups_cli.output import duration
from workergroups_client import Pool
from workergroups_client.errors import ClientError, DeadlineError
from workergroups_client.names import find
from workergroups_client.status import status_of

READY = {"conditions": [condition("Ready", "True")], "observedGeneration": 2}
VERBS = [
    "up",
    "status",
    "check",
    "connect",
    "dashboard",
    "job",
    "logs",
    "stacks",
    "calls",
    "debug",
    "exec",
    "restart",
    "suspend",
    "resume",
    "down",
]


def test_help_names_every_verb():
    shown = CliRunner().invoke(app, ["--help"])
    assert shown.exit_code == 0
    assert [verb for verb in VERBS if f"\n  {verb} " not in shown.output] == []
    assert "..." not in shown.output.partition("Commands:")[2], "a summary is cut off at 80 columns"


def test_help_does_not_wait_for_what_only_verbs_need():
    program = "import sys, workergroups_cli.app; print(sorted({'kubernetes', 'pydantic'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stdout == "[]\n", done.stderr


def test_version_is_that_of_the_package():
    shown = CliRunner().invoke(app, ["--version"])
    assert (shown.exit_code, shown.output.strip()) == (0, metadata.version("workergroups"))


@pytest.mark.parametrize(
    "typed",
    [
        ["-n", "team", "--context", "lab", "job", "list"],
        ["job", "list", "-n", "team", "--context", "lab"],
        ["-n", "other", "--context", "lab", "job", "list", "-n", "team"],
    ],
)
def test_namespace_and_context_may_stand_before_the_verb(typed, monkeypatch):
    asked = []
    monkeypatch.setattr(job_commands, "Cluster", lambda *where: asked.append(where))
    CliRunner().invoke(app, typed)
    assert asked == [("team", "lab")]


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (["job", "submit", "ppo"], "say what to run"),
        (["job", "submit", "ppo", "--env", "KEY", "--", "ls"], "KEY: write NAME=VALUE"),
        (["exec", "ppo"], "say what to run"),
        (["exec", "ppo", "--rank", "1", "--every-node", "--", "ls"], "cannot be combined"),
        (["logs", "ppo", "--previous", "--follow"], "with --rank only"),
        (["logs", "ppo", "--previous", "--node", "0"], "with --rank only"),
        (["exec", "ppo", "--every-node", "-it", "--", "ls"], "--every-node cannot be"),
        (["status", "--ray"], "--ray needs a name"),
        (["status", "--wrong"], "No such option"),
        (["up", "--timeout", "90"], "--timeout must be a time such as 90s"),
        (["restart", "ppo", "--timeout", "0s"], "--timeout must be a time such as 90s"),
    ],
)
def test_wrong_usage_ends_with_2(typed, said):
    result = CliRunner().invoke(app, typed)
    assert result.exit_code == 2
    assert said in result.output


@pytest.mark.parametrize(
    ("typed", "seconds"), [("90s", 90), ("10m", 600), ("1h30m", 5400), ("2h0m5s", 7205), (LONGEST_WAIT, 86400)]
)
def test_a_timeout_has_units(typed, seconds):
    assert seconds_of(typed) == seconds


def test_a_deadline_that_passes_is_shown_next_to_the_cause(monkeypatch):
    def wait_until_ready(cluster, targets, show, seconds):
        for progress in [("True", "WaitingForReady")] * 2 + [("False", "ProgressDeadlineExceeded")] * 2:
            conditions = [condition("Ready", "False", "PoolFull", "wait"), condition("Progressing", *progress)]
            status = {"conditions": conditions, "observedGeneration": 2, "deadline": SOON}
            show([status_of(find(FakeCluster(group("ppo", status=status)), "ppo"))])
        show([status_of(find(FakeCluster(group("ppo", status=READY)), "ppo"))])

    monkeypatch.setattr(lifecycle_commands, "Cluster", lambda *_: FakeCluster(group("ppo")))
    monkeypatch.setattr(lifecycle_commands, "Group", lambda *_: Mock(restart=lambda: 2))
    monkeypatch.setattr(lifecycle_commands, "wait_until_ready", wait_until_ready)
    assert CliRunner().invoke(app, ["restart", "ppo"]).output.splitlines()[1:] == [
        "group ppo: PoolFull: wait (its deadline has passed)",
        "group ppo: PoolFull: wait (ProgressDeadlineExceeded: the operator keeps trying)",
        "group ppo: ready",
    ]


def test_a_restart_of_a_pool_says_what_ends_before_it_begins(monkeypatch):
    old = {"conditions": [condition("UpToDate", "False", "OldImage", "image: runs a, the spec says b")]}
    cluster = FakeCluster(pool("ppo", status=old, clusterName="rl"), group("ppo"), pool("eval", clusterName="rl"))
    cluster.server, cluster.context = "s", "lab"
    restarts = []
    monkeypatch.setattr(lifecycle_commands, "Cluster", lambda *_: cluster)
    monkeypatch.setattr(lifecycle_commands, "Pool", lambda name, _: Mock(restart=lambda: restarts.append(name)))
    monkeypatch.setattr(lifecycle_commands, "wait_until_ready", lambda *_: None)
    asked = CliRunner().invoke(app, ["restart", "pool/ppo"])
    assert (asked.exit_code, restarts) == (2, [])
    assert "add --yes" in asked.output
    told = CliRunner().invoke(app, ["restart", "pool/ppo", "--yes"]).output.splitlines()
    assert told == [
        "In namespace team (context lab), this replaces the nodes of pool ppo one by one",
        "  image: runs a, the spec says b",
        "  until the last one is replaced, these have no ranks: group ppo",
        "  if the head is replaced, all ranks and jobs on Ray cluster rl, which pool eval shares, end",
    ]
    assert restarts == ["pool/ppo"]


class RestartingCluster(FakeCluster):
    """A cluster whose operator takes up the restart of a pool, or does not."""

    def __init__(self, status, *, takes_up):
        super().__init__(pool("ppo", status=status))
        self.takes_up = takes_up

    def annotate(self, kind, name, annotation, value):
        if self.takes_up:
            self.objects[0]["status"]["roll"] = digest(value) + "/template"


def test_a_restart_of_a_pool_returns_when_it_has_begun_and_says_why_it_cannot(monkeypatch):
    monkeypatch.setattr("workergroups_client.pool._TAKEN_UP_SECONDS", 0.3)
    Pool("pool/ppo", RestartingCluster({}, takes_up=True)).restart()
    refused = [condition("UpToDate", "False", "PodsRefused", "the restart has not begun: no account")]
    with pytest.raises(ClientError, match="pool ppo is not restarted: PodsRefused: the restart has not begun"):
        Pool("pool/ppo", RestartingCluster({"conditions": refused}, takes_up=False)).restart()
    with pytest.raises(DeadlineError, match="check that it runs"):
        Pool("pool/ppo", RestartingCluster({}, takes_up=False)).restart()


def test_without_a_kubeconfig_it_reports_it_and_ends_with_1(tmp_path, monkeypatch, capfd):
    monkeypatch.setattr("kubernetes.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION", str(tmp_path / "absent"))
    monkeypatch.setattr("sys.argv", ["workergroups", "status"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    told = capfd.readouterr().err
    assert told.startswith("error: there is no usable kubeconfig: ")
    assert "Traceback" not in told


@pytest.mark.parametrize(
    ("seconds", "said"), [(0.4, "0s"), (59, "59s"), (61, "1m1s"), (3600, "1h0m"), (90_000, "1d1h"), (-3, "0s")]
)
def test_durations_have_two_units(seconds, said):
    assert duration(seconds) == said
