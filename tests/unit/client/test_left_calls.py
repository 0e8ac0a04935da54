"""Which calls of a job go on in ranks of groups when it ends."""

import pytest

from workergroups_client.jobs.left_calls import left_calls


class Ray:
    """Ray's tables of a job, its tasks and the ranks of groups."""

    def __init__(self, *tasks, job_id="02"):
        self.tasks, self.job_id = tasks, job_id

    def get(self, path, **query):
        if path == "/api/jobs/ppo-1":
            return {"job_id": self.job_id}
        rows = [{"actor_id": f"a{n}", "name": f"trainer/uid-of-trainer/3/{n}-of-4"} for n in range(4)]
        rows += [{"actor_id": "b0", "name": "critic/uid-of-critic/1/0-of-1"}, {"actor_id": "x", "name": None}]
        if path == "/api/v0/tasks":
            assert (query["filter_keys"], query["filter_values"]) == ("state", "RUNNING")
            names = ("actor_id", "name", "parent_task_id")
            rows = [dict(zip(names, task, strict=True)) for task in self.tasks]
        return {"data": {"result": {"result": rows}}}


def test_they_are_told_by_group_and_method_with_the_way_to_end_them():
    tasks = [(f"a{n}", "Trainer.step", "ffff02") for n in (0, 1, 3)]
    others = [("a2", "Trainer.step", "ffff03"), ("b0", "value", "ffff02"), ("x", "Tool.use", "ffff02")]
    without_actor = (None, "task", "ffff02")
    assert list(map(str, left_calls(Ray(*tasks, *others, without_actor), "ppo-1"))) == [
        "rank 0 is still in value of group critic, since Ray interrupts no call, and other calls wait: "
        "workergroups restart critic ends it",
        "ranks 0-1,3 are still in step of group trainer, since Ray interrupts no call, and other calls wait: "
        "workergroups restart trainer ends it",
    ]


@pytest.mark.parametrize("ray", [Ray(job_id=None), Ray(), Ray(("a0", "Trainer.step", None))])
def test_a_job_without_driver_or_calls_leaves_none(ray):
    assert left_calls(ray, "ppo-1") == []
