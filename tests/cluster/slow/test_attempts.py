"""Attempts of a job on real pods: the driver fails, or is lost with the head, and the command line submits it again."""

import pytest

from tests.cluster.command_line import CommandLine
from tests.cluster.kubectl import group, pool

ATTEMPT = """
import sys, time
import workergroups
ranks = workergroups.attach("tries", timeout=120)
attempt = workergroups.attempt()
values = [each["value"] for each in ranks.execute_all_sync("look")]
print("attempt", attempt, "of incarnation", ranks.incarnation, values, flush=True)
if attempt == 1 and sys.argv[1] == "hang":
    time.sleep(600)
sys.exit(7 if attempt == 1 else 0)
"""


@pytest.fixture(scope="module")
def run(namespace, tmp_path_factory):
    """The command, and a pool of one rank."""
    folder = tmp_path_factory.mktemp("laptop")
    (folder / "code").mkdir()
    (folder / "code" / "train.py").write_text(ATTEMPT)
    namespace.apply(pool("tries", processes=1, accelerator={"vendor": "none"}), group("tries"))
    namespace.until_ready("workergroup", "tries")
    yield CommandLine(namespace, folder)
    namespace.run("delete", "resourcepools,workergroups", "--all", "--wait=true", "--timeout=60s")


def submit(name, *words):
    options = ("--name", name, "--retries=2", "--working-dir=code")
    return "job", "submit", "tries", *options, "--", "python", "train.py", *words


def test_a_driver_that_fails_is_submitted_again(run):
    printed = run(*submit("fails", "fail"))
    assert "attempt 1 of incarnation 1 [0]\n" in printed
    assert "attempt 1 of at most 3 of job fails ended: FAILED" in printed
    assert "attempt 2 of incarnation 1 [0]\n" in printed
    assert "job fails: SUCCEEDED" in printed
    assert [(job["id"], job["attempt"]) for job in run.items("job", "list") if job["job"] == "fails"] == [
        ("fails-2", 2),
        ("fails-1", 1),
    ]


@pytest.mark.timeout(400)
def test_a_driver_that_is_lost_with_the_head_is_submitted_to_the_next_one(run, namespace):
    with run.start(*submit("lost", "hang")) as following:
        printed = ""
        for line in following.stdout:
            printed += line
            if "attempt 1 of incarnation" in line:
                break
        namespace.until(
            lambda: namespace.get("resourcepool", "tries")["status"]["drivers"],
            lambda drivers: drivers.get("jobs") == ["lost-1"],
            20,
        )
        namespace.run("delete", "pod", namespace.head("tries"), "--wait=false")
        rest, _ = following.communicate(timeout=300)
    assert following.returncode == 0, printed + rest
    assert "attempt 1 of at most 3 of job lost ended: LOST: Ray's head is gone" in rest
    assert "attempt 2 of incarnation 2 [0]\n" in rest
    states = {job["id"]: (job["state"], job["exitCode"]) for job in run.items("job", "list") if job["job"] == "lost"}
    assert states == {"lost-1": ("LOST", 1), "lost-2": ("SUCCEEDED", 0)}
    assert run.items("job", "status", "lost")[0]["id"] == "lost-2"
    assert "there is no output of job lost-1, which is LOST" in run("job", "logs", "lost-1", code=1)
    events = [event for event in namespace.get("events") if event["reason"] == "DriversLost"]
    assert ["with 1 driver (lost-1)" in event["message"] for event in events] == [True]


def test_a_pool_whose_driver_is_lost_says_so_until_another_one_connects(run, namespace):
    job = run("job", "submit", "tries", "--no-wait", "--working-dir=code", "--", "python", "train.py", "hang")
    job = job.split()[-1]
    namespace.until(
        lambda: namespace.get("resourcepool", "tries")["status"]["drivers"],
        lambda drivers: drivers.get("jobs") == [job],
        60,
    )
    namespace.run("delete", "pod", namespace.head("tries"), "--wait=false")
    namespace.until(
        lambda: namespace.ready("resourcepool", "tries"),
        lambda ready: (ready["status"], ready["reason"]) == ("True", "DriversLost"),
        180,
    )
    assert f"with 1 driver ({job}), and none has connected since" in run("status")
    assert run.items("job", "status", job, code=1)[0]["state"] == "LOST"
    run(*submit("again", "fail"))
    assert namespace.until(
        lambda: namespace.ready("resourcepool", "tries")["reason"], lambda reason: reason == "Reserved", 20
    )
