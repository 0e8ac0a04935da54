"""How a command in a pod ends."""

import json

import pytest

from workergroups_client.errors import UnreachableError
from workergroups_client.execution import execute

FAILED = {"status": "Failure", "details": {"causes": [{"reason": "ExitCode", "message": "3"}]}}


class Stream:
    """An exec stream that has all of its messages at once."""

    def __init__(self, channels, breaks=False):
        self.channels, self.breaks = channels, breaks

    def update(self, timeout):
        if self.breaks:
            raise ConnectionResetError

    def is_open(self):
        return False

    def read_channel(self, channel):
        return self.channels.pop(channel, b"")

    def close(self):
        pass


def run(stream):
    printed = {1: b"", 2: b""}

    class Cluster:
        def open_exec(self, *_):
            return stream

    code = execute(
        Cluster(),
        "pod",
        "container",
        ["ls"],
        stdout=lambda data: printed.__setitem__(1, printed[1] + data),
        stderr=lambda data: printed.__setitem__(2, printed[2] + data),
    )
    return code, printed[1], printed[2]


@pytest.mark.parametrize(("status", "code"), [({"status": "Success"}, 0), (FAILED, 3)])
def test_the_exit_code_is_the_commands_even_if_the_connection_breaks_after_it(status, code):
    for breaks in (False, True):
        channels = {1: b"out", 2: b"err", 3: json.dumps(status).encode()}
        assert run(Stream(channels, breaks)) == (code, b"out", b"err")


def test_a_connection_that_is_lost_before_the_end_is_told():
    with pytest.raises(UnreachableError, match="was lost before the command ended; it may run on"):
        run(Stream({1: b"out"}, breaks=True))


def test_what_cannot_be_run_is_told_with_the_kubelets_sentence():
    status = {"status": "Failure", "message": "no such container", "details": {}}
    with pytest.raises(UnreachableError, match="could not be run in pod pod: no such container"):
        run(Stream({3: json.dumps(status).encode()}))
