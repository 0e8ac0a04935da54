"""What runc is given on a machine whose root lacks capabilities."""

import json
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader

import pytest

from tools.local_kind.layout import HERE


@pytest.fixture
def runc(monkeypatch):
    loader = SourceFileLoader("local_kind_runc", str(HERE / "node" / "runc"))
    module = module_from_spec(spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    monkeypatch.setattr(module, "bounding_set", lambda: {"CAP_CHOWN", "CAP_SYS_ADMIN"})
    return module


def bounded(runc, tmp_path, specification):
    file = tmp_path / "config.json"
    file.write_text(json.dumps(specification))
    runc.bound(file)
    return json.loads(file.read_text())


ALL = ["CAP_CHOWN", "CAP_SYS_ADMIN", "CAP_SYS_RESOURCE"]


def test_a_privileged_container_gets_what_there_is(runc, tmp_path):
    process = {"capabilities": {"bounding": ALL, "effective": ALL}}
    there = {"capabilities": {"bounding": ALL[:2], "effective": ALL[:2]}}
    assert bounded(runc, tmp_path, {"process": process}) == {"process": there}
    assert bounded(runc, tmp_path, process) == there


@pytest.mark.parametrize("capabilities", [None, {"bounding": ["CAP_CHOWN", "CAP_SYS_RESOURCE"]}])
def test_others_get_what_they_ask_for_or_fail(runc, tmp_path, capabilities):
    specification = {"process": {"capabilities": capabilities}}
    assert bounded(runc, tmp_path, specification) == specification


def test_the_names_are_those_of_specifications(runc, monkeypatch):
    monkeypatch.undo()
    assert runc.bounding_set() >= {"CAP_CHOWN", "CAP_KILL", "CAP_SETUID"}
