"""Variables from Secrets and ConfigMaps in the process of a rank."""

import json
import os
import subprocess
import sys

import pytest

from workergroups.node import group_env

VALUES = {"A": "1", "B": "${A} $(A)", "PYTHONPATH": "/theirs"}


@pytest.fixture
def mounted(tmp_path, monkeypatch):
    """The directory that the pod mounts, and an environment that is restored."""
    monkeypatch.setenv("WORKERGROUPS_GROUP_ENV_DIRECTORY", str(tmp_path))
    for name in ("A", "B", "PYTHONPATH", "WORKERGROUPS_GROUP_ENV"):
        monkeypatch.setenv(name, "")  # so that it is restored
        os.environ.pop(name)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    return tmp_path


def deliver(directory, values=VALUES, digest="d1"):
    (directory / "g").write_text(json.dumps({"digest": digest, "env": values}))


def test_a_process_without_a_reference_needs_nothing(mounted):
    before = os.environ.copy()
    assert group_env.load()
    assert os.environ == before


def test_variables_are_set_as_they_are_and_the_reference_is_removed(mounted):
    os.environ.update(group_env.reference("g", "d1"), PYTHONPATH="/code:/library")
    deliver(mounted)
    assert group_env.load()
    assert (os.environ["A"], os.environ["B"]) == ("1", "${A} $(A)")
    assert os.environ["PYTHONPATH"] == "/code:/library:/theirs"
    assert sys.path[-1] == "/theirs"
    assert "WORKERGROUPS_GROUP_ENV" not in os.environ
    os.environ["A"] = "changed by the user's module"
    group_env.require()
    assert os.environ["A"] == "changed by the user's module"


@pytest.mark.parametrize("content", [None, "", "{", "[]", '{"digest": "d1"}', '{"digest": "d0", "env": {"A": "1"}}'])
def test_another_version_or_none_sets_nothing(mounted, content):
    os.environ.update(group_env.reference("g", "d1"))
    if content is not None:
        (mounted / "g").write_text(content)
    assert group_env.delivered("g", "d1") is None
    assert not group_env.load()
    assert "A" not in os.environ
    with pytest.raises(RuntimeError, match="restart the group"):
        group_env.require()


def test_it_imports_neither_ray_nor_pydantic():
    program = "import sys, workergroups.node.group_env; print({'ray', 'pydantic'} & sys.modules.keys())"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout == "set()\n"
