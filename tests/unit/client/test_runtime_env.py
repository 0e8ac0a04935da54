"""A job's runtime environment."""

from pathlib import Path

import pytest

from workergroups_client.errors import ClientError, NotFoundError
from workergroups_client.jobs import runtime_env


class Ray:
    """Ray's API, as far as it takes packages."""

    def __init__(self):
        self.there = {}

    def ask(self, path):
        if path not in self.there:
            raise NotFoundError(path)

    def put(self, path, data, seconds):
        assert path not in self.there
        self.there[path] = data


def test_the_command_line_wins_over_the_file():
    given = {"working_dir": "/elsewhere", "env_vars": {"A": "1", "B": "2"}, "pip": ["x"]}
    assert runtime_env.merged(given, Path("here"), {"B": "3"}) == {
        "working_dir": "here",
        "env_vars": {"A": "1", "B": "3"},
        "pip": ["x"],
    }


def test_a_working_directory_is_sent_once_and_its_excludes_stay_here(tmp_path):
    (tmp_path / "a.py").write_text("1")
    ray = Ray()
    packed = runtime_env.packed({"working_dir": str(tmp_path), "excludes": ["b"]})
    for _ in range(2):
        packed.send(ray)
    (path,) = ray.there
    assert packed.env == {"working_dir": f"gcs://{path.rpartition('/')[2]}"}


def test_the_next_head_gets_the_files_as_they_were_at_first(tmp_path):
    (tmp_path / "a.py").write_text("1")
    packed = runtime_env.packed({"working_dir": str(tmp_path)})
    (tmp_path / "a.py").write_text("2")
    first, second = Ray(), Ray()
    packed.send(first)
    packed.send(second)
    assert first.there == second.there


def test_one_that_is_elsewhere_is_left_to_ray():
    given = {"working_dir": "https://example.com/code.zip"}
    assert runtime_env.packed(given) == (given, None)


@pytest.mark.parametrize(
    ("text", "said"), [("[1]", "must be a mapping"), ("{", "cannot be read"), (None, "cannot be read")]
)
def test_a_file_that_is_none_is_refused(tmp_path, text, said):
    path = tmp_path / "env.yaml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ClientError, match=said):
        runtime_env.read(path)


def test_what_ray_would_refuse_late_is_refused_early():
    with pytest.raises(ClientError, match="must be strings; quote N"):
        runtime_env.merged({"env_vars": {"N": 1}}, None, {})
    with pytest.raises(ClientError, match="py_modules of this machine cannot be sent"):
        runtime_env.packed({"py_modules": ["./lib"]})


@pytest.mark.parametrize("tool", ["pip", "uv"])
def test_a_file_of_requirements_is_its_lines_as_in_ray(tmp_path, monkeypatch, tool):
    monkeypatch.chdir(tmp_path)
    Path("requirements.txt").write_text("numpy==2\n# why\nrich\n\n")
    lines = ["numpy==2", "# why", "rich"]
    assert runtime_env.packed({tool: "requirements.txt"}).env == {tool: lines}
    assert runtime_env.packed({tool: {"packages": "requirements.txt", "x": 1}}).env == {
        tool: {"packages": lines, "x": 1}
    }
    assert runtime_env.packed({tool: ["numpy"]}).env == {tool: ["numpy"]}
    with pytest.raises(
        ClientError, match=f"{tool} of the runtime environment names a file that cannot be read: .*absent"
    ):
        runtime_env.packed({tool: "absent.txt"})


def test_a_file_of_conda_is_its_content_and_another_name_is_that_of_an_environment(tmp_path):
    (tmp_path / "env.yml").write_text("dependencies: [numpy]")
    assert runtime_env.packed({"conda": str(tmp_path / "env.yml")}).env == {"conda": {"dependencies": ["numpy"]}}
    assert runtime_env.packed({"conda": "base"}).env == {"conda": "base"}


@pytest.mark.parametrize(
    ("odd", "said"),
    [
        ({"excludes": "*.ckpt"}, "excludes of the runtime environment must be a list of patterns, .*, not '\\*.ckpt'"),
        ({"excludes": {"a": 1}}, "excludes of the runtime environment must be a list of patterns"),
        ({"excludes": [1]}, "excludes of the runtime environment must be texts: quote those in \\[1\\]"),
        ({"working_dir": 2024}, "working_dir of the runtime environment must be the path of a directory or of a .zip"),
        ({"working_dir": ["."]}, "working_dir of the runtime environment must be the path"),
        ({"py_modules": 3}, "py_modules of the runtime environment must be a list of URIs, not 3"),
        ({"env_vars": ["A=1"]}, "env_vars of the runtime environment must be a mapping"),
        ({"env_vars": {"A": 1}}, "env_vars of the runtime environment must be strings; quote A"),
    ],
)
def test_a_field_of_another_type_is_refused_by_name(odd, said):
    with pytest.raises(ClientError, match=said):
        runtime_env.packed(runtime_env.merged(odd, None, {}))
