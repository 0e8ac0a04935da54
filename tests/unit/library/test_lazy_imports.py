"""The library without torch and tensordict."""

from __future__ import annotations

import subprocess
import sys

import pytest

ABSENT = """
import sys
sys.modules["torch"] = sys.modules["tensordict"] = None  # as if they were not installed
"""


def run(program):
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)


def test_importing_the_library_does_not_import_them():
    done = run("import sys, workergroups; print({'torch', 'tensordict'} & sys.modules.keys())")
    assert done.stdout == "set()\n", done.stderr


def test_batches_without_tensors_need_neither():
    done = run(
        f"{ABSENT}from workergroups import DataProto\n"
        "halves = DataProto.from_dict(non_tensors={'n': ['a', 'b']}).chunk(2)\n"
        "print(DataProto.concat(halves).non_tensor_batch['n'].tolist())"
    )
    assert done.stdout == "['a', 'b']\n", done.stderr


@pytest.mark.parametrize(
    ("operation", "missing"),
    [("DataProto.from_single_dict({'a': [1]})", "torch"), ("DataProto(None).to_tensordict()", "tensordict")],
)
def test_what_needs_them_reports_it(operation, missing):
    done = run(f"{ABSENT}from workergroups import DataProto\n{operation}")
    assert f"needs {missing}, which is not installed: pip install {missing}" in done.stderr
