"""A job's end, and its log over connections that break."""

import pytest

from workergroups_client.errors import ClientError, ConflictError, UnreachableError
from workergroups_client.jobs.jobs import Job, submit
from workergroups_client.jobs.records import JobRecord


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

    def get(self, path):
        return said("RUNNING" if self.connections else "SUCCEEDED", driver_node_id="n1")

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


def test_a_log_continues_where_the_connection_was_lost():
    ray = Ray([b"one\n", b"caf\xe9\n", None], [b"one\ncaf", None], [None], [b"one\n", b"caf\xe9\nthr"])
    told = []
    assert b"".join(Job("ppo-1", ray, "ppo").logs(follow=True, tell=told.append)) == b"".join(ENDED)
    assert "the connection to job ppo-1 is lost" in told[0]


def test_a_job_that_cannot_be_reached_is_given_up_after_a_while():
    def gone(path):
        raise UnreachableError("no route")

    ray = Ray([None])
    job = Job("ppo-1", ray, "ppo", patience=0.1)
    log = job.logs(follow=True, tell=lambda _: setattr(ray, "get", gone))
    with pytest.raises(UnreachableError, match="job ppo-1 cannot be reached, but may still be running: no route"):
        list(log)


def test_each_argument_arrives_as_it_is():
    ray = Ray()
    submit(ray, "ppo", ["python", "-m", "main", "trainer.logger=['console','wandb']", "a b"], {})
    (body,) = ray.posted
    assert body["entrypoint"] == """python -m main 'trainer.logger=['"'"'console'"'"','"'"'wandb'"'"']' 'a b'"""
    assert body["submission_id"].startswith("ppo-")


def test_an_id_that_another_job_has_is_named_with_the_way_out():
    with pytest.raises(ConflictError, match=r"^pool ppo has a job taken already: choose another id \(--name\)"):
        submit(Ray(), "ppo", ["python"], {}, "taken")
