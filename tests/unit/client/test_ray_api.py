"""What Ray says when it refuses."""

from types import SimpleNamespace

import pytest

from tests.unit.client.api_server import Answer, api_server
from workergroups_client.errors import ClientError, NotFoundError
from workergroups_client.ray_cluster.ray_api import RayApi, _refusal

TRACEBACK = 'Traceback (most recent call last):\n  File "job.py", line 1\nValueError: it already exists.\n'


@pytest.mark.parametrize(
    ("status", "text", "kind", "said"),
    [
        (500, TRACEBACK, ClientError, "Ray refused the request: ValueError: it already exists."),
        (
            500,
            f"Request failed with status code 500: {TRACEBACK}.",
            ClientError,
            "Ray refused the request: ValueError: it already",
        ),
        (404, "job x does not exist", NotFoundError, "job x does not exist"),
        (401, "", ClientError, "Ray refused the request: status 401"),
    ],
)
def test_it_is_reported_in_one_line(status, text, kind, said):
    refusal = _refusal(status, text)
    assert type(refusal) is kind
    assert str(refusal).startswith(said)


@pytest.mark.parametrize("body", [b"", b"<html>", b"{", b"[" * 100_000, b"\xff"])
def test_what_is_not_rays_dashboard_is_named(body):
    with api_server(Answer(body)) as server:
        api = RayApi(SimpleNamespace(url=server.url, trouble=None, remote_port=8265, pod="ppo-head"), "token")
        with pytest.raises(ClientError, match="on port 8265 of pod ppo-head is not Ray's dashboard"):
            api.get("/api/version")
