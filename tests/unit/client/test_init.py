"""What `init` writes, and the names that it chooses."""

import re

import pytest
import yaml
from typer.testing import CliRunner

from tests.unit.docs.manifests import KINDS, left_out
from workergroups_cli.app import app
from workergroups_client.errors import ClientError


def run(*words):
    return CliRunner().invoke(app, ["init", *words])


@pytest.mark.parametrize("words", [(), ("--cpus",), ("--processes", "64")])
def test_the_api_has_all_fields_of_the_manifests(words):
    code, *ours = yaml.safe_load_all(run("tiny", *words, "--file", "-").output)
    assert [each["kind"] for each in ours] == ["ResourcePool", "WorkerGroup"]
    for manifest in ours:
        known = KINDS[manifest["kind"]].model_validate(manifest).to_json()
        assert left_out(manifest["spec"], known["spec"]) == []
    assert ours[1]["spec"]["code"]["configMap"]["name"] == code["metadata"]["name"]
    compile(code["data"]["adder.py"], "adder.py", "exec")


def test_the_file_says_how_to_call_the_ranks():
    said = run("tiny", "--file", "-").output
    (call,) = re.findall(r'workergroups exec tiny -- python -c "(.+)"', said)
    assert "attach('tiny').execute_all_sync('add', 10)" in call
    compile(call, "call", "exec")


@pytest.mark.parametrize(
    ("folder", "name"),
    [("ppo", "ppo"), ("My Project_2", "my-project-2"), ("2026", "first"), ("a" * 60, "a" * 40), ("Übung", "bung")],
)
def test_the_name_is_that_of_the_folder_if_it_can_be(folder, name, tmp_path, monkeypatch):
    (tmp_path / folder).mkdir()
    monkeypatch.chdir(tmp_path / folder)
    assert run().exit_code == 0
    names = [each["metadata"]["name"] for each in yaml.safe_load_all((tmp_path / folder / "pool.yaml").read_text())]
    assert names == [f"{name}-code", name, name]


@pytest.mark.parametrize("name", ["", "A", "2", "a_b", "a" * 41, "a\n"])
def test_a_name_that_no_pool_can_have_is_wrong_usage(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(name).exit_code == 2
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_does_not_exist_is_named(tmp_path):
    with pytest.raises(ClientError, match=r"absent/pool\.yaml cannot be written: No such file or directory"):
        CliRunner().invoke(app, ["init", "tiny", "-f", str(tmp_path / "absent/pool.yaml")], catch_exceptions=False)
