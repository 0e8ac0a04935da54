"""Which job is meant."""

import pytest

from tests.unit.client.fake_cluster import FakeCluster, pool
from workergroups_client import job_lookup
from workergroups_client.errors import NotFoundError, UnreachableError
from workergroups_client.job_lookup import all_jobs, the_job
from workergroups_client.jobs import JobRecord

JOBS = {
    "ppo": [
        JobRecord("ppo-2", "RUNNING", "b", "", 2.0, None, None),
        JobRecord("ppo-1", "FAILED", "a", "", 1.0, 1.5, 1),
    ],
    "sft": [JobRecord("mine", "RUNNING", "c", "", 3.0, None, None)],
    "broken": None,
}
TOLD = []


@pytest.fixture(autouse=True)
def cluster(monkeypatch):
    """A namespace with three pools; one of them does not answer."""

    asked = []

    class Pool:
        def __init__(self, name, cluster, tell):
            self.name = name.rpartition("/")[2]

        def jobs(self):
            asked.append(self.name)
            if JOBS[self.name] is None:
                raise UnreachableError("no route")
            return JOBS[self.name]

        def job(self, job_id):
            return job_id

        def close(self):
            asked.append(f"closed {self.name}")

    monkeypatch.setattr(job_lookup, "Pool", Pool)
    monkeypatch.setattr(job_lookup.names, "running_pods", lambda *_: [object()])
    TOLD.clear()
    made = FakeCluster(*map(pool, ["broken", "sft", "ppo"]))
    made.asked = asked
    return made


def found(cluster, name):
    with the_job(cluster, name, TOLD.append) as job:
        return job


@pytest.mark.parametrize(
    ("name", "job"), [("ppo-1", "ppo-1"), ("mine", "mine"), ("ppo", "ppo-2"), ("pool/sft", "mine"), (None, "mine")]
)
def test_a_job_goes_by_its_id_or_by_its_pool_or_is_the_latest_of_all(cluster, name, job):
    assert found(cluster, name) == job


def test_a_pool_that_does_not_answer_hides_no_job_of_the_others(cluster):
    with all_jobs(cluster, None, TOLD.append) as jobs:
        assert [record.id for _, record in jobs] == ["mine", "ppo-2", "ppo-1"]
    assert TOLD == ["the jobs of pool broken could not be listed: no route"]
    with pytest.raises(UnreachableError, match="no route"):
        found(cluster, "broken")


def test_the_pool_that_an_id_begins_with_is_asked_first_and_alone(cluster):
    assert found(cluster, "ppo-1") == "ppo-1"
    assert [asked for asked in cluster.asked if not asked.startswith("closed")] == ["ppo"]
    assert sorted(asked for asked in cluster.asked if asked.startswith("closed")) == [
        "closed broken",
        "closed ppo",
        "closed sft",
    ]


def test_a_wrong_id_is_reported_with_near_ones(cluster):
    with pytest.raises(NotFoundError, match=r"there is no job ppo-3 in namespace team; did you mean ppo-2 or ppo-1\?"):
        found(cluster, "ppo-3")
    with (
        pytest.raises(NotFoundError, match="there is no pool or group absent in namespace team"),
        all_jobs(cluster, "absent"),
    ):
        pass
