"""A job that names a file of this machine and gets none."""

import re

import pytest
import typer
from typer.testing import CliRunner

from workergroups_cli.app import app
from workergroups_cli.command_words import look_at, note_expanded, refuse_manifests, refuse_unfit

NOTE = "the job gets no files of this machine, such as driver.py: to send this directory, add --working-dir .\n"


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A working directory with a driver in it."""
    (tmp_path / "driver.py").touch()
    (tmp_path / "data").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("command", "has_working_dir", "said"),
    [
        (["python", "driver.py"], False, NOTE),
        (["python", "driver.py", "driver.py"], False, NOTE),
        (["python", "driver.py"], True, ""),
        (["python", "other.py"], False, ""),
        (["ls", "data"], False, ""),
        (["cat", "{here}/driver.py"], False, ""),
        (["a\0b", "x" * 5000, ""], False, ""),
        ([], False, ""),
    ],
)
def test_a_file_that_only_this_machine_has_is_named_once(here, capsys, command, has_working_dir, said):
    look_at([word.replace("{here}", str(here)) for word in command], has_working_dir=has_working_dir)
    assert capsys.readouterr().err == said


@pytest.mark.parametrize("word", ["pool.yaml", "more/pool.yml", "pool.json", "."])
def test_a_manifest_is_no_command(word):
    done = CliRunner().invoke(app, ["up", word])
    assert done.exit_code == 2
    assert f"write --file {word}" in re.sub(r"[\s│]+", " ", done.output)


def test_a_program_may_have_the_name_of_a_directory(here):
    (here / "python").mkdir()
    refuse_manifests(["python", "train.py"])
    with pytest.raises(typer.BadParameter, match="python is no program to run: to apply it, write --file python"):
        refuse_manifests(["python"])


@pytest.mark.parametrize(
    "words",
    [
        ["job", "submit", "ppo", "--", "python", "caf\udce9.py"],
        ["up", "-f", "none.yaml", "--", "python", "caf\udce9.py"],
        ["exec", "ppo", "--", "python", "caf\udce9.py"],
        ["job", "submit", "ppo", "--env", "A=caf\udce9", "--", "python"],
    ],
)
def test_what_is_not_utf_8_is_refused_before_anything_is_sent(words):
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 2
    said = " ".join(done.output.replace("\u2502", " ").split())
    assert r"caf\udce9" in said
    assert "is not UTF-8, and cannot be sent to the cluster" in said


@pytest.mark.parametrize("words", [["job", "submit", "ppo"], ["up", "-f", "none.yaml"], ["exec", "ppo"]])
@pytest.mark.parametrize("command", ["python driver.py", "echo a > b", "a\nb"])
def test_a_command_that_is_quoted_as_a_whole_is_refused_with_the_two_ways_to_write_it(words, command):
    done = CliRunner().invoke(app, [*words, "--", command])
    assert done.exit_code == 2
    said = " ".join(done.output.replace("\u2502", " ").split())
    assert f"the name of one program: write -- {' '.join(command.split())}, or for a shell -- sh -c '" in said


@pytest.mark.parametrize(
    ("variables", "names"),
    [
        ({"PW": "ab$HOME-cd", "B": "${HOME}", "C": "5$"}, "PW, B."),
        ({"A": "$", "B": "a$-b", "C": "", "D": 3}, ""),
    ],
)
def test_variables_that_ray_changes_are_named(capsys, variables, names):
    note_expanded(variables)
    assert capsys.readouterr().err.partition("here in ")[2].partition(" A Secret")[0] == names


@pytest.mark.parametrize("command", [["python", "a b.py"], ["ls"], []])
def test_other_commands_are_not(command):
    refuse_unfit(command)


@pytest.mark.parametrize("words", [["job", "submit", "ppo"], ["up", "-f", "none.yaml"]])
def test_it_is_said_before_anything_is_applied_or_submitted(here, monkeypatch, words):
    monkeypatch.setenv("KUBECONFIG", str(here / "none"))
    done = CliRunner().invoke(app, [*words, "--", "python", "driver.py"])
    assert NOTE in done.output
    assert done.exit_code == 1


def test_a_runtime_environment_may_have_the_directory(here, monkeypatch):
    monkeypatch.setenv("KUBECONFIG", str(here / "none"))
    (here / "env.yaml").write_text("working_dir: .\n")
    done = CliRunner().invoke(app, ["job", "submit", "ppo", "--runtime-env", "env.yaml", "--", "python", "driver.py"])
    assert "add --working-dir" not in done.output
    assert done.exit_code == 1
    assert "there is no usable kubeconfig" in str(done.exception)
