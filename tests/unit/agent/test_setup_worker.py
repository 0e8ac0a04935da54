"""A worker process gets its variables without an import of Ray."""

import json
import os
import subprocess
import sys

import pytest

from workergroups.worker_process import setup_worker

PRINT = "import json, os, sys; print(json.dumps([os.environ.get('A'), sys.argv[1:], 'ray' in sys.modules]))"
CONTEXT = {
    "command_prefix": [],
    "env_vars": {"A": "b"},
    "py_executable": sys.executable,
    "override_worker_entrypoint": None,
    "java_jars": [],
}


def arguments(language="PYTHON", **context):
    """As a raylet has them."""
    return [f"--language={language}", f"--serialized-runtime-env-context={json.dumps(CONTEXT | context)}"]


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (arguments(), {"A": "b"}),
        (arguments(env_vars={}), {}),
        (arguments(language="JAVA"), None),
        (arguments(py_executable="uv run python"), None),
        (arguments(command_prefix=["source x &&"]), None),
        (arguments(override_worker_entrypoint="/x.py"), None),
        (arguments(java_jars=["x.jar"]), None),
        (arguments(of_a_later_ray="x"), None),
        (["--language=PYTHON"], None),
    ],
)
def test_only_what_needs_nothing_but_variables_is_started_here(given, found):
    assert setup_worker.variables(["setup_worker.py", *given]) == found


VALUES = ["", "x", "a:${HOME}", "a:${NOT_SET}:b", "$HOME/$NOT_SET", "${lower}", "é\n$", "100%"]


@pytest.mark.parametrize("value", VALUES)
def test_a_value_becomes_what_ray_makes_of_it(value):
    theirs = "import os, sys; from ray._private.utils import update_envs; update_envs({'X': sys.argv[1]}); "
    program = theirs + "sys.stdout.buffer.write(os.environ['X'].encode())"
    expected = subprocess.run([sys.executable, "-c", program, value], capture_output=True, check=True).stdout.decode()
    assert setup_worker.expanded(value) == expected


def test_the_process_becomes_the_worker_with_the_variables_set(tmp_path):
    worker = tmp_path / "default_worker.py"
    worker.write_text(PRINT)
    command = [sys.executable, setup_worker.__file__, str(worker), "--node-id=1", *arguments(env_vars={"A": "x${B}y"})]
    environment = os.environ | {"B": "-"}
    done = subprocess.run(command, env=environment, capture_output=True, check=True)
    assert json.loads(done.stdout) == ["x-y", ["--node-id=1"], False]


def test_variables_of_a_group_refer_to_those_of_the_pod_as_in_a_container(tmp_path):
    worker = tmp_path / "default_worker.py"
    worker.write_text(PRINT)
    given = {
        "A": "$(B) $B ${B} $$(B) $(C) $(",
        "B": "of the group",
        "WORKERGROUPS_WARM": "g",
        "PYTHONPATH": "x:${PYTHONPATH}",
    }
    command = [sys.executable, setup_worker.__file__, str(worker), *arguments(env_vars=given)]
    environment = os.environ | {"B": "of the pod"}
    done = subprocess.run(command, env=environment, capture_output=True, check=True)
    assert json.loads(done.stdout)[0] == "of the pod $B ${B} $(B) $(C) $("


def test_variables_from_secrets_are_set_as_they_are(tmp_path):
    worker = tmp_path / "default_worker.py"
    worker.write_text("import os; print(os.environ['A'], os.environ.get('WORKERGROUPS_GROUP_ENV'))")
    (tmp_path / "g").write_text(json.dumps({"digest": "d1", "env": {"A": "${HOME}"}}))
    context = arguments(env_vars={"WORKERGROUPS_GROUP_ENV": "g:d1"})
    command = [sys.executable, setup_worker.__file__, str(worker), *context]
    environment = os.environ | {"WORKERGROUPS_GROUP_ENV_DIRECTORY": str(tmp_path)}
    done = subprocess.run(command, env=environment, capture_output=True, check=True, text=True)
    assert done.stdout == "${HOME} None\n"


def test_what_needs_more_is_left_to_rays_own_file(tmp_path):
    worker = tmp_path / "default_worker.py"
    worker.write_text(PRINT)
    command = [sys.executable, setup_worker.__file__, str(worker), *arguments(command_prefix=["B=c;"])]
    done = subprocess.run(command, capture_output=True, check=True)
    assert json.loads(done.stdout)[0] == "b"
