"""What the verbs of `job` print, and how they end, for jobs of several attempts and for lost ones."""

from contextlib import contextmanager, nullcontext
from dataclasses import replace
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from workergroups_cli import job_commands
from workergroups_cli.app import app
from workergroups_cli.job_commands import follow
from workergroups_cli.output import Teller
from workergroups_client.errors import UnreachableError
from workergroups_client.jobs.jobs import AbsentJob
from workergroups_client.jobs.records import JobRecord

SUCCEEDED = JobRecord("ppo-2", "SUCCEEDED", "python train.py", "", 100.0, 163.0, 0, "ppo", 2)
LOST = JobRecord("ppo-1", "LOST", "python train.py", "Ray's head is gone", 1.0, None, None, "ppo", 1, is_kept=True)


class Cluster:
    namespace = "team"
    options = "-n team --context lab"

    def __init__(self, *_):
        pass


class Job:
    """A job that prints a line, and then ends so, or is interrupted."""

    id, pool = "ppo", "ppo"

    def __init__(self, record, interrupt=False):
        self._record, self._interrupt = record, interrupt

    def logs(self, *, follow, tell):
        yield b"a line\n"
        if self._interrupt:
            raise KeyboardInterrupt

    def record(self):
        if isinstance(self._record, Exception):
            raise self._record
        return self._record


@pytest.mark.parametrize(
    ("record", "code", "said"),
    [
        (SUCCEEDED, 0, "job ppo: SUCCEEDED"),
        (LOST, 1, "job ppo: LOST: Ray's head is gone"),
        (
            replace(SUCCEEDED, state="FAILED", driver_exit_code=7, message="exit code 7, last available logs: x"),
            7,
            "job ppo: FAILED: exit code 7",
        ),
    ],
)
def test_who_follows_a_job_learns_how_it_ended(capsys, record, code, said):
    assert follow(Job(record), Cluster(), Teller()) == code
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("a line\n", f"{said}\n")


@pytest.mark.parametrize(
    ("record", "said"),
    [
        # Between two attempts.
        (replace(LOST, state="FAILED"), "job ppo: FAILED; this command submits no other attempt"),
        (replace(LOST, state="RUNNING"), "stop it:    workergroups job stop ppo -n team --context lab"),
        (UnreachableError("no route"), "job ppo keeps running."),
    ],
)
def test_ctrl_c_ends_the_attempts_and_says_what_still_runs(capsys, record, said):
    assert follow(Job(record, interrupt=True), Cluster(), Teller()) == 130
    assert said in capsys.readouterr().err


def test_nobody_submits_attempts_of_a_job_that_nobody_follows():
    done = CliRunner().invoke(app, ["job", "submit", "ppo", "--retries", "1", "--no-wait", "--", "true"])
    assert done.exit_code == 2
    assert "leave out --no-wait" in done.output
    assert CliRunner().invoke(app, ["job", "submit", "ppo", "--retries", "-1", "--", "true"]).exit_code == 2


def test_the_list_has_a_row_for_each_attempt(monkeypatch):
    class Pool:
        name = "ppo"

    @contextmanager
    def all_jobs(*_):
        yield [(Pool, SUCCEEDED), (Pool, LOST)]

    monkeypatch.setattr(job_commands, "Cluster", Cluster)
    monkeypatch.setattr(job_commands, "all_jobs", all_jobs)
    _, *rows = [line.split() for line in CliRunner().invoke(app, ["job", "list"]).output.splitlines()]
    assert [row[:4] + row[5:6] for row in rows] == [
        ["ppo-2", "SUCCEEDED", "ppo", "2", "1m3s"],
        ["ppo-1", "LOST", "ppo", "1", "-"],
    ]


def test_the_state_of_a_job_goes_to_standard_output_also_when_something_was_told(monkeypatch):
    @contextmanager
    def the_job(cluster, name, tell):
        tell("asking Ray")
        yield Job(SUCCEEDED)

    spinning = []

    class Spinner(Teller):
        def __call__(self, sentence):
            spinning.append(sentence)

        def quiet(self):
            spinning.clear()

    monkeypatch.setattr(job_commands, "Teller", Spinner)
    monkeypatch.setattr(job_commands, "Cluster", Cluster)
    monkeypatch.setattr(job_commands, "the_job", the_job)
    monkeypatch.setattr(job_commands, "print_list", lambda *_: spinning.append("printed"))
    assert CliRunner().invoke(app, ["job", "status", "--output", "json"]).exit_code == 0
    assert spinning == ["printed"]


def test_the_stop_of_a_lost_job_ends_its_retries():
    class Kept:
        noted = None

        def note_stop(self, job_id):
            self.noted = job_id

    kept = Kept()
    assert AbsentJob(LOST, "ppo", kept).stop() == LOST
    assert kept.noted == "ppo-1"
    with pytest.raises(UnreachableError, match="job ppo-1 may still be running"):
        AbsentJob(replace(LOST, state="UNKNOWN"), "ppo", kept).stop()


def test_a_list_that_is_no_table_for_people_has_whole_commands(monkeypatch, capsys):
    command = "python train.py " + "trainer.logger=['console','wandb'] " * 9
    records = [(SimpleNamespace(name="ppo"), replace(SUCCEEDED, entrypoint=command))]
    monkeypatch.setattr(job_commands, "Cluster", Cluster)
    monkeypatch.setattr(job_commands, "all_jobs", lambda *_: nullcontext(records))
    job_commands.list_jobs()
    assert command.strip() in capsys.readouterr().out


def test_a_command_of_several_lines_is_one_line_of_the_list(monkeypatch, capsys):
    records = [(SimpleNamespace(name="ppo"), replace(SUCCEEDED, entrypoint="python -c '\nimport ray\n\nray.init()'"))]
    monkeypatch.setattr(job_commands, "Cluster", Cluster)
    monkeypatch.setattr(job_commands, "all_jobs", lambda *_: nullcontext(records))
    job_commands.list_jobs()
    _, row = capsys.readouterr().out.splitlines()
    assert row.rstrip().endswith("python -c ' import ray ray.init()'")
