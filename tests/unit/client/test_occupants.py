"""What runs in a pool's bundles."""

import pytest

from tests.unit.client.fake_cluster import FakeCluster, pool
from workergroups_cli.description import _show_occupants
from workergroups_client.objects.names import find
from workergroups_client.ray_cluster.occupants import Occupant, occupants

POOL = find(FakeCluster(pool("ppo")), "ppo")
PLACED = {
    "pg-0": "ppo/uid-of-ppo/0/node-a",
    "pg-1": "ppo/uid-of-ppo/1/node-b",
    "pg-old": "ppo/an-older-pools/0/node-a",
    "pg-x": "somebody-elses",
}


def actor(group, class_name, job, name="", state="ALIVE", start=10_000, **resources):
    return {
        "placement_group_id": group,
        "class_name": class_name,
        "job_id": job,
        "name": name,
        "state": state,
        "startTime": start,
        "required_resources": resources,
    }


class Ray:
    """Ray's tables of placement groups, jobs and actors."""

    def __init__(self, *actors):
        self.actors = [{"actor_id": f"id-{number}", **actor} for number, actor in enumerate(actors)]

    def get(self, path, **query):
        if path == "/api/jobs/":
            return [{"job_id": "02", "submission_id": "ppo-1"}, {"job_id": None, "submission_id": "waits"}]
        if path == "/logical/actors":
            known = [actor for actor in self.actors if actor["startTime"] is not None]
            return {"data": {"actors": {actor["actor_id"]: actor for actor in known}}}
        if path == "/api/v0/actors":
            assert (query["filter_keys"], query["filter_predicates"], query["filter_values"]) == ("state", "!=", "DEAD")
            return {"data": {"result": {"result": [actor for actor in self.actors if actor["state"] != "DEAD"]}}}
        rows = [{"placement_group_id": id_, "name": name} for id_, name in PLACED.items()]
        return {"data": {"result": {"result": [*rows, {"placement_group_id": "pg-y", "name": None}]}}}


def rank(number):
    return f"trainer/uid-of-trainer/3/{number}-of-2"


def test_ranks_of_groups_and_actors_of_jobs_and_programs_are_counted_by_node_and_class():
    seen = occupants(
        Ray(
            actor("pg-0", "Actor", "01", rank(0), GPU=0.1, CPU=1.0),
            actor("pg-0", "Actor", "01", rank(1), start=9_000, GPU_group_0_ab=0.1, GPU_group_ab=0.1, CPU_group_ab=1.0),
            actor("pg-0", "ActorRolloutRefWorker", "02", GPU_group_ab=0.5, bundle_group_ab=0.001),
            actor("pg-1", "Critic", "02", start=0, state="PENDING_CREATION", NPU=1.0),
            actor("pg-1", "Tool", "03"),
            actor("pg-1", "New", "03", start=None),
            actor("pg-1", "Tool", "03", state="DEAD"),
            actor("pg-old", "Tool", "03"),
            actor("pg-x", "Tool", "03"),
            actor("", "Tool", "03"),
        ),
        POOL,
    )
    assert seen == [
        Occupant("group trainer", "Actor", 0, 2, 0.2, 9.0),
        Occupant("job ppo-1", "ActorRolloutRefWorker", 0, 1, 0.5, 10.0),
        Occupant("job 03", "New", 1, 1, 0.0, None),
        Occupant("job 03", "Tool", 1, 1, 0.0, 10.0),
        Occupant("job ppo-1", "Critic", 1, 1, 1.0, None),
    ]


def test_each_is_a_line(capsys):
    _show_occupants([Occupant("job ppo-1", "Critic", 1, 4, 2.0, None)])
    shown = capsys.readouterr().out
    heads, line = shown.splitlines()
    assert heads.split() == ["NODE", "OCCUPANT", "CLASS", "PROCESSES", "DEVICES", "SINCE"]
    assert line.split() == ["1", "job", "ppo-1", "Critic", "4", "4", "x", "0.5", "-"]
    _show_occupants([])
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("processes", "devices", "shown"), [(2, 0.2, "2 x 0.1"), (2, 2.0, "2"), (2, 4.0, "4"), (3, 0.0, "0")]
)
def test_a_part_of_a_device_is_shown_for_each_process(capsys, processes, devices, shown):
    _show_occupants([Occupant("group a", "Actor", 0, processes, devices, None)])
    assert f" {processes}          {shown} " in capsys.readouterr().out
