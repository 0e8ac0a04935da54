"""What the head answers, or why it does not."""

import json

import pytest

from tests.unit.client.fake_cluster import FakeCluster, pool
from workergroups_client.errors import ClientError
from workergroups_client.objects.names import find
from workergroups_client.pods import head_programs, pod_programs
from workergroups_client.pods.head_programs import ask_library, ray_status

CLUSTER = FakeCluster(pool("ppo"))
OLDER = "/usr/bin/python: No module named workergroups.checking"
TRACEBACK = "Traceback (most recent call last):\n  ...\nConnectionError: Ray is away\n"


def head_that(monkeypatch, printed="", complaints="", code=0):
    def execute(cluster, pod, container, command, *, stdout, stderr, seconds):
        stdout(printed.encode())
        stderr(complaints.encode())
        return code

    monkeypatch.setattr(pod_programs, "execute", execute)
    monkeypatch.setattr(head_programs, "head", lambda *_: ("head", "ray-head"))


def ask():
    return ask_library(CLUSTER, find(CLUSTER, "ppo"), "checking", "{}", what="nodes", seconds=1)


def test_the_answer_is_what_arrives_on_its_channel_whatever_is_printed_besides(monkeypatch):
    head_that(monkeypatch, printed='{"answer": {"nodes": []}}', complaints="(raylet) There are tasks\n")
    assert ask() == {"nodes": []}


RECREATE = "an older operator started the pool, and its library cannot answer: recreate the pool"
NO_ANSWER = r"the program ended without an answer \(exit code 1\); its last line: "


@pytest.mark.parametrize(
    ("printed", "complaints", "code", "why"),
    [
        ('{"failure": "ConnectionError: Ray is away"}', TRACEBACK + "a farewell\n", 1, "ConnectionError: Ray is away"),
        ("", TRACEBACK, 1, NO_ANSWER + "ConnectionError: Ray is away"),
        ("", "", 1, NO_ANSWER + "exit code 1"),
        ('{"answer": {"nod', "", 1, NO_ANSWER + "exit code 1"),
        ("[" * 100_000, "", 1, NO_ANSWER + "exit code 1"),
        ("", OLDER, 1, RECREATE),
        ("", "No module named 'workergroups.checking'", 1, RECREATE),
        ("", json.dumps({"nodes": []}), 0, RECREATE),
    ],
    ids=["failed", "crashed", "silent", "cut-off", "no-json", "module-missing", "package-missing", "no-channel"],
)
def test_why_there_is_no_answer_is_reported_in_one_line(monkeypatch, printed, complaints, code, why):
    head_that(monkeypatch, printed, complaints, code)
    with pytest.raises(ClientError, match=rf"^pool ppo could not be asked for its nodes: {why}$"):
        ask()


def test_rays_own_words_are_passed_on_and_so_is_why_there_are_none(monkeypatch):
    target = find(CLUSTER, "ppo")
    head_that(monkeypatch, printed="Node status\n")
    assert ray_status(CLUSTER, target) == "Node status\n"
    head_that(monkeypatch, complaints=TRACEBACK, code=1)
    with pytest.raises(ClientError, match="`ray status` failed on the head of pool ppo: ConnectionError: Ray is away"):
        ray_status(CLUSTER, target)
