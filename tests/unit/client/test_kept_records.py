"""What is kept of jobs when Ray's head has forgotten them."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.client.fake_cluster import WritableCluster, head, pool
from workergroups_api.job_record import KeptJobRecord
from workergroups_api.manifest import CONFIG_MAP
from workergroups_client.errors import ClientError
from workergroups_client.jobs import kept_records
from workergroups_client.jobs.kept_records import KeptRecords, merged
from workergroups_client.jobs.records import JobRecord

RUNS = "uid-of-ppo-head/life-1"
NAME = "ppo-job-records"


def kept(job_id="ppo-1", minute=0, **more):
    fields = {"id": job_id, "job": job_id, "pool": "ppo", "entrypoint": "python train.py", "state": "RUNNING"}
    return KeptJobRecord(**{**fields, "heads": [RUNS], "started": f"2026-01-01T12:{minute:02}:00Z", **more})


def records(*objects):
    cluster = WritableCluster(pool("ppo"), pool("ppo-2", clusterName="ppo"), pool("sft"), *objects)
    return KeptRecords(cluster, "ppo"), cluster


def test_they_are_kept_in_an_object_that_goes_with_the_pools_of_the_cluster():
    kept_, cluster = records()
    kept_.put(kept("ppo-1", 1))
    kept_.put(kept("ppo-2", 2))
    assert [each.id for each in KeptRecords(cluster, "ppo").all()] == ["ppo-2", "ppo-1"]
    metadata = cluster.get(CONFIG_MAP, NAME)["metadata"]
    assert [(owner["kind"], owner["name"]) for owner in metadata["ownerReferences"]] == [
        ("ResourcePool", "ppo"),
        ("ResourcePool", "ppo-2"),
    ]
    assert metadata["labels"] == {"workergroups.dev/job-records": "ppo"}


def test_there_are_at_most_fifty_and_the_oldest_give_way(monkeypatch):
    monkeypatch.setattr(kept_records, "MOST", 3)
    kept_, cluster = records()
    for number in range(5):
        kept_.put(kept(f"ppo-{number}", number))
    kept_.put(kept("ppo-4", 4, state="FAILED"))
    cluster.merge(CONFIG_MAP, NAME, {"data": {"odd": "{"}})
    kept_.put(kept("ppo-5", 5))
    assert [each.id for each in kept_.all()] == ["ppo-5", "ppo-4", "ppo-3"]
    assert len(cluster.get(CONFIG_MAP, NAME)["data"]) == 3


def test_the_end_is_noted_once_and_a_stop_at_any_time():
    kept_, cluster = records()
    kept_.put(kept())
    ended = JobRecord("ppo-1", "FAILED", "x", "code 7\n" * 1000, 1.0, 61.0, 7)
    kept_.note_end(ended)
    kept_.note_end(replace(ended, state="SUCCEEDED"))
    kept_.note_stop("ppo-1")
    kept_.note_stop("nobody")
    kept_.note_end(replace(ended, id="nobody"))
    (found,) = KeptRecords(cluster, "ppo").all()
    assert (found.state, found.driver_exit_code, found.stop) == ("FAILED", 7, True)
    assert found.ended.timestamp() == 61.0
    assert len(found.message) <= 512


def test_an_object_of_that_name_that_is_somebody_elses_is_left_alone():
    theirs = {"kind": "ConfigMap", "metadata": {"name": NAME, "namespace": "team"}, "data": {"a": "b"}}
    kept_, _ = records(theirs)
    with pytest.raises(ClientError, match=rf"ConfigMap {NAME} in namespace team lacks the label .* another name"):
        kept_.put(kept())
    assert theirs["data"] == {"a": "b"}
    # What this process submitted is known to it all the same.
    assert kept_.of_absent("ppo-1", has_answered=True).state == "LOST"


ASKED = JobRecord("ppo-1", "RUNNING", "python train.py", "", 5.0, None, None)
ENDED = {"state": "SUCCEEDED", "ended": "2026-01-01T13:00:00Z", "driver_exit_code": 0}


@pytest.mark.parametrize(
    ("asked", "kept_", "heads", "expected"),
    [
        ([ASKED], [kept()], {RUNS}, [("ppo-1", "RUNNING", None)]),
        ([ASKED], [], {RUNS}, [("ppo-1", "RUNNING", None)]),
        # Another head runs, or none.
        ([], [kept()], {"uid/life-2"}, [("ppo-1", "LOST", 1)]),
        (None, [kept()], set(), [("ppo-1", "LOST", 1)]),
        (None, [kept(heads=[])], {RUNS}, [("ppo-1", "LOST", 1)]),
        # In one of two heads: the one that answers would know it.
        (None, [kept(heads=[RUNS, "uid/life-0"])], {RUNS}, [("ppo-1", "UNKNOWN", None)]),
        ([], [kept(heads=[RUNS, "uid/life-0"])], {RUNS}, [("ppo-1", "LOST", 1)]),
        # A driver on a node may outlive the head: only what the next head answers counts.
        (None, [kept(on_node=True)], set(), [("ppo-1", "UNKNOWN", None)]),
        ([], [kept(on_node=True)], {"uid/life-2"}, [("ppo-1", "LOST", 1)]),
        # Its head runs, perhaps in a pod that is leaving.
        (None, [kept()], {RUNS, "uid/life-2"}, [("ppo-1", "UNKNOWN", None)]),
        ([], [kept()], {RUNS}, [("ppo-1", "UNKNOWN", None)]),
        # The end was noted before the head was lost.
        ([], [kept(**ENDED)], set(), [("ppo-1", "SUCCEEDED", 0)]),
        ([], [kept(**{**ENDED, "state": "FAILED", "driver_exit_code": -9})], set(), [("ppo-1", "FAILED", 137)]),
        # A state of a newer Ray.
        ([], [kept(state="NAPPING")], {RUNS}, [("ppo-1", "UNKNOWN", None)]),
        ([ASKED], [kept("ppo-0", 1)], set(), [("ppo-0", "LOST", 1), ("ppo-1", "RUNNING", None)]),
    ],
)
def test_what_ray_says_wins_and_what_it_does_not_know_is_lost_with_its_head(asked, kept_, heads, expected):
    assert [(each.id, each.state, each.exit_code) for each in merged(asked, kept_, heads)] == expected


def test_a_job_is_lost_when_no_container_of_its_head_runs():
    for pods, state in [
        ([head()], "UNKNOWN"),
        ([head(deletionTimestamp="2026-01-01T12:00:00Z")], "UNKNOWN"),
        ([head(life="life-2")], "LOST"),
        ([head(life=None)], "LOST"),
        ([], "LOST"),
    ]:
        kept_, _ = records(*pods)
        kept_.put(kept())
        assert kept_.of_absent("ppo-1", has_answered=False).state == state


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)
ODD_RECORD = st.fixed_dictionaries({}, optional=dict.fromkeys(kept().to_json(), JSON))
ODD = st.text() | ODD_RECORD.map(lambda value: repr(value)) | st.sampled_from(["[" * 100_000, "9" * 9000, "{}", "null"])


@settings(deadline=None)
@given(odd=st.dictionaries(st.text(min_size=1), ODD, max_size=3), change=ODD_RECORD)
def test_nothing_that_stands_there_hides_the_others(odd, change):
    kept_, cluster = records()
    kept_.put(kept())
    (key,) = cluster.get(CONFIG_MAP, NAME)["data"]
    good = cluster.get(CONFIG_MAP, NAME)["data"][key]
    changed = kept_records.json.dumps({**kept("ppo-2").to_json(), **change})
    cluster.merge(CONFIG_MAP, NAME, {"data": {**odd, kept_records._key("ppo-2"): changed, key: good}})
    found = kept_.all()
    assert "ppo-1" in [each.id for each in found]
    merged(None, found, {RUNS})
