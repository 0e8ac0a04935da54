"""The commands as typed, without a cluster."""

import contextlib
import os
import pty
import re
import signal
import subprocess
import sys
from importlib import metadata
from importlib.util import find_spec
from unittest.mock import Mock

import pytest
import typer
from typer.testing import CliRunner

from tests.cluster.command_line import read_until
from tests.unit.client.fake_cluster import SOON, FakeCluster, condition, group, pool
from workergroups_api.launch import digest
from workergroups_cli import job_commands, kubectl_completion, lifecycle_commands, progress, verbs
from workergroups_cli.app import app, main
from workergroups_cli.command import record
from workergroups_cli.options import LONGEST_WAIT, seconds_of
from workergroups_client import Pool
from workergroups_client.errors import ClientError, DeadlineError
from workergroups_client.objects.names import find
from workergroups_client.objects.status import status_of
from workergroups_client.times import duration

READY = {"conditions": [condition("Ready", "True")], "observedGeneration": 2}
OPTION = "(-[a-zA-Z], )?--[a-z-]+(, --rank)?"
METAVAR = re.compile(rf"{OPTION}( [A-Z]+(=[A-Z]+)?)?|\[?[A-Z]+(\.\.\.)?\]?|\[-- CMD\.\.\.\]")
RANKED = ["logs", "stacks", "debug", "exec"]


def test_help_names_every_verb():
    shown = CliRunner().invoke(app, ["--help"])
    assert shown.exit_code == 0
    assert [verb for verb in verbs.VERBS if f"\n  {verb} " not in shown.output] == []
    assert "..." not in shown.output.partition("Commands:")[2], "a summary is cut off at 80 columns"


COMPLETION = {"_WORKERGROUPS_COMPLETE": "complete_bash", "COMP_WORDS": "workergroups sta", "COMP_CWORD": "1"}
SLOW = {"kubernetes", "urllib3", "websocket"}


@pytest.mark.parametrize(
    ("arguments", "variables", "said", "unwanted"),
    [
        (["--help"], {}, "Show pools and groups", {"pydantic", *SLOW}),
        ([], COMPLETION, "status\n", SLOW),  # typer reads options with pydantic
    ],
    ids=["help", "completion"],
)
def test_what_only_verbs_need_is_not_imported(arguments, variables, said, unwanted):
    assert [name for name in unwanted if find_spec(name) is None] == []
    program = [
        "import sys, workergroups_cli.app",
        "try: workergroups_cli.app.app(prog_name='workergroups')",
        "finally: print('imported:', *sys.modules)",
    ]
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(program), *arguments],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=60,
    )
    printed, _, imported = done.stdout.partition("imported: ")
    assert said in printed, done.stderr
    assert "typer" in imported.split()
    assert unwanted & set(imported.split()) == set()


def every_command():
    """The words of each command, and the command."""
    yield [], typer.main.get_command(app)
    for name in verbs.VERBS:
        command = verbs.load(name)
        yield [name], command
        yield from (([name, each], below) for each, below in getattr(command, "commands", {}).items())


COMMANDS = {" ".join(words) or "no verb": (words, command) for words, command in every_command()}


@pytest.mark.parametrize(("words", "command"), COMMANDS.values(), ids=COMMANDS)
def test_the_help_fits_into_80_columns_and_values_are_words_in_capitals(words, command):
    shown = CliRunner().invoke(app, [*words, "--help"], prog_name="kubectl workergroups").output
    assert [line for line in shown.splitlines() if len(line) > 80] == []
    assert "..." not in shown.partition("Commands:")[2], "a summary is cut off"
    context = command.make_context("workergroups", [], resilient_parsing=True)
    names = [record(each, context)[0] for each in command.get_params(context)]
    assert [name for name in names if not METAVAR.fullmatch(name)] == []
    assert not set("<{") & set(command.get_usage(context))


COMPLETED = [
    (["sta"], ["status", "stacks"]),
    (["logs", "--ta"], ["--tail"]),
    (["job", "s"], ["submit", "status", "stop"]),
    (["job", ""], ["submit", "list", "logs", "status", "stop"]),
    (["logs", "--nonsense"], []),
    (["up", "-f", "po"], []),
]


