"""The observer counts the drivers of users, and neither the executor nor what Ray itself runs."""

import subprocess
import sys

import pytest

WAITS = """
import ray, sys
ray.init(address=sys.argv[1], namespace=sys.argv[2] or None, job_config=ray.job_config.JobConfig(metadata={metadata}))
print("connected", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def driver(cluster):
    """A function that starts a driver, which ends when its standard input is closed."""
    started = []

    def start(namespace="", metadata=None):
        code = WAITS.format(metadata=metadata or {})
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        process = subprocess.Popen([sys.executable, "-c", code, cluster.address, namespace], **pipes)
        started.append(process)
        for line in process.stdout:
            if line.startswith("connected"):
                return process
        raise AssertionError("the driver has not connected")

    yield start
    for process in started:
        process.stdin.close()
        process.wait(30)


def drivers(reports):
    report = reports.pools["actors"].report
    return report.drivers, list(report.driver_jobs)


def test_drivers_are_counted_while_they_are_connected(agent, driver):
    # The tests' own driver is in our namespace, as the executor is.
    before = agent.until(lambda reports: drivers(reports) == (0, []))
    job = driver(metadata={"job_submission_id": "ppo-1"})
    agent.until(lambda reports: drivers(reports) == (1, ["ppo-1"]))
    driver("workergroups")
    other = driver("a-users-own")
    reports = agent.until(lambda reports: drivers(reports)[0] == 2)
    assert "ppo-1" in drivers(reports)[1]
    for process in (job, other):
        process.stdin.close()
    after = agent.until(lambda reports: drivers(reports) == (0, []))
    ended = [reports.pools["actors"].report.last_driver_end for reports in (before, after)]
    assert ended[1] is not None
    assert ended[1] != ended[0]
