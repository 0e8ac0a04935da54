"""What Ray says when it refuses."""

import socket
import time
from types import SimpleNamespace

import pytest

from tests.unit.client.api_server import Answer, api_server
from workergroups_client.errors import ClientError, DeadlineError, NotFoundError, UnreachableError
from workergroups_client.ray_cluster.ray_api import RayApi, _refusal

TRACEBACK = 'Traceback (most recent call last):\n  File "job.py", line 1\nValueError: it already exists.\n'


@pytest.mark.parametrize(
    ("method", "status", "text", "kind", "said"),
    [
        ("POST", 500, TRACEBACK, ClientError, "Ray refused the request: ValueError: it already exists."),
        (
            "POST",
            500,
            f"Request failed with status code 500: {TRACEBACK}.",
            ClientError,
            "Ray refused the request: ValueError: it already",
        ),
        ("GET", 404, "job x does not exist", NotFoundError, "job x does not exist"),
        ("GET", 401, "", ClientError, "Ray refused the request: status 401"),
        ("GET", 500, "Agent for node id n does not exist", UnreachableError, "Ray cannot answer now: Agent for node"),
        ("POST", 500, "No available agent to submit job", UnreachableError, "Ray cannot answer now: No available"),
    ],
)
def test_it_is_reported_in_one_line(method, status, text, kind, said):
    refusal = _refusal(method, status, text)
    assert type(refusal) is kind
    assert str(refusal).startswith(said)


def test_a_dashboard_that_is_silent_is_waited_for_no_longer_than_asked():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        api = RayApi(SimpleNamespace(url=url, trouble=None, remote_port=8265, pod="ppo-head"), "token")
        began = time.monotonic()
        with pytest.raises(DeadlineError, match="did not answer within 0s"):
            api.wait_until_up(lambda _: None, 0.4)
    assert time.monotonic() - began < 5


@pytest.mark.parametrize("body", [b"", b"<html>", b"{", b"[" * 100_000, b"\xff"])
def test_what_is_not_rays_dashboard_is_named(body):
    with api_server(Answer(body)) as server:
        api = RayApi(SimpleNamespace(url=server.url, trouble=None, remote_port=8265, pod="ppo-head"), "token")
        with pytest.raises(ClientError, match="on port 8265 of pod ppo-head is not Ray's dashboard"):
            api.get("/api/version")
