"""What `import workergroups` offers, and that it costs no Ray until it is used."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import pytest

import workergroups

SOURCE = ast.parse(Path(workergroups.__file__).read_text())


def test_types_and_lists_agree():
    imported = {
        (alias.name, "." * node.level + (node.module or ""))
        for block in SOURCE.body
        if isinstance(block, ast.If)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert imported == set(workergroups._HOME.items())
    assert sorted(workergroups._HOME) == sorted(workergroups.__all__)


@pytest.mark.parametrize("name", workergroups.__all__)
def test_each_name_is_what_its_module_has(name):
    module = import_module(workergroups._HOME[name], "workergroups")
    assert getattr(workergroups, name) is getattr(module, name)


def test_no_name_is_a_modules_too():
    modules = {module.name for module in iter_modules(workergroups.__path__)}
    assert modules.isdisjoint(workergroups.__all__)


def test_what_is_not_there_reports_it():
    with pytest.raises(AttributeError, match="module 'workergroups' has no attribute 'nothing'"):
        _ = workergroups.nothing
    with pytest.raises(ImportError, match="cannot import name 'nothing'"):
        from workergroups import nothing  # noqa: F401


def test_the_client_needs_no_ray():
    program = "import sys; sys.modules['ray'] = None; import workergroups.client; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stdout == "False\n", done.stderr