@pytest.mark.parametrize(("words", "found"), COMPLETED)
def test_kubectl_is_told_how_to_complete_the_words(words, found, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["kubectl_complete-workergroups", *words])
    monkeypatch.setattr("os.environ", dict(os.environ))
    kubectl_completion.main()
    *printed, directive = capsys.readouterr().out.splitlines()
    assert (sorted(printed), directive) == (sorted(found), ":4" if found else ":0")


@pytest.mark.parametrize("verb", verbs.VERBS)
def test_a_verb_is_listed_with_the_first_sentence_of_its_own_help(verb):
    command = verbs.load(verb)
    assert (command.name, command.get_short_help_str(limit=200)) == (verb, verbs.VERBS[verb].summary)


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
        (["logs", "ppo", "--previous", "--follow"], "with --ranks and --tail only"),
        (["logs", "ppo", "--previous", "--node", "0"], "with --ranks and --tail only"),
        (["exec", "ppo", "--ranks", "0-1", "-it", "--", "ls"], "input is for one command"),
        *(([verb, "ppo", "--ranks", "3-1"], "'3-1' is not a range of ranks: write 3,") for verb in RANKED),
        *(([verb, "ppo", "--rank", ""], "'' is not a range of ranks: write 3,") for verb in RANKED),
        (["logs", "ppo", "--previous", "--since", "1m"], "with --ranks and --tail only"),
        (["logs", "ppo", "--node", "0", "--ranks", "0"], "cannot be combined"),
        (["logs", "ppo", "--since", "yesterday"], "--since must be a time such as 90s"),
        (["logs", "ppo", "--tail", "0"], "greater than or equal to 1"),
        (["up", "--timeout", "9" * 5000 + "h"], "--timeout must be a time such as 90s"),
        (["exec", "ppo", "--every-node", "-it", "--", "ls"], "input is for one command"),
        (["status", "--ray"], "--ray needs a name"),
        (["status", "--wrong"], "No such option"),
        (["scale", "ppo"], "Missing argument"),
        (["up", "--timeout", "90"], "--timeout must be a time such as 90s"),
        (["up", "--working-dir", "."], "are for a command"),
        (["up", "--env", "A=b"], "are for a command"),
        (["up", "--env-from", "secret/keys"], "are for a command"),
        (["up", "--env", "KEY", "--", "ls"], "KEY: write NAME=VALUE"),
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
        for progressing in [("True", "WaitingForReady")] * 2 + [("False", "ProgressDeadlineExceeded")] * 2:
            conditions = [condition("Ready", "False", "PoolFull", "wait"), condition("Progressing", *progressing)]
            status = {"conditions": conditions, "observedGeneration": 2, "deadline": SOON}
            show([status_of(find(FakeCluster(group("ppo", status=status)), "ppo"))])
        ready = [status_of(find(FakeCluster(group("ppo", status=READY)), "ppo"))]
        show(ready)
        return ready

    monkeypatch.setattr(lifecycle_commands, "Cluster", lambda *_: FakeCluster(group("ppo")))
    monkeypatch.setattr(lifecycle_commands, "Group", lambda *_: Mock(restart=lambda: 2))
    monkeypatch.setattr(progress, "wait_until_ready", wait_until_ready)
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
    monkeypatch.setattr(lifecycle_commands, "Pool", lambda name, *_: Mock(restart=lambda: restarts.append(name)))
    monkeypatch.setattr(progress, "wait_until_ready", lambda *_: [])
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
    monkeypatch.setattr("workergroups_client.handles.pool._TAKEN_UP_SECONDS", 0.3)
    Pool("pool/ppo", RestartingCluster({}, takes_up=True)).restart()
    refused = [condition("UpToDate", "False", "PodsRefused", "the restart has not begun: no account")]
    with pytest.raises(ClientError, match="pool ppo is not restarted: PodsRefused: the restart has not begun"):
        Pool("pool/ppo", RestartingCluster({"conditions": refused}, takes_up=False)).restart()
    with pytest.raises(DeadlineError, match="check that it runs"):
        Pool("pool/ppo", RestartingCluster({}, takes_up=False)).restart()


