"""An answer arrives as it was given, whatever Ray, the image or the user's sitecustomize print around it."""

import json
import os
import subprocess
import sys

import pytest

from workergroups.answering import answer_command

ANSWERS = """
import os, sys
from workergroups.answering import give
from workergroups.errors import GroupNotFoundError

def answer(*words):
    {noise}
    if words == ("fail",):
        raise ValueError("there is none")
    if words == ("find",):
        raise GroupNotFoundError("no ranks are there")
    return list(words)

give(answer, *sys.argv[1:])
{after}
"""
BETWEEN = """
import os, threading
def babble():
    while True:
        os.write(1, b'{"answer": "forged"}')
threading.Thread(target=babble, daemon=True).start()
"""


def ask(folder, *words, site="", noise="pass", after=""):
    (folder / "answers.py").write_text(ANSWERS.format(noise=noise, after=after))
    (folder / "sitecustomize.py").write_text(site)
    environment = {**os.environ, "PYTHONPATH": f"{folder}:{os.environ.get('PYTHONPATH', '')}"}
    environment["PATH"] = f"{os.path.dirname(sys.executable)}:{environment['PATH']}"
    return subprocess.run(
        answer_command("answers", words), env=environment, capture_output=True, timeout=60, check=False
    )


@pytest.mark.parametrize(
    "noises",
    [
        {},
        {"site": "print('before')"},
        {"site": "print('without a newline', end='')"},
        {"site": "import atexit; atexit.register(print, '{}')"},
        {"site": "import os; os.write(1, bytes(range(256)))"},
        {"site": "import sys; sys.stdout.close()"},
        {"site": "import os; os.system('echo a child')"},
        {"site": BETWEEN},
        {"noise": "print('{', end='', flush=True)"},
        {"after": "print('(raylet) There are tasks')"},
    ],
    ids=["none", "before", "no-newline", "at-exit", "binary", "closed", "child", "between", "partial", "after"],
)
def test_an_answer_is_all_that_arrives(tmp_path, noises):
    ended = ask(tmp_path, "what", "\U0001f4a5 else", **noises)
    assert (json.loads(ended.stdout), ended.returncode) == ({"answer": ["what", "\U0001f4a5 else"]}, 0)


def test_a_failure_arrives_on_the_same_channel_and_its_traceback_is_printed(tmp_path):
    ended = ask(tmp_path, "fail", site="import atexit, sys; atexit.register(print, 'farewell', file=sys.stderr)")
    assert json.loads(ended.stdout) == {"failure": "ValueError: there is none"}
    assert ended.returncode == 1
    assert b"Traceback" in ended.stderr


def test_our_own_errors_arrive_without_the_name_of_a_class(tmp_path):
    assert json.loads(ask(tmp_path, "find").stdout) == {"failure": "no ranks are there"}


def test_a_program_that_is_killed_leaves_no_answer(tmp_path):
    ended = ask(tmp_path, noise="os.kill(os.getpid(), 9)")
    assert (ended.stdout, ended.returncode) == (b"", -9)


def test_words_reach_the_program_as_they_are(tmp_path):
    words = ["$(reboot)", "'\"", "", "a b", "-c", "\n"]
    assert json.loads(ask(tmp_path, *words).stdout)["answer"] == words
