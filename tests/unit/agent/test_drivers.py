"""Which of the drivers in Ray's records count, and what the observer reports of them."""

from dataclasses import replace

import pytest
from ray.core.generated import gcs_pb2

from tests.unit.agent.ray_world import launches, plan, pool, state
from workergroups.naming import NAMESPACE
from workergroups_agent import read_ray
from workergroups_agent.launch_state import Heard
from workergroups_agent.observer.report import report
from workergroups_agent.read_ray import RayReader


def driver(number, submission_id=None, namespace="", is_dead=False, ended=0, node=b""):
    record = gcs_pb2.JobTableData(job_id=bytes([number, 0, 0, 0]), is_dead=is_dead, end_time=ended)
    record.driver_address.node_id = node
    record.config.ray_namespace = namespace
    if submission_id is not None:
        record.config.metadata["job_submission_id"] = submission_id
    return record.SerializeToString()


class Gcs:
    """A GCS that has nothing but drivers."""

    session = "s"

    def __init__(self, *drivers, nodes=()):
        self.records = list(drivers)
        self._nodes = nodes

    def check_session(self):
        pass

    def drivers(self):
        return self.records

    def actors(self, state=None):
        return []

    def nodes(self):
        return self._nodes

    def placement_groups(self):
        return []

    def keys(self, namespace):
        return []

    def get_many(self, namespace, keys):
        return {}


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (driver(1), ("01000000",)),
        (driver(1, "ppo-1", "default"), ("ppo-1",)),
        (driver(1, "ppo-1", is_dead=True), ()),
        (driver(1, namespace=NAMESPACE), ()),
        (driver(1, namespace="_ray_internal_dashboard"), ()),
        (driver(1, ""), ("01000000",)),
        (driver(1, "a\x00b\n" * 1000), None),
        (b"\xff\xff", ()),
    ],
    ids=["a program", "a job", "ended", "ours", "Ray's", "no id", "an odd id", "no record"],
)
def test_users_drivers_count(record, expected):
    found = RayReader(Gcs(record)).look().drivers
    if expected is None:
        (name,) = found
        assert len(name) <= read_ray.MAX_JOB_ID
        assert name.isprintable()
    else:
        assert found == expected


def test_drivers_are_read_once_a_second(monkeypatch):
    gcs = Gcs(driver(1))
    reader = RayReader(gcs)
    assert reader.look().drivers == ("01000000",)
    gcs.records.append(driver(2))
    assert reader.look().drivers == ("01000000",)
    monkeypatch.setattr(read_ray, "READ_DRIVERS_SECONDS", 0.0)
    assert reader.look().drivers == ("01000000", "02000000")


def test_two_drivers_of_one_job_are_two():
    assert RayReader(Gcs(driver(1, "ppo-1"), driver(2, "ppo-1"))).look().drivers == ("ppo-1", "ppo-1")


def test_the_end_of_the_last_driver_is_remembered():
    users = driver(1), driver(2, is_dead=True, ended=5_000), driver(3, is_dead=True, ended=7_500)
    others = driver(4, namespace=NAMESPACE, is_dead=True, ended=9_000), driver(5, ended=9_000)
    seen = RayReader(Gcs(*users, *others)).look()
    assert (seen.drivers, seen.last_driver_end) == (("01000000", "05000000"), 7.5)
    assert RayReader(Gcs(driver(1))).look().last_driver_end is None


def node(node_id, is_head, started):
    return gcs_pb2.GcsNodeInfo(node_id=node_id, is_head_node=is_head, start_time_ms=started)


def test_the_drivers_of_an_earlier_head_are_gone_before_the_gcs_notices():
    nodes = [node(b"new", True, 2000), node(b"old", True, 1000), node(b"worker", False, 1500)]
    drivers = [driver(number, node=each) for number, each in enumerate((b"old", b"new", b"worker"), start=1)]
    ended = driver(4, is_dead=True, ended=9_000, node=b"old")
    seen = RayReader(Gcs(*drivers, ended, nodes=nodes)).look()
    assert (seen.drivers, seen.last_driver_end) == (("02000000", "03000000"), None)


@pytest.mark.parametrize(("ended", "expected"), [(7.5, 7), (2.0**62, 2**32), (None, None)])
def test_it_is_reported_whatever_is_in_the_record(ended, expected):
    seen = replace(state(), last_driver_end=ended)
    said = report(plan(pool()), seen, launches().prepared, Heard(), {}, {}, {}).pools["p"].report.last_driver_end
    assert (said and said.timestamp()) == expected


def test_each_pool_reports_how_many_drivers_its_cluster_has_and_the_first_five():
    seen = state(drivers=[f"ppo-{number}" for number in range(7)])
    said = report(plan(pool()), seen, launches().prepared, Heard(), {}, {}, {}).pools["p"].report
    assert (said.drivers, said.driver_jobs) == (7, ("ppo-0", "ppo-1", "ppo-2", "ppo-3", "ppo-4"))
