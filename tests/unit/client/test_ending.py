"""Commands that are ended from outside: by Ctrl-C, or by a signal."""

import os
import pty
import signal
import subprocess
import sys
import termios

import pytest

from workergroups_cli.local_command import run

AWHILE = 20

HELD = """
import sys
from workergroups_cli.local_command import run
sys.exit(run([sys.executable, "-c", sys.argv[1]], {"GIVEN": "7"}))
"""
# A signal that comes just before a sleep is seen after it only, so sleeps are short here.
SLEEP = """
import time
print("ready", flush=True)
end = time.monotonic() + 60
while time.monotonic() < end:
    time.sleep(0.1)
"""
GOES_ON = f"""
import signal, sys
signal.signal(signal.SIGINT, lambda *_: sys.exit(5))
{SLEEP}
"""
KEY = "from workergroups_client.api_server.kubeconfig import as_file; as_file(b'KEY')"
# A shell that starts the tests in the background has SIGINT ignored in all that they start.
ON_ALL = f"""
{KEY}
import signal, threading, time
signal.signal(signal.SIGINT, signal.default_int_handler)
from workergroups_cli import pod_commands
from workergroups_client.pods.pods import PodContainer

both = threading.Barrier(2)

def execute(*_, **__):
    time.sleep(0.5)
    if both.wait() == 0:
        print("ready", flush=True)
    time.sleep(60)

pod_commands.execute = execute
pod_commands._on_all(None, [PodContainer("a", "c"), PodContainer("b", "c")], ["sleep", "60"])
"""
WITH_A_KEY = f"""
import signal
signal.signal(signal.SIGHUP, signal.SIG_DFL)
from workergroups_cli import app
def hold():
    {KEY}
    exec({SLEEP!r})
app.app = hold
app.main()
"""
ON_A_TERMINAL = f"""
{KEY}
from workergroups_cli.terminal import _every_key_passed_on
with _every_key_passed_on():
    exec({SLEEP!r})
"""


@pytest.fixture
def keys(tmp_path, monkeypatch):
    """The folder in which a command has files with keys; it must be empty in the end."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def started(*program, stdin=None):
    command = [sys.executable, "-c", *program]
    process = subprocess.Popen(command, stdin=stdin, stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (["sh", "-c", "exit 3"], 3),
        (["sh", "-c", 'exit "$GIVEN"'], 7),
        (["sh", "-c", "kill -9 $$"], 137),
        (["no-such-command"], 127),
        (["/etc/passwd"], 126),
    ],
)
def test_a_command_next_to_a_tunnel_ends_as_in_a_shell(command, code):
    assert run(command, {"GIVEN": "7"}) == code


def test_ctrl_c_is_the_commands_to_answer():
    process = started(HELD, GOES_ON)
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(AWHILE) == 5


def test_who_ends_the_tunnel_ends_the_command():
    process = started(HELD, GOES_ON.replace("SIGINT", "SIGTERM"))
    process.terminate()
    assert process.wait(AWHILE) == 5


def test_a_script_without_an_interpreter_cannot_be_executed(tmp_path, capsys):
    script = tmp_path / "script"
    script.write_text("echo hello\n")
    script.chmod(0o755)
    assert run([str(script)], {}) == 126
    assert f"{script}: cannot be executed: Exec format error" in capsys.readouterr().err


def test_ctrl_c_does_not_wait_for_what_runs_on_every_node_and_leaves_no_key(keys):
    process = started(ON_ALL)
    assert list(keys.iterdir())
    process.send_signal(signal.SIGINT)
    assert process.wait(AWHILE) == 130
    assert list(keys.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_ends_the_command_leaves_no_key(keys, number):
    process = started(WITH_A_KEY)
    assert list(keys.iterdir())
    process.send_signal(number)
    assert process.wait(AWHILE) == -number
    assert list(keys.iterdir()) == []


def test_a_terminal_is_as_it_was_when_the_command_is_ended_and_no_key_is_left(keys):
    ours, theirs = pty.openpty()
    before = termios.tcgetattr(theirs)
    process = started(ON_A_TERMINAL, stdin=theirs)
    assert termios.tcgetattr(theirs) != before
    process.terminate()
    assert process.wait(AWHILE) == -signal.SIGTERM
    assert termios.tcgetattr(theirs) == before
    assert list(keys.iterdir()) == []
    os.close(ours)
    os.close(theirs)
