"""When a job gets another attempt, what that waits for, and that two attempts never run at once."""

from contextlib import nullcontext
from itertools import chain, repeat
from unittest.mock import Mock

import pytest

from tests.unit.client.fake_cluster import WritableCluster, condition, group, head, pool
from workergroups_client import Pool
from workergroups_client.errors import ClientError, DeadlineError, NotFoundError, NotRunningError, UnreachableError
from workergroups_client.jobs import attempts, jobs, retried_job, submission
from workergroups_client.jobs.attempts import is_retried
from workergroups_client.jobs.records import JobRecord
from workergroups_client.objects import readiness
from workergroups_client.waiting import Lasting

READY = {"conditions": [condition("Ready", "True")], "observedGeneration": 2}
HOPELESS = {"conditions": [condition("Ready", "False", "LaunchFailed", "ImportError: x")], "observedGeneration": 2}


def in_session(session, **report):
    return {**READY, "reservation": {"session": session, "drivers": 0, **report}}


@pytest.mark.parametrize(
    ("state", "left", "expected"),
    [
        ("FAILED", 1, True),
        ("LOST", 1, True),
        ("FAILED", 0, False),
        ("LOST", 0, False),
        ("SUCCEEDED", 1, False),
        ("STOPPED", 1, False),
        ("UNKNOWN", 1, False),
    ],
)
def test_a_driver_that_failed_or_was_lost_gets_another_attempt(state, left, expected):
    assert is_retried(JobRecord("a", state, "x", "", None, None, None), left) == expected


class Ray:
    """Ray's API on one head after the other: each has its own jobs."""

    def __init__(self, world):
        self.world = world

    @property
    def api(self):
        return self

    def close(self):
        pass

    def get(self, path, **query):
        self.world.check()
        if path == "/api/v0/nodes":
            nodes = [{"node_id": job, "node_ip": "10.0.0.1", "state": "ALIVE"} for job in self.world.jobs]
            return {"data": {"result": {"result": nodes}}}
        job_id = path.split("/")[3]
        if job_id not in self.world.jobs:
            raise NotFoundError(f"Job {job_id} does not exist")
        answer = self.world.jobs[job_id]
        return {**answer, "driver_node_id": job_id}

    def post(self, path, body=None):
        self.world.check()
        if path.endswith("/stop"):
            self.world.jobs[path.split("/")[3]]["status"] = "STOPPED"
            return {}
        job_id = body["submission_id"]
        assert job_id not in self.world.jobs, "Ray refuses an id that it knows"
        assert all(job["status"] in ("FAILED", "STOPPED") for job in self.world.jobs.values()), "two attempts at once"
        self.world.jobs[job_id] = {**body, "status": "RUNNING"}
        self.world.submitted.append((job_id, body["runtime_env"]["env_vars"]["WG_ATTEMPT"]))
        self.world.after_submit()
        return body

    def follow(self, path, pause, node_id, **query):
        """Print, and then end as the story goes on."""
        yield f"{node_id}\n".encode()
        self.world.goes_on()
        yield b""

    def stream(self, path, node_id, **query):
        """Return what was printed."""
        yield f"{node_id}\n".encode()


class World:
    """A pool with two groups, and the heads of its Ray cluster."""

    def __init__(self, monkeypatch, *story):
        self.jobs, self.submitted, self.told, self.slept = {}, [], [], []
        self.story = list(story)
        self.lives = 1
        self.pool, self.head = pool("ppo", status=in_session("s1")), head()
        self.groups = [group("ppo", status=READY), group("broken", status=HOPELESS, pools=[{"name": "ppo"}])]
        self.cluster = WritableCluster(self.pool, self.head, *self.groups)
        self.after_submit = self.check = lambda: None
        monkeypatch.setattr(Pool, "ray", property(lambda _: Ray(self)))
        for module in (attempts, jobs, readiness, retried_job):
            monkeypatch.setattr(module.time, "sleep", self.slept.append)
        for module in (attempts, jobs, readiness):
            monkeypatch.setattr(module, "look_again", lambda seconds, pause=0: [left * 1.0 for left in range(9, 0, -1)])
        monkeypatch.setattr(readiness.Verdict.READY, "_value_", 0.0)
        monkeypatch.setattr(readiness.Verdict.HOPELESS, "_value_", 0.0)

    def submit(self, retries=2, **more):
        options = {"job_id": "train", "retries": retries, "on_retry": self.told.append, **more}
        return Pool("pool/ppo", self.cluster).submit(["python", "train.py"], **options)

    def goes_on(self):
        if any(job["status"] == "RUNNING" for job in self.jobs.values()):
            self.story.pop(0)(self)

    @property
    def running(self):
        (job,) = [job for job in self.jobs.values() if job["status"] == "RUNNING"]
        return job


