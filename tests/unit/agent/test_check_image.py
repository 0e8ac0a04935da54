"""What is said of an image that cannot run Ray, and what is kept of one that can."""

import json
import os
import socket
import subprocess
import sys
import threading

import pytest

from workergroups_agent import check_image

GOOD = {"ray": "2.52.0", "pydantic": "2.5.3"}


@pytest.fixture
def image(tmp_path, monkeypatch):
    """Have this Python find these distributions and no others."""

    def has(*, dashboard: bool = True, **versions: str) -> None:
        for name, version in versions.items():
            metadata = tmp_path / f"{name}-{version}.dist-info" / "METADATA"
            metadata.parent.mkdir()
            metadata.write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        if dashboard:
            (tmp_path / "aiohttp_cors.py").touch()
        monkeypatch.setattr(sys, "path", [str(tmp_path)])

    return has


@pytest.mark.parametrize("ray", ["2.52.0", "2.60.0", "2.100.1", "3.0.0rc1", "2.53.0.dev0"])
def test_an_image_with_a_ray_that_knows_tokens_lacks_nothing(image, ray):
    image(**GOOD | {"ray": ray})
    assert check_image.what_is_lacking() == ""
    assert check_image.found().startswith(f"ray {ray} python 3.")


@pytest.mark.parametrize(
    ("has", "said"),
    [
        ({"pydantic": "2.5"}, "no Ray that"),
        (GOOD | {"ray": "2.51.2"}, "has Ray 2.51.2, and needs 2.52 or later, the first with token authentication"),
        (GOOD | {"ray": "2.9.3"}, "has Ray 2.9.3"),
        (GOOD | {"dashboard": False}, "Ray without the dashboard, which KubeRay's probes ask: install ray[default]"),
        (GOOD | {"pydantic": "1.10.22"}, "has pydantic 1.10.22, and needs 2.5 or later"),
        ({"ray": "2.60.0"}, "has no pydantic"),
    ],
)
def test_what_an_image_lacks_is_reported(image, has, said):
    image(**has)
    assert said in check_image.what_is_lacking()


def test_an_old_python_is_reported(monkeypatch):
    monkeypatch.setattr(sys, "version_info", (3, 9, 18, "final", 0))
    assert check_image.what_is_lacking() == "the image has Python 3.9.18, and needs 3.10 or later"


def test_what_the_image_had_on_its_path_comes_after_the_library_and_its_own_sitecustomize_runs(tmp_path, monkeypatch):
    library, theirs = tmp_path / "library", tmp_path / "theirs"
    for directory in (library, theirs):
        directory.mkdir()
    (theirs / "sitecustomize.py").write_text("import os\nos.environ['CUSTOMIZED'] = 'yes'\n")
    monkeypatch.setattr(check_image, "LIBRARY", library)
    check_image.keep_python_path(str(theirs))
    program = "import json, os, sys; print(json.dumps([os.environ.get('CUSTOMIZED'), sys.path]))"
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(library)}
    command = [sys.executable, "-c", program]
    customized, path = json.loads(subprocess.run(command, env=environment, capture_output=True, check=True).stdout)
    assert customized == "yes"
    assert path[1:3] == [str(library), str(theirs)]


@pytest.mark.parametrize("theirs", ["", ":"])
def test_an_image_without_a_path_of_its_own_gets_no_sitecustomize(tmp_path, monkeypatch, theirs):
    monkeypatch.setattr(check_image, "LIBRARY", tmp_path)
    check_image.keep_python_path(theirs)
    assert not list(tmp_path.iterdir())


# As KubeRay has it, with a `ray` that tells that it was asked.
WAIT = """
SECONDS=0
while true; do
  if ray health-check --address {address} > /dev/null 2>&1; then
    echo "Ray was asked."
    break
  fi
  sleep 5
done
"""


@pytest.fixture
def in_worker(tmp_path, monkeypatch):
    """Run a command by Bash as in a worker of an image that had this BASH_ENV."""
    (tmp_path / "ray").write_text("#!/bin/sh\n")
    (tmp_path / "ray").chmod(0o755)
    monkeypatch.setattr(check_image, "LIBRARY", tmp_path)

    def run(command: str, theirs: str = "", **variables: str) -> list[str]:
        check_image.keep_bash_env(theirs)
        environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "BASH_ENV": str(tmp_path / "bash_env.sh")}
        done = subprocess.run(
            ["bash", "-c", "--", command], env=environment | variables, capture_output=True, timeout=30
        )
        assert (done.returncode, done.stderr) == (0, b"")
        return done.stdout.decode().splitlines()

    return run


def test_the_wait_for_the_head_ends_when_the_gcs_listens_and_asks_no_ray(in_worker):
    with socket.socket() as head:
        head.bind(("127.0.0.1", 0))
        waiting = threading.Timer(1.0, head.listen)
        waiting.start()
        lines = in_worker(WAIT.format(address=f"127.0.0.1:{head.getsockname()[1]}"))
        waiting.join()
    assert lines[-1].startswith("the head listens at port ")


def test_the_wait_for_the_head_ends_before_the_gcs_listens_if_the_executor_does(in_worker, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as executor:
        monkeypatch.setattr(check_image, "HEAD_RUNS_PORT", executor.getsockname()[1])
        lines = in_worker(WAIT.format(address="127.0.0.1:1"))
    assert lines[-1].startswith(f"the head listens at port {check_image.HEAD_RUNS_PORT} after ")


# As KubeRay has it; `ray` prints its arguments, and so does the module that stands in for ours.
START = "ulimit -n > /dev/null; ray start  --address=head:6379  --block"


def test_ray_start_is_ours_in_rays_container(in_worker, tmp_path):
    (tmp_path / "workergroups_agent").mkdir()
    (tmp_path / "workergroups_agent" / "__init__.py").touch()
    (tmp_path / "workergroups_agent" / "start_again.py").write_text("import sys; print('ours', *sys.argv[1:])")
    (tmp_path / "ray").write_text('#!/bin/sh\necho theirs "$@"\n')
    python_path = {"PYTHONPATH": str(tmp_path)}
    assert in_worker(START, **python_path) == ["ours start --address=head:6379 --block"]
    assert in_worker(f"ray --version; {START}", **python_path)[0] == "theirs --version"
    assert in_worker("ray status", **python_path) == ["theirs status"]


def test_where_no_gcs_listens_for_long_kuberays_own_question_follows(in_worker):
    # SECONDS is Bash's clock; a variable of that name sets it.
    lines = in_worker(WAIT.format(address="127.0.0.1:1"), SECONDS="59")
    assert lines == ["waiting until the head runs, or its GCS listens at 127.0.0.1:1", "Ray was asked."]


@pytest.mark.parametrize("command", ["echo started", "ulimit -n > /dev/null; echo started"])
def test_other_commands_run_as_they_are(in_worker, command):
    assert in_worker(command) == ["started"]
    assert in_worker("env | grep -c BASH_ENV || true") == ["0"]


def test_the_images_own_file_of_that_kind_is_read_as_before(in_worker, tmp_path):
    theirs = tmp_path / "their file"
    theirs.write_text("export THEIRS=$((THEIRS + 1))\n")
    assert in_worker('echo "$THEIRS $BASH_ENV"', str(theirs)) == [f"1 {theirs}"]
    assert in_worker("bash -c 'echo $THEIRS'", str(theirs)) == ["2"]
    theirs.unlink()
    assert in_worker("echo started", str(theirs)) == ["started"]
