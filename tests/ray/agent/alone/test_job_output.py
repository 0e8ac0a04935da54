"""What a job prints comes to the command line as it is: any bytes, lines of any length, the end, and while it runs.

Also what it prints while it is stopped.
"""

import os
import sys
from types import SimpleNamespace

import pytest
from ray.cluster_utils import Cluster

from workergroups_client.jobs.jobs import Job, submit
from workergroups_client.ray_cluster.ray_api import RayApi
from workergroups_client.waiting import look_again

LINE = 5_000_000
PRINTED = b"caf\xe9\n" + b"x" * LINE + b"\nafter\n\x00\xff no end of line"
PROGRAM = f"""
import sys, time
sys.stdout.buffer.write({PRINTED[:10]!r})
sys.stdout.flush()
time.sleep(8)
sys.stdout.buffer.write(b"x" * ({LINE} - 5) + {PRINTED[LINE + 5 :]!r})
sys.stdout.flush()
sys.exit(7)
"""


@pytest.fixture(scope="module")
def api(ray_environment, rays):
    """Ray's API on a head with a dashboard."""
    rays.stop()
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": True})
    url = f"http://{cluster.head_node.webui_url}"
    api = RayApi(
        SimpleNamespace(url=url, remote_port=0, pod="here", trouble=None), os.environ.get("RAY_AUTH_TOKEN", "")
    )
    api.wait_until_up(print, 60)
    yield api
    cluster.shutdown()


def own(output):
    """Return what the program has printed, without what Ray prints before."""
    return output[output.index(PRINTED[:4]) :]


def test_a_job_that_is_followed_prints_all_bytes_while_it_runs_and_at_its_end(api):
    job = submit(api, "here", [sys.executable, "-c", PROGRAM], {})
    output, early = b"", None
    for piece in job.logs(follow=True):
        output += piece
        if early is None and PRINTED[:5] in output:
            early = Job(job.id, api, "here").record().has_ended
    assert early is False
    assert own(output) == PRINTED
    assert job.record().exit_code == 7
    assert own(b"".join(job.logs())) == PRINTED


SAVING = """
import signal, sys, time
def save(*_):
    print("saving", flush=True)
    time.sleep(5)
    print("saved", flush=True)
    sys.exit(0)
signal.signal(signal.SIGTERM, save)
print("trains", flush=True)
time.sleep(600)
"""


def test_a_driver_that_is_stopped_has_time_to_save(api):
    job = submit(api, "here", [sys.executable, "-c", SAVING], {"env_vars": {"A": "b"}})
    for _ in look_again(60):
        if b"\ntrains\n" in b"".join(job.logs()):
            break
    assert job.stop().state == "STOPPED"
    assert b"".join(job.logs()).endswith(b"\ntrains\nsaving\nsaved\n")


CALLING = """
import time, ray
ray.init(namespace="mine")
@ray.remote(num_cpus=0)
class Rank:
    def step(self):
        time.sleep(600)
rank = Rank.options(name="trainer/uid-1/3/1-of-2", namespace="workergroups", lifetime="detached").remote()
call = rank.step.remote()
print("calls", flush=True)
ray.get(call)
"""


def test_it_is_known_which_ranks_go_on_with_a_jobs_call(api):
    job = submit(api, "here", [sys.executable, "-c", CALLING], {})
    calls = next(filter(None, (job.calls() for _ in look_again(60))))
    assert [(call.group, call.method, call.ranks) for call in calls] == [("trainer", "step", "1")]
    assert job.stop().state == "STOPPED"


def test_a_job_that_printed_nothing_and_one_that_cannot_start_have_no_output(api):
    silent = submit(api, "here", ["true"], {})
    assert b"".join(silent.logs(follow=True)).count(b"\n") <= 3  # Ray's own lines
    broken = submit(api, "here", ["true"], {"working_dir": "gcs://_ray_pkg_that_does_not_exist.zip"})
    assert b"".join(broken.logs(follow=True)) == b""
    assert broken.record().state == "FAILED"