def ends(status, **more):
    return lambda world: world.running.update(status=status, **more)


def raising(*errors):
    """A function that raises these, one a call, and from then on does nothing."""
    return Mock(side_effect=chain(errors, repeat(None)))


def loses_head(session="s2", comes_back=True, **report):
    """The head's container ends; the next one knows no job."""

    def lose(world):
        world.jobs.clear()
        world.lives += 1
        life = f"life-{world.lives}" if comes_back else None
        world.head["status"] = head(life=life)["status"]
        world.pool["status"] = in_session(session, **report)

    return lose


def test_a_driver_that_fails_is_submitted_again_until_it_succeeds(monkeypatch):
    world = World(monkeypatch, ends("FAILED", driver_exit_code=7, message="exit code 7"), ends("SUCCEEDED"))
    job = world.submit()
    assert b"".join(job.logs(follow=True)) == b"train-1\ntrain-2\n"
    assert world.submitted == [("train-1", "1"), ("train-2", "2")]
    assert (job.record().id, job.record().exit_code) == ("train-2", 0)
    assert world.told[0] == (
        "attempt 1 of at most 3 of job train ended: FAILED: exit code 7. The next one begins in 5s at the earliest, "
        "when the pool and the groups on it are ready"
    )
    assert world.told[1] == "attempt 2 of job train is job train-2"


def test_a_job_without_retries_has_the_id_that_was_chosen_and_one_attempt(monkeypatch):
    world = World(monkeypatch, ends("FAILED", driver_exit_code=7))
    job = world.submit(retries=0)
    assert b"".join(job.logs(follow=True)) == b"train\n"
    assert (world.submitted, job.record().exit_code, world.told) == ([("train", "1")], 7, [])


def test_each_attempt_pauses_for_longer_and_the_last_one_is_the_end(monkeypatch):
    failed = ends("FAILED", driver_exit_code=-9, message="killed")
    world = World(monkeypatch, failed, failed, failed)
    job = world.submit()
    assert b"".join(job.logs(follow=True)) == b"train-1\ntrain-2\ntrain-3\n"
    assert [pause for pause in world.slept if pause >= 5] == [5, 10]
    assert (job.record().id, job.record().exit_code) == ("train-3", 137)


def test_a_job_whose_head_is_lost_is_submitted_to_the_next_head(monkeypatch):
    world = World(monkeypatch, loses_head(), ends("SUCCEEDED"))
    job = world.submit()
    assert b"".join(job.logs(follow=True)) == b"train-1\ntrain-2\n"
    assert "ended: LOST: Ray's head is gone, and with it the job" in world.told[0]
    kept = {each.id: each for each in Pool("pool/ppo", world.cluster).kept.all()}
    assert (kept["train-1"].session, kept["train-2"].session) == ("s1", "s2")
    assert (kept["train-1"].job, kept["train-2"].attempt, kept["train-2"].retries) == ("train", 2, 2)


def test_wait_submits_it_again_too(monkeypatch):
    world = World(monkeypatch, ends("FAILED", driver_exit_code=1), loses_head(), ends("SUCCEEDED"))
    world.check = world.goes_on
    assert world.submit(retries=5).wait().id == "train-3"


@pytest.mark.parametrize("stopper", ["this program", "another"])
def test_a_job_that_somebody_stops_gets_no_other_attempt(monkeypatch, stopper):
    world = World(monkeypatch, ends("STOPPED"))
    job = world.submit()
    if stopper == "another":
        list(job.logs(follow=True))
    assert job.stop().state == "STOPPED"
    list(job.logs(follow=True))
    assert (world.submitted, job.record().exit_code) == ([("train-1", "1")], 143)


def test_one_that_somebody_stops_between_two_attempts_gets_no_other(monkeypatch):
    world = World(monkeypatch, ends("FAILED", driver_exit_code=1))
    job = world.submit(on_retry=lambda _: Pool("pool/ppo", world.cluster).job("train-1").stop())
    list(job.logs(follow=True))
    assert (world.submitted, job.record().state) == ([("train-1", "1")], "FAILED")


