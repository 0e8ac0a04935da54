"""The commands as typed, without a cluster."""

import subprocess
import sys
from importlib import metadata

import pytest
from typer.testing import CliRunner

from workergroups_cli import job_commands
from workergroups_cli.app import app, main
from workergroups_cli.output import duration

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
    ],
)
def test_wrong_usage_ends_with_2(typed, said):
    result = CliRunner().invoke(app, typed)
    assert result.exit_code == 2
    assert said in result.output


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
