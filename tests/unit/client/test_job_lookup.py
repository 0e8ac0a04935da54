"""Which job is meant."""

from dataclasses import replace

import pytest

from tests.unit.client.fake_cluster import FakeCluster, pool
from workergroups_api.job_record import KeptJobRecord
from workergroups_client.errors import ClientError, NotFoundError, NotRunningError, UnreachableError
from workergroups_client.handles import job_lookup
from workergroups_client.handles.job_lookup import all_jobs, the_job
from workergroups_client.jobs.records import JobRecord

RETRIED = [
    JobRecord("long-2", "RUNNING", "d", "", 0.5, None, None, "long", 2),
    JobRecord("long-1", "FAILED", "d", "", 0.4, 0.45, 1, "long", 1),
]
JOBS = {
    "ppo": [
        JobRecord("ppo-2", "RUNNING", "b", "", 2.0, None, None),
        JobRecord("ppo-1", "FAILED", "a", "", 1.0, 1.5, 1),
        *RETRIED,
    ],
    "sft": [JobRecord("mine", "RUNNING", "c", "", 3.0, None, None)],
    "broken": UnreachableError("no route"),
    "headless": NotRunningError("the head of Ray cluster headless is not running"),
}
ALL = ["mine", "ppo-2", "ppo-1", "long-2", "long-1"]
TOLD = []


def kept(job_id, pool="broken", **more):
    fields = {"id": job_id, "job": job_id, "pool": pool, "entrypoint": "e", "state": "RUNNING"}
    return KeptJobRecord(**{**fields, "started": "2026-01-01T12:00:00Z", **more})


@pytest.fixture(autouse=True)
def cluster(monkeypatch):
    """A namespace with three pools; one of them does not answer."""

    asked = []

    class Pool:
        def __init__(self, name, cluster, tell):
            self.name = name.rpartition("/")[2]
            self.kept = cluster.kept.setdefault(self.name, Kept())

        def jobs(self):
            asked.append(self.name)
            if isinstance(JOBS[self.name], Exception):
                raise JOBS[self.name]
            return JOBS[self.name]

        def job(self, job_id):
            return job_id

        def close(self):
            asked.append(f"closed {self.name}")

    class Kept:
        records, running, noted = (), {"life-2"}, None

        def all(self):
            if isinstance(self.records, Exception):
                raise self.records
            return list(self.records)

        def heads(self):
            return self.running

        def note_end(self, record):
            self.noted = record

    monkeypatch.setattr(job_lookup, "Pool", Pool)
    TOLD.clear()
    made = FakeCluster(*map(pool, ["broken", "headless", "sft", "ppo"]))
    made.asked, made.kept = asked, {name: Kept() for name in JOBS}
    return made


def found(cluster, name):
    with the_job(cluster, name, TOLD.append) as job:
        return job


@pytest.mark.parametrize(
    ("name", "job"),
    [
        ("ppo-1", "ppo-1"),
        ("mine", "mine"),
        ("ppo", "ppo-2"),
        ("pool/sft", "mine"),
        (None, "mine"),
        ("long", "long-2"),
        ("long-1", "long-1"),
    ],
)
def test_a_job_goes_by_its_id_or_by_its_pool_or_is_the_latest_of_all(cluster, name, job):
    assert found(cluster, name) == job


def test_a_job_with_the_name_of_its_pool_goes_before_the_latest_of_the_pool(cluster, monkeypatch):
    named = JobRecord("ppo", "RUNNING", "e", "", 0.1, None, None)
    monkeypatch.setitem(JOBS, "ppo", [*JOBS["ppo"], named])
    assert found(cluster, "ppo") == "ppo"


def test_a_pool_that_does_not_answer_hides_no_job_of_the_others(cluster):
    with all_jobs(cluster, None, TOLD.append) as jobs:
        assert [record.id for _, record in jobs] == ALL
    assert TOLD == ["the jobs of pool broken could not be listed: no route"]
    with pytest.raises(UnreachableError, match="no route"):
        found(cluster, "broken")


def test_the_pool_that_an_id_begins_with_is_asked_first_and_alone(cluster):
    assert found(cluster, "ppo-1") == "ppo-1"
    assert [asked for asked in cluster.asked if not asked.startswith("closed")] == ["ppo"]
    assert sorted(asked for asked in cluster.asked if asked.startswith("closed")) == [
        "closed broken",
        "closed headless",
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


@pytest.mark.parametrize("name", ["headless", "broken"])
def test_a_job_that_ended_with_its_head_is_found_and_is_lost(cluster, name):
    cluster.kept[name].records = [kept("gone-2", heads=["life-1"], attempt=2, job="gone"), kept("gone-1", job="gone")]
    for wanted in ("gone", "gone-2", name):
        job = found(cluster, wanted)
        assert (job.id, job.record().state, job.record().exit_code, job.record().attempt) == ("gone-2", "LOST", 1, 2)
    with pytest.raises(NotFoundError, match="there is no output of job gone-2, which is LOST"):
        next(job.logs())
    with all_jobs(cluster, None) as jobs:
        assert [record.id for _, record in jobs] == ["gone-2", "gone-1", *ALL]


def test_while_its_head_runs_a_job_of_which_ray_says_nothing_is_not_lost(cluster):
    cluster.kept["broken"].records = [kept("away", heads=["life-2"])]
    job = found(cluster, "away")
    assert (job.record().state, job.record().exit_code) == ("UNKNOWN", None)
    with pytest.raises(UnreachableError, match="job away may still be running: Ray does not answer"):
        job.wait()


def test_a_pool_without_a_head_is_an_error_only_for_who_names_it(cluster):
    with pytest.raises(NotRunningError, match="head of Ray cluster headless is not running"):
        found(cluster, "headless")
    with all_jobs(cluster, None, TOLD.append):
        assert not any("headless" in told for told in TOLD)


def test_records_that_cannot_be_read_hide_no_job(cluster):
    cluster.kept["ppo"].records = ClientError("you may not")
    assert found(cluster, "ppo-1") == "ppo-1"


def test_an_end_that_nobody_followed_is_noted(cluster):
    cluster.kept["ppo"].records = [kept("ppo-1", "ppo", heads=["life-2"])]
    with all_jobs(cluster, "ppo"):
        pass
    assert cluster.kept["ppo"].noted == replace(JOBS["ppo"][1])