def test_while_its_container_runs_a_job_is_not_lost_and_gets_no_other_attempt(monkeypatch):
    world = World(monkeypatch, lambda world: world.jobs.clear())
    job = world.submit()
    with pytest.raises(UnreachableError, match="may still be running: Ray no longer knows the job"):
        list(job.logs(follow=True))
    assert world.submitted == [("train-1", "1")]


def test_a_head_that_comes_back_with_its_session_begins_the_next_attempt_once_it_is_reported(monkeypatch):
    world = World(monkeypatch, loses_head(session="s1", head="h2"), ends("SUCCEEDED"))
    world.pool["status"] = in_session("s1", head="h1")
    assert b"".join(world.submit().logs(follow=True)) == b"train-1\ntrain-2\n"


def test_an_attempt_whose_head_was_replaced_meanwhile_was_in_one_of_both(monkeypatch):
    world = World(monkeypatch, loses_head(), ends("SUCCEEDED"))
    world.after_submit = lambda: world.head.update(status=head(life="life-1b")["status"])
    assert b"".join(world.submit().logs(follow=True)) == b"train-1\ntrain-2\n"


def test_if_it_is_not_known_which_head_had_the_job_there_is_no_other_attempt(monkeypatch):
    world = World(monkeypatch, loses_head())
    world.after_submit = lambda: monkeypatch.setattr(attempts, "_heads", lambda kept: None)
    with pytest.raises(ClientError, match="there is no next one: it is not known in which container of Ray's head"):
        list(world.submit().logs(follow=True))
    assert world.submitted == [("train-1", "1")]


@pytest.mark.parametrize(
    ("story", "status", "said"),
    [
        (
            ends("FAILED", driver_exit_code=1),
            in_session("s1", driverJobs=["train-1"]),
            "a driver of job train-1 is still connected to Ray, such as a process that the job left in the background",
        ),
        (loses_head(session="s1"), None, "pool ppo does not report its new Ray head yet"),
    ],
)
def test_what_is_left_of_an_attempt_holds_up_the_next_one(monkeypatch, story, status, said):
    world = World(monkeypatch, story)
    job = world.submit()
    world.pool["status"] = status or world.pool["status"]
    with pytest.raises(ClientError, match=f"could not be submitted within 1d0h: {said}"):
        list(job.logs(follow=True))
    assert world.submitted == [("train-1", "1")]


def test_a_group_that_will_not_become_ready_ends_it_with_the_reason(monkeypatch):
    world = World(monkeypatch, ends("FAILED", driver_exit_code=1, message="exit code 1"))
    job = world.submit()
    world.groups[0]["status"] = HOPELESS
    with pytest.raises(ClientError, match="and there is no next one: group ppo will not become"):
        list(job.logs(follow=True))


def test_groups_that_were_broken_before_or_are_gone_hold_nothing_up(monkeypatch):
    world = World(monkeypatch, ends("FAILED", driver_exit_code=1), ends("SUCCEEDED"))
    job = world.submit()
    world.cluster.objects = tuple(each for each in world.cluster.objects if each is not world.groups[0])
    list(job.logs(follow=True))
    assert job.record().exit_code == 0


def test_another_pool_of_the_name_gets_no_attempt(monkeypatch):
    world = World(monkeypatch, ends("FAILED", driver_exit_code=1))
    job = world.submit()
    another = {**world.pool, "metadata": {**world.pool["metadata"], "uid": "another"}}
    world.cluster.objects = (another, *world.cluster.objects[1:])
    with pytest.raises(ClientError, match="pool ppo was deleted, and created again"):
        list(job.logs(follow=True))


def test_an_answer_that_is_lost_is_not_a_second_attempt(monkeypatch):
    """The connection breaks when Ray has accepted the attempt."""
    world = World(monkeypatch, ends("FAILED", driver_exit_code=1), ends("SUCCEEDED"))
    job = world.submit()
    world.after_submit = raising(UnreachableError("reset"))
    list(job.logs(follow=True))
    assert world.submitted == [("train-1", "1"), ("train-2", "2")]
    assert job.record().exit_code == 0


@pytest.mark.parametrize("trouble", [UnreachableError, NotRunningError, DeadlineError])
def test_a_head_that_is_not_up_yet_is_asked_again(monkeypatch, trouble):
    world = World(monkeypatch, ends("FAILED", driver_exit_code=1), ends("SUCCEEDED"))
    job = world.submit()
    list_of_troubles = [trouble("not yet")] * 2

    def check():
        if world.slept and list_of_troubles and world.jobs["train-1"]["status"] == "FAILED" and world.told:
            raise list_of_troubles.pop()

    world.check = check
    list(job.logs(follow=True))
    assert job.record().exit_code == 0


