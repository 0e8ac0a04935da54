"""A job's end, and its log over connections that break."""

import pytest

from workergroups_client.errors import ClientError, ConflictError, UnreachableError
from workergroups_client.jobs import jobs
from workergroups_client.jobs.jobs import Job, list_records, submit
from workergroups_client.jobs.records import JobRecord
from workergroups_client.waiting import Lasting


def said(status="RUNNING", **more):
    return {"submission_id": "ppo-1", "status": status, "entrypoint": "python train.py", "type": "SUBMISSION", **more}


@pytest.mark.parametrize(
    ("state", "driver", "code"),
    [
        ("PENDING", None, None),
        ("RUNNING", None, None),
        ("SUCCEEDED", 0, 0),
        ("FAILED", 7, 7),
        ("FAILED", -9, 137),
        ("FAILED", None, 1),
        ("FAILED", 0, 1),
        ("STOPPED", None, 143),
        ("STOPPED", -15, 143),
    ],
)
def test_the_exit_code_is_the_drivers_as_a_shell_has_it(state, driver, code):
    assert JobRecord("a", state, "x", "", None, None, driver).exit_code == code


ENDED = [b"one\nca", b"f\xe9\nthree\nfour"]


class Ray:
    """Ray's API: connections to a log, each of which ends in some way."""

    def __init__(self, *connections):
        self.connections, self.posted = list(connections), []
        self.node = "ALIVE"

    def get(self, path, **query):
        if path == "/api/v0/nodes":
            return {"data": {"result": {"result": [{"node_id": "n1", "node_ip": "10.0.0.1", "state": self.node}]}}}
        job = said("RUNNING" if self.connections else "SUCCEEDED", driver_node_id="n1")
        return [job] if path == "/api/jobs/" else job

    def post(self, path, body=None):
        if body is not None and body.get("submission_id") == "taken":
            raise ClientError("Ray refused the request: ValueError: Job with submission_id taken already exists.")
        self.posted.append(body)
        return {"submission_id": "ppo-1"}

    def follow(self, path, pause, node_id, filename, lines, timeout):
        assert (node_id, filename, lines) == ("n1", "job-driver-ppo-1.log", -1)
        for text in self.connections[0]:
            if text is None:
                del self.connections[0]
                raise UnreachableError("gone")
            yield text
        del self.connections[0]

    def stream(self, path, node_id, filename, lines, timeout):
        yield from ENDED


@pytest.fixture(autouse=True)
def no_pause(monkeypatch):
    monkeypatch.setattr(jobs, "_LOOK_SECONDS", 0.01)


def test_a_log_continues_where_the_connection_was_lost():
    ray = Ray([b"one\n", b"caf\xe9\n", None], [b"one\ncaf", None], [None], [b"one\n", b"caf\xe9\nthr"])
    told = []
    assert b"".join(Job("ppo-1", ray, "ppo").logs(follow=True, tell=told.append)) == b"".join(ENDED)
    assert "the connection to job ppo-1 is lost" in told[0]


def test_a_job_that_cannot_be_reached_is_given_up_after_a_while():
    def gone(path, **query):
        raise UnreachableError("no route")

    ray = Ray([None])
    job = Job("ppo-1", ray, "ppo", patience=0.1)
    log = job.logs(follow=True, tell=lambda _: setattr(ray, "get", gone))
    with pytest.raises(UnreachableError, match="job ppo-1 cannot be reached, but may still be running: no route"):
        list(log)


def test_a_wait_with_a_deadline_ends_then_also_without_a_connection():
    def gone(path, **query):
        raise UnreachableError("no route")

    ray = Ray([None])
    ray.get = gone
    with pytest.raises(UnreachableError, match="job ppo-1 cannot be reached"):
        Job("ppo-1", ray, "ppo", patience=3600).wait(0.1)


@pytest.mark.parametrize("state", ["DEAD", "ALIVE"])
def test_a_job_that_ray_calls_running_is_lost_if_its_drivers_node_is_gone(state):
    """With the GCS's state kept, Ray's table of jobs outlives the head."""
    ray = Ray([None])
    ray.node = state
    expected = {"DEAD": "LOST", "ALIVE": "RUNNING"}[state]
    assert Job("ppo-1", ray, "ppo").record().state == expected
    assert [record.state for record in list_records(ray)] == [expected]


def test_the_end_of_an_output_that_is_gone_with_its_node_is_left_out(monkeypatch):
    def gone(*_, **__):
        raise UnreachableError("Ray cannot answer now: Agent for node id n1 doesn't exist.")

    monkeypatch.setattr(jobs, "_REST_SECONDS", 0.1)
    ray = Ray([b"one\n"])
    ray.stream = gone
    told = []
    assert b"".join(Job("ppo-1", ray, "ppo").logs(follow=True, tell=told.append)) == b"one\n"
    assert "the rest of the output of job ppo-1 cannot be read: Ray cannot answer now" in told[-1]
    assert [isinstance(each, Lasting) for each in told[-2:]] == [False, True]


def test_a_reset_while_the_end_is_read_doubles_nothing():
    ray, resets = Ray([b"one\n"]), [1]

    def stream(*_, **__):
        yield b"one\nca"
        if resets:
            raise UnreachableError(f"reset {resets.pop()}")
        yield b"f"

    ray.stream = stream
    assert b"".join(Job("ppo-1", ray, "ppo").logs(follow=True)) == b"one\ncaf"


def test_each_argument_arrives_as_it_is():
    ray = Ray()
    submit(ray, "ppo", ["python", "-m", "main", "trainer.logger=['console','wandb']", "a b"], {})
    (body,) = ray.posted
    assert body["entrypoint"] == """python -m main 'trainer.logger=['"'"'console'"'"','"'"'wandb'"'"']' 'a b'"""
    assert body["submission_id"].startswith("ppo-")


def test_an_id_that_another_job_has_is_named_with_the_way_out():
    with pytest.raises(ConflictError, match=r"^pool ppo has a job taken already: choose another id \(--name\)"):
        submit(Ray(), "ppo", ["python"], {}, "taken")
