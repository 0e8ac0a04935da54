"""What a command in a pod reads, and how it ends."""

import json
import os
import threading

import pytest
from kubernetes.stream import ws_client

from workergroups_client.api_server import execution as ours
from workergroups_client.api_server.execution import execute
from workergroups_client.errors import ClientError, NotFoundError, UnreachableError

FAILED = {"status": "Failure", "details": {"causes": [{"reason": "ExitCode", "message": "3"}]}}
STDIN, RESIZE = 0, 4


class Stream:
    """An exec stream that has all of its messages at once."""

    subprotocol = "v5.channel.k8s.io"

    def __init__(self, channels, breaks=False):
        self.channels, self.breaks = channels, breaks
        self.written, self.input_has_ended = [], threading.Event()

    def update(self, timeout):
        if self.breaks:
            raise ConnectionResetError

    def is_open(self):
        return False

    def read_channel(self, channel):
        return self.channels.pop(channel, b"")

    def write_channel(self, channel, data):
        self.written.append((channel, data))

    def close_channel(self, channel):
        assert channel == STDIN
        self.input_has_ended.set()

    def close(self):
        pass


class Endless(Stream):
    """One that ends when its input does, as `cat` does."""

    def is_open(self):
        return not self.input_has_ended.wait(10)


def run(stream, **more):
    printed = {1: b"", 2: b""}
    asked = {}

    class Cluster:
        def open_exec(self, *_, **options):
            asked.update(options)
            return stream

    code = execute(
        Cluster(),
        "pod",
        "container",
        ["ls"],
        stdout=lambda data: printed.__setitem__(1, printed[1] + data),
        stderr=lambda data: printed.__setitem__(2, printed[2] + data),
        **more,
    )
    assert asked == {"stdin": "stdin" in more, "tty": "size" in more}
    return code, printed[1], printed[2]


@pytest.mark.parametrize(("status", "code"), [({"status": "Success"}, 0), (FAILED, 3)])
def test_the_exit_code_is_the_commands_even_if_the_connection_breaks_after_it(status, code):
    for breaks in (False, True):
        channels = {1: b"out", 2: b"err", 3: json.dumps(status).encode()}
        assert run(Stream(channels, breaks)) == (code, b"out", b"err")


def test_a_connection_that_is_lost_before_the_end_is_reported():
    with pytest.raises(UnreachableError, match="was lost before the command ended; it may still be running"):
        run(Stream({1: b"out"}, breaks=True))


def test_what_cannot_be_run_is_reported_with_the_kubelets_sentence():
    status = {"status": "Failure", "message": "no such container", "details": {}}
    with pytest.raises(UnreachableError, match=r"could not be run in pod pod: no such container"):
        run(Stream({3: json.dumps(status).encode()}))


@pytest.mark.parametrize(
    "what", ['"nvidia-smi": executable file not found in $PATH', '"/x": stat /x: no such file or directory']
)
def test_a_program_that_the_image_lacks_is_named_without_the_runtimes_words(what):
    said = f"Internal error occurred: Internal error occurred: unable to start container process: exec: {what}: unknown"
    with pytest.raises(NotFoundError) as absent:
        run(Stream({3: json.dumps({"status": "Failure", "message": said, "details": {}}).encode()}))
    assert str(absent.value).startswith(
        f"the command could not be run in pod pod: {what}. Its image lacks the program;"
    )


@pytest.mark.parametrize("said", [b"<html>", b"{", b"[]", b"3", b'{"status": 3, "details": 7}', b"\xff"])
def test_an_end_that_cannot_be_read_is_an_error_that_shows_it(said):
    with pytest.raises(
        UnreachableError, match=r"could not be run in pod pod: .*; kubectl describe pod pod may say more"
    ):
        run(Stream({3: said}))


def test_what_is_read_goes_to_the_command_and_so_does_its_end():
    stream = Endless({3: b'{"status": "Success"}'})
    assert run(stream, stdin=iter([b"one", b"two", b""]).__next__)[0] == 0
    assert stream.written == [(STDIN, b"one"), (STDIN, b"two")]


def test_an_api_server_that_cannot_tell_of_the_inputs_end_is_refused():
    stream = Stream({})
    stream.subprotocol = "v4.channel.k8s.io"
    with pytest.raises(ClientError, match=r"Kubernetes 1\.30 or later"):
        run(stream, stdin=lambda: b"")


def test_the_size_of_the_terminal_is_told_when_it_changes():
    class Looked(Stream):
        looks = 0

        def is_open(self):
            self.looks += 1
            return self.looks < 4

    stream = Looked({3: b'{"status": "Success"}'})
    sizes = iter([(80, 24), (80, 24), (120, 40), (120, 40)])
    run(stream, size=lambda: os.terminal_size(next(sizes)))
    told = [json.loads(data) for channel, data in stream.written if channel == RESIZE]
    assert told == [{"Width": 80, "Height": 24}, {"Width": 120, "Height": 40}]


def test_the_channels_have_the_numbers_that_the_kubernetes_package_gives_them():
    assert (ours.STDIN, ours.STDOUT, ours.STDERR, ours.ERROR, ours.RESIZE, ours.CLOSES_STDIN) == (
        ws_client.STDIN_CHANNEL,
        ws_client.STDOUT_CHANNEL,
        ws_client.STDERR_CHANNEL,
        ws_client.ERROR_CHANNEL,
        ws_client.RESIZE_CHANNEL,
        ws_client.V5_CHANNEL_PROTOCOL,
    )
