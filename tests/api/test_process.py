"""The operator's process: it serves, or it ends within ten seconds."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
import urllib.error
import urllib.request

import pytest

from tests.simulation.control_plane import free_ports, kubeconfig

# Ten by the operator's own clock. A busy machine needs some more to end a process.
END_SECONDS = 20
TRIES = 4
# Each when it is told: after the operator is up.
SABOTAGE = {
    "a watch fails": """
        async def fails(self, _):
            await is_told()
            yield b'{"type":"ERROR","object":{"code":500}}\\n'
        connection._Events.iter_chunked = fails
    """,
    "a task of ours fails": """
        async def fails(*_):
            await is_told()
            raise RuntimeError("sabotaged")
        handlers._listen = fails
    """,
    "the event loop hangs": """
        async def hangs(*_):
            await is_told()
            time.sleep(1000)
        handlers._listen = hangs
    """,
    "Python's lock is held": """
        async def hangs(*_):
            await is_told()
            re.match("(a+)+$", 40 * "a" + "b")
        handlers._listen = hangs
    """,
}
STAYS = """
        async def stays(*_):
            while True:
                try:
                    await asyncio.sleep(1000)
                except asyncio.CancelledError:
                    pass
        handlers._listen = stays
"""
UNWATCHED = """
        from functools import partial
        operator.Timings = partial(operator.Timings, unwatched=3.0)

        async def reads_nothing(*_):
            await asyncio.sleep(1000)
            yield b""
        connection._Events.iter_chunked = reads_nothing
"""
PROGRAM = """
import asyncio, os, re, time
from workergroups_operator import __main__ as operator, connection, handlers

async def is_told():
    while not os.path.exists({told!r}):
        await asyncio.sleep(0.1)
{sabotage}
operator.LIVENESS_ENDPOINT = "http://127.0.0.1:{port}/healthz"
operator.main()
"""


class Operator:
    """A process with the operator in it."""

    def __init__(self, access, directory, sabotage="", user="operator", **environment):
        path = directory / "kubeconfig"
        cluster = {"server": access.url, "certificate-authority": access.certificate}
        path.write_text(json.dumps(kubeconfig(cluster, access.tokens[user])))
        (port,) = free_ports(1)
        self.health = f"http://127.0.0.1:{port}/healthz"
        self.told = directory / "told"
        program = PROGRAM.format(sabotage=textwrap.dedent(sabotage), port=port, told=str(self.told))
        images = {"WORKER_IMAGE": "example.test/worker:1", "OPERATOR_IMAGE": "example.test/operator:1"}
        self.process = subprocess.Popen(
            [sys.executable, "-c", program],
            env=os.environ | images | {"KUBECONFIG": str(path)} | environment,
            stderr=subprocess.PIPE,
            text=True,
        )

    def is_healthy(self):
        try:
            with urllib.request.urlopen(self.health, timeout=2) as answer:
                return answer.status == 200
        except (urllib.error.URLError, OSError):
            return False

    def until_healthy(self):
        deadline = time.monotonic() + 60
        while not self.is_healthy():
            assert self.process.poll() is None, self.process.communicate()[1]
            assert time.monotonic() < deadline
            time.sleep(0.1)

    def end(self, seconds):
        """Its exit status and what it printed."""
        _, printed = self.process.communicate(timeout=seconds)
        return self.process.returncode, printed


@pytest.fixture
def start(access, tmp_path):
    started = []

    def begin(sabotage="", **environment):
        started.append(Operator(access, tmp_path, sabotage, **environment))
        return started[-1]

    yield begin
    for operator in started:
        operator.process.kill()
        operator.process.wait()


@pytest.mark.parametrize("sabotage", SABOTAGE.values(), ids=SABOTAGE)
def test_a_process_that_does_not_serve_any_more_ends(start, sabotage):
    """G4."""
    operator = start(sabotage)
    operator.until_healthy()
    operator.told.touch()
    status, printed = operator.end(seconds=END_SECONDS)
    assert status != 0
    assert "Traceback" in printed or "most recent call first" in printed


def test_a_signal_ends_it_and_nothing_is_waited_for(start, monkeypatch):
    """Amid a list or an event, kopf waits for five seconds: a quiet namespace has few, and not each time."""
    monkeypatch.setenv("LOG_LEVEL", "debug")
    printed = ""
    for _ in range(TRIES):
        operator = start(NAMESPACES="kube-public")
        operator.until_healthy()
        operator.process.send_signal(signal.SIGTERM)
        status, printed = operator.end(seconds=END_SECONDS)
        assert status == 0, printed
        if "Hung tasks stopping is skipped" in printed:
            return
    pytest.fail(f"it has waited each time: {printed}")


def test_a_signal_ends_it_though_a_task_stays(start):
    operator = start(STAYS)
    operator.until_healthy()
    operator.process.send_signal(signal.SIGTERM)
    status, printed = operator.end(seconds=END_SECONDS)
    assert (status, "Timeout" in printed) == (1, True)


@pytest.mark.long
def test_a_kind_that_nobody_watches_any_more_fails_the_probe(start):
    """kopf answers a probe with what it found up to ten seconds before."""
    operator = start(UNWATCHED)
    operator.until_healthy()
    deadline = time.monotonic() + 30
    while operator.is_healthy():
        assert time.monotonic() < deadline
        time.sleep(0.5)
    operator.process.send_signal(signal.SIGTERM)
    operator.end(seconds=END_SECONDS)
