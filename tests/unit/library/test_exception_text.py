"""What is shown of an exception in the user's code."""

import importlib
import sys

import pytest

from workergroups.naming import RankName
from workergroups.stacks.exception_text import exception_and_place, exception_line


def test_the_last_line_of_a_traceback_is_the_exception():
    assert exception_line('Traceback:\n  File "a.py", line 1\nValueError: a\n\n') == "ValueError: a"
    assert exception_line("") == ""


@pytest.fixture
def error_of(tmp_path, monkeypatch):
    """Import a module with this code, and return what that raises."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def imported(code: str, file: str = "odd_adder.py") -> BaseException:
        path = tmp_path / file
        path.parent.mkdir(exist_ok=True)
        path.write_text(code)
        importlib.invalidate_caches()
        with pytest.raises(BaseException) as caught:  # noqa: PT011
            importlib.import_module("odd_adder")
        sys.modules.pop("odd_adder", None)
        return caught.value

    return imported


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("x = 1\ny = x +\n", "SyntaxError: invalid syntax (odd_adder.py, line 2)"),
        ("def f():\n    return z\n\nf()\n", "NameError: name 'z' is not defined (odd_adder.py, line 2)"),
        ("import no_such", "ModuleNotFoundError: No module named 'no_such' (odd_adder.py, line 1)"),
        ("\nimport json\njson.loads('{')", "(odd_adder.py, line 3)"),
        ("import os\nos.environ['NO_SUCH']", "KeyError: 'NO_SUCH' (odd_adder.py, line 2)"),
        ("raise ValueError('a\\nb')", "b (odd_adder.py, line 1)"),
        ("raise SyntaxError", "SyntaxError: <no detail available>"),
        ("e = SyntaxError('a')\ne.filename = e.lineno = object()\nraise e", "SyntaxError: a"),
    ],
)
def test_the_place_in_the_users_code_follows(error_of, code, said):
    assert said in exception_and_place(error_of(code))


def test_of_a_package_the_name_is_shown(error_of):
    said = exception_and_place(error_of("raise OSError", "odd_adder/__init__.py"))
    assert said == "OSError (odd_adder/__init__.py, line 1)"


def test_an_exception_of_the_librarys_own_code_has_no_place():
    with pytest.raises(TypeError) as caught:
        RankName.parse(None)
    assert "line" not in exception_and_place(caught.value)


def test_an_exception_that_was_never_raised_has_no_place():
    assert exception_and_place(ValueError("a")) == "ValueError: a"
