"""Which dead ranks a question means, and what is said when there are none."""

from datetime import UTC, datetime

import pytest

from tests.unit.client import fake_cluster
from tests.unit.client.fake_cluster import FakeCluster
from workergroups_client.errors import ClientError, NotFoundError
from workergroups_client.objects.names import GROUP, find
from workergroups_client.pods import previous

SINCE = "2026-01-02T00:00:00+00:00"


def dead(rank, incarnation=1, reason="OutOfMemory", second=5):
    told = {"message": "too much", "pod": "ppo-worker-b", "died": f"2026-01-02T03:04:{second:02}+00:00"}
    return {"uid": "uid-of-ppo", "incarnation": incarnation, "rank": rank, "reason": reason, **told}


KEPT = [dead(1), dead(2), dead(0, incarnation=2), dead(2, incarnation=2), dead(10, incarnation=2)]


class Agent:
    """A cluster whose agent has kept these."""

    def __init__(self, monkeypatch, *kept, since=SINCE, runs=True):
        self.kept, self.since, self.asked = kept, since, []
        metadata = {"name": "ppo-agent-x", "namespace": "team", "labels": fake_cluster.labels("agent")}
        pod = {"kind": "Pod", "metadata": metadata}
        pods = [pod | {"status": {"phase": "Running"}}] if runs else []
        self.cluster = FakeCluster(fake_cluster.pool("ppo"), fake_cluster.group("ppo"), *pods)
        monkeypatch.setattr(previous, "ask", self.answer)

    def answer(self, cluster, container, module, uid, incarnation=None, *ranks, what):
        assert (container, module, uid) == (
            ("ppo-agent-x", "reporter"),
            "workergroups_agent.previous_logs",
            "uid-of-ppo",
        )
        if incarnation is None:
            return {"since": self.since, "dead": self.kept}
        return [f"of {rank} in {incarnation}\n\0\U0001f4a5\n" for rank in ranks]

    def logs(self, wanted=None):
        return previous.previous_logs(self.cluster, find(self.cluster, "ppo", GROUP), wanted)


@pytest.mark.parametrize(
    ("wanted", "found"),
    [(None, [(2, 0), (2, 2), (2, 10)]), ("1", [(1, 1)]), ("1-2", [(2, 2)]), ("0,10", [(2, 0), (2, 10)])],
)
def test_the_latest_incarnation_that_lost_such_a_rank_is_meant(monkeypatch, wanted, found):
    logs = Agent(monkeypatch, *KEPT).logs(wanted)
    assert [(log.dead_rank.incarnation, log.dead_rank.rank) for log in logs] == found
    assert [log.lines for log in logs] == [
        (f"of {rank} in {incarnation}".encode(), b"\0\xf0\x9f\x92\xa5") for incarnation, rank in found
    ]


def test_a_cause_comes_before_what_followed_from_it(monkeypatch):
    ended = [dead(rank, reason="Removed", second=4) for rank in (0, 3)]
    logs = Agent(monkeypatch, *ended, dead(1, second=6), dead(2)).logs()
    assert [log.dead_rank.rank for log in logs] == [2, 1, 0, 3]


def test_each_says_when_where_and_why_it_died(monkeypatch):
    (log,) = Agent(monkeypatch, dead(1)).logs()
    one = log.dead_rank
    assert (one.reason, one.message, one.pod) == ("OutOfMemory", "too much", "ppo-worker-b")
    assert one.died == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def test_the_reason_is_that_of_the_status_which_knows_what_became_of_the_pod(monkeypatch):
    agent = Agent(monkeypatch, dead(1), dead(2))
    told = {"reason": "Preempted", "message": "its pod was evicted: to make room", "time": SINCE}
    agent.cluster.objects[1]["status"] = {"failures": [{"rank": 1, "incarnation": 1, **told}]}
    assert [log.dead_rank.reason for log in agent.logs()] == ["Preempted", "OutOfMemory"]


@pytest.mark.parametrize(
    ("agent", "wanted", "error", "said"),
    [
        ({}, None, NotFoundError, f"no rank of group ppo has died since {SINCE}, when its agent began to listen"),
        ({"since": None}, None, NotFoundError, "not connected to Ray: workergroups status ppo says why"),
        (
            {"runs": False},
            None,
            NotFoundError,
            "the agent of Ray cluster ppo is not running: workergroups status ppo says why",
        ),
        (
            {"kept": [dead(1), dead(3)]},
            "2",
            NotFoundError,
            r"keeps no lines of rank 2: choose from the ranks whose lines it keeps, 1 \(incarnation 1\), 3",
        ),
        ({"kept": [dead(1)]}, "one", ClientError, "'one' is not a range of ranks"),
    ],
)
def test_what_there_is_not_is_reported_with_the_reason(monkeypatch, agent, wanted, error, said):
    with pytest.raises(error, match=said.replace("+", r"\+")):
        Agent(monkeypatch, *agent.pop("kept", ()), **agent).logs(wanted)