def test_a_head_that_is_replaced_during_the_first_submission_is_waited_for(monkeypatch):
    world = World(monkeypatch)
    world.check = raising(UnreachableError("reset"), NotRunningError("pods ppo-head not found"))
    world.submit()
    assert world.submitted == [("train-1", "1")]


def test_an_answer_to_the_first_submission_that_is_lost_is_no_second_one(monkeypatch):
    world = World(monkeypatch)
    world.after_submit = raising(UnreachableError("reset"))
    world.submit()
    assert world.submitted == [("train-1", "1")]


def test_an_answer_that_is_lost_is_no_second_job_without_retries_either(monkeypatch):
    world = World(monkeypatch, ends("SUCCEEDED"))
    world.after_submit = raising(UnreachableError("reset"))
    assert world.submit(retries=0).id == "train"
    assert world.submitted == [("train", "1")]


def test_a_submission_without_any_answer_says_which_job_may_run(monkeypatch):
    world = World(monkeypatch)

    def break_down():
        world.check = break_down
        raise UnreachableError("reset")

    world.after_submit = break_down
    with pytest.raises(DeadlineError, match=r"job train could not be submitted .* or Ray's answer was lost .*: reset"):
        world.submit(retries=0)


def test_ctrl_c_during_a_submission_says_which_job_may_run(monkeypatch):
    world, told = World(monkeypatch), []
    world.after_submit = raising(KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        Pool("pool/ppo", world.cluster, told.append).submit(["python"], job_id="train")
    assert told[-1] == "job train may run, or not: see workergroups job status train"
    assert isinstance(told[-1], Lasting)


def test_a_job_of_which_another_program_noted_its_success_gets_no_other_attempt(monkeypatch):
    """This program slept meanwhile, and the head was replaced."""

    def succeeds_and_loses_head(world):
        ended = JobRecord("train-1", "SUCCEEDED", "x", "", 1.0, 61.0, 0)
        Pool("pool/ppo", world.cluster).kept.note_end(ended)
        loses_head()(world)

    world = World(monkeypatch, succeeds_and_loses_head)
    job = world.submit()
    list(job.logs(follow=True))
    assert (world.submitted, job.record().state) == ([("train-1", "1")], "SUCCEEDED")


def test_its_own_submission_that_arrives_late_is_no_other_job(monkeypatch):
    world, first = World(monkeypatch), []

    def post(self, path, body=None):
        if not first:
            first.append(body)
            raise UnreachableError("no answer")
        world.jobs[body["submission_id"]] = {**first[0], "status": "RUNNING"}
        raise ClientError(f"Ray refused the request: ValueError: Job {body['submission_id']} already exists.")

    monkeypatch.setattr(Ray, "post", post)
    assert world.submit().record().id == "train-1"


def test_a_group_that_is_deleted_while_the_next_attempt_waits_for_it_holds_nothing_up(monkeypatch):
    world = World(monkeypatch, ends("FAILED", driver_exit_code=1), ends("SUCCEEDED"))
    job = world.submit()
    wait, deleted = attempts.wait_until_ready, ["there is no group eval"]

    def wait_until_ready(*arguments):
        if deleted:
            raise NotFoundError(deleted.pop())
        return wait(*arguments)

    monkeypatch.setattr(attempts, "wait_until_ready", wait_until_ready)
    list(job.logs(follow=True))
    assert job.record().exit_code == 0


def test_a_group_that_is_deleted_meanwhile_leaves_the_wait_for_the_others(monkeypatch):
    world = World(monkeypatch, ends("FAILED", driver_exit_code=1), ends("SUCCEEDED"))
    job = world.submit()
    wait, answers = attempts.wait_until_ready, [None, NotFoundError("there is no group eval")]

    def wait_until_ready(*arguments):
        if not answers:
            return
        if (answer := answers.pop()) is not None:
            raise answer
        assert len(world.submitted) == 1, "it was submitted without another wait"
        wait(*arguments)

    monkeypatch.setattr(attempts, "wait_until_ready", wait_until_ready)
    list(job.logs(follow=True))
    assert (answers, job.record().exit_code) == ([], 0)


def test_a_head_whose_status_does_not_say_yet_that_it_runs_is_not_known(monkeypatch):
    world = World(monkeypatch, loses_head())
    world.head["status"] = head(life=None)["status"]
    with pytest.raises(ClientError, match="it is not known in which container of Ray's head"):
        list(world.submit().logs(follow=True))


def test_an_attempt_may_be_on_each_head_on_which_it_was_tried(monkeypatch):
    world = World(monkeypatch, loses_head(), ends("SUCCEEDED"))

    def replace_head():
        world.after_submit = lambda: None
        world.head["status"] = head(life="life-2")["status"]
        raise UnreachableError("reset")

    world.after_submit = replace_head
    world.submit()
    (kept,) = Pool("pool/ppo", world.cluster).kept.all()
    assert len(kept.heads) == 2


def test_without_retries_a_head_that_is_being_replaced_is_an_error(monkeypatch):
    world = World(monkeypatch)
    world.check = Mock(side_effect=NotRunningError("pods ppo-head not found"))
    with pytest.raises(NotRunningError, match="ppo-head"):
        world.submit(retries=0)


def test_a_record_that_cannot_be_kept_does_not_keep_a_job_from_its_attempts(monkeypatch):
    world = World(monkeypatch, loses_head(), ends("SUCCEEDED"))
    world.cluster.apply = world.cluster.merge = Mock(side_effect=ClientError("you may not"))
    job = world.submit()
    list(job.logs(follow=True))
    assert (world.submitted, job.record().exit_code) == ([("train-1", "1"), ("train-2", "2")], 0)


def test_the_number_of_the_attempt_is_not_the_users(monkeypatch):
    world = World(monkeypatch)
    world.submit(env={"WG_ATTEMPT": "9", "WG_NODES": "7"})
    assert world.submitted == [("train-1", "1")]
    assert world.jobs["train-1"]["runtime_env"]["env_vars"] == {
        "WG_ATTEMPT": "1",
        "WG_NODES": "7",
        "WG_PROCESSES_PER_NODE": "2",
        "RAY_JOB_STOP_WAIT_TIME_S": "30",
    }


def test_a_later_attempt_too_is_a_part_of_the_span_in_which_the_job_was_submitted(monkeypatch):
    span = {"TRACEPARENT": "00-11112222333344445555666677778888-1234567812345678-01", "TRACESTATE": "vendor=1"}
    for name, value in span.items():
        monkeypatch.setenv(name, value)
    world = World(monkeypatch, loses_head(), ends("SUCCEEDED"))
    list(world.submit(env={"TRACESTATE": "of=the-user"}).logs(follow=True))
    found = world.jobs["train-2"]["runtime_env"]["env_vars"]
    assert (found["TRACEPARENT"], found["TRACESTATE"]) == (span["TRACEPARENT"], "of=the-user")


def test_the_span_that_a_runtime_environment_or_a_secret_names_wins(monkeypatch):
    monkeypatch.setenv("TRACEPARENT", "of the shell")
    monkeypatch.setenv("TRACESTATE", "of the shell")
    handed_over = []
    monkeypatch.setattr(submission.secret_env, "variables_of", lambda *_: {"TRACESTATE": b"of the Secret"})
    monkeypatch.setattr(
        submission.secret_env, "handed_over", lambda *given: handed_over.append(given[-1]) or nullcontext("")
    )
    world = World(monkeypatch)
    world.submit(runtime_env={"env_vars": {"TRACEPARENT": "of the file"}}, env_from=["secret/span"])
    found = world.running["runtime_env"]["env_vars"]
    assert (found["TRACEPARENT"], found.get("TRACESTATE")) == ("of the file", None)
    assert handed_over == [{"TRACESTATE": b"of the Secret"}]


def test_attempts_have_one_key_and_submissions_another(monkeypatch):
    failed = ends("FAILED", driver_exit_code=1)
    world = World(monkeypatch, failed, failed)
    list(world.submit(retries=1).logs(follow=True))
    world.submit(retries=0)
    keys = {job_id: job["metadata"][jobs._SUBMISSION] for job_id, job in world.jobs.items()}
    assert keys["train-1"] == keys["train-2"] != keys["train"]


@pytest.mark.parametrize("job_id", ["x" * 201, "exp 1", "a/b", "..", "-x", "caf\u00e9", "a\n", "a?b", "a#b", "$HOME"])
def test_an_id_that_ray_urls_and_shells_cannot_carry_is_refused_before_anything_runs(monkeypatch, job_id):
    with pytest.raises(ClientError, match=r"cannot be the id of a job \(--name\): use letters, digits"):
        World(monkeypatch).submit(job_id=job_id)