@pytest.mark.parametrize("off", ["", "0", "false"])
def test_an_unexpected_exception_is_one_line_unless_its_traceback_is_asked_for(monkeypatch, capfd, off):
    def fail():
        raise KeyError("kind")

    monkeypatch.setattr("workergroups_cli.app.app", fail)
    monkeypatch.setenv("WORKERGROUPS_TRACEBACK", off)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    assert capfd.readouterr().err == (
        "error: KeyError: 'kind'. This is unexpected: to report it, set WORKERGROUPS_TRACEBACK=1\n"
    )
    monkeypatch.setenv("WORKERGROUPS_TRACEBACK", "1")
    with pytest.raises(KeyError):
        main()


@pytest.mark.parametrize("text", [None, "{{{ no YAML", "[1, 2]"], ids=["absent", "no YAML", "a list"])
def test_without_a_usable_kubeconfig_it_says_so_in_one_line_and_ends_with_1(text, tmp_path, monkeypatch, capfd):
    if text is not None:
        (tmp_path / "config").write_text(text)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))
    monkeypatch.setattr("sys.argv", ["workergroups", "status"])
    with pytest.raises(SystemExit) as ended:
        main()
    told = capfd.readouterr().err
    assert ended.value.code == 1
    assert told.startswith("error: there is no usable kubeconfig: ")
    assert told.endswith("Set KUBECONFIG, or copy the cluster's kubeconfig to ~/.kube/config\n")
    assert told.count("\n") == 1


@pytest.mark.parametrize(
    ("seconds", "said"), [(0.4, "0s"), (59, "59s"), (61, "1m1s"), (3600, "1h0m"), (90_000, "1d1h"), (-3, "0s")]
)
def test_durations_have_two_units(seconds, said):
    assert duration(seconds) == said


ASKS = """
import typer
from workergroups_cli.lifecycle_commands import _confirm
typer.run(lambda: _confirm("Go?", is_confirmed=False))
"""


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("n\n", 1), ("\x04", 1), (signal.SIGINT, 130)])
def test_ctrl_c_at_a_question_ends_with_130(answer, code):
    terminal, own = pty.openpty()
    with subprocess.Popen([sys.executable, "-c", ASKS], stdin=own, stdout=own, stderr=own) as process:
        os.close(own)
        read_until(terminal, "Go? [y/N]")
        for _ in range(20):  # a signal that comes before it reads wakes nobody
            os.write(terminal, answer.encode()) if isinstance(answer, str) else process.send_signal(answer)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(3)
                break
        process.kill()
    assert process.returncode == code
    os.close(terminal)


@pytest.mark.parametrize(
    ("words", "environment", "code"),
    [
        (["init", "-f", "-"], {"PYTHONIOENCODING": "ascii", "LC_ALL": "C"}, 0),
        (["init", "-f", "-"], {"TERM": "dumb", "NO_COLOR": "1"}, 0),
        (["init", "-f", "-"], {"FORCE_COLOR": "1", "COLUMNS": "1"}, 0),
        (["--help"], {"COLUMNS": "nonsense"}, 0),
        (["up", "-f", "-"], {}, 1),
    ],
)
@pytest.mark.parametrize("redirected", ["", " >&-", " >&- 2>&-", " | head -1", " 2>&1 <&-"])
def test_odd_surroundings_cause_no_traceback(words, environment, code, redirected, tmp_path):
    line = f"{sys.executable} -m workergroups_cli {' '.join(words)}{redirected}"
    done = subprocess.run(
        line, shell=True, env={**os.environ, **environment}, cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == (0 if "|" in redirected else code)  # a pipeline ends with the code of its last command
    for word in ("Traceback", "Exception", "This is unexpected"):
        assert word not in done.stdout + done.stderr  # of which one may go where the other goes
