"""What the head answers, or why it does not."""

import pytest
from fake_cluster import FakeCluster, pool

from workergroups_client import asking, on_head
from workergroups_client.errors import ClientError
from workergroups_client.names import find
from workergroups_client.on_head import ask_library, ray_status

CLUSTER = FakeCluster(pool("ppo"))
OLDER = "/usr/bin/python: No module named workergroups.checking"
TRACEBACK = "Traceback (most recent call last):\n  ...\nConnectionError: Ray is away\n"


def head_that(monkeypatch, printed="", complaints="", code=0):
    def execute(cluster, pod, container, command, *, stdout, stderr, seconds):
        stdout(printed.encode())
        stderr(complaints.encode())
        return code

    monkeypatch.setattr(asking, "execute", execute)
    monkeypatch.setattr(on_head, "head", lambda *_: ("head", "ray-head"))


def ask():
    return ask_library(CLUSTER, find(CLUSTER, "ppo"), "checking", "{}", what="nodes", seconds=1)


def test_what_the_library_prints_is_the_answer_whatever_is_logged_beside_it(monkeypatch):
    head_that(monkeypatch, printed='{"nodes": []}', complaints="a warning\n")
    assert ask() == {"nodes": []}


@pytest.mark.parametrize(
    ("complaints", "why"),
    [
        (TRACEBACK, "ConnectionError: Ray is away"),
        (OLDER, "its pool was started by an older operator, whose library cannot tell; make the pool anew"),
        ("", "exit code 1"),
    ],
)
def test_why_there_is_no_answer_is_told_in_one_line(monkeypatch, complaints, why):
    head_that(monkeypatch, complaints=complaints, code=1)
    with pytest.raises(ClientError, match=rf"^pool ppo could not be asked for its nodes: {why}$"):
        ask()


def test_rays_own_words_are_passed_on_and_so_is_why_there_are_none(monkeypatch):
    target = find(CLUSTER, "ppo")
    head_that(monkeypatch, printed="Node status\n")
    assert ray_status(CLUSTER, target) == "Node status\n"
    head_that(monkeypatch, complaints=TRACEBACK, code=1)
    with pytest.raises(ClientError, match="ray status does not say: ConnectionError: Ray is away"):
        ray_status(CLUSTER, target)
