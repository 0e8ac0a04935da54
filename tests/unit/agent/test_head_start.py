"""Which of Ray's processes on the head the raylet does not wait for."""

import subprocess
import sys

import pytest

from workergroups_agent.executor.head_start import Dashboard, Process, dashboard_of, started_by_ray, visible_processes

PYTHON = "/opt/ray/bin/python3"
DASHBOARD = (PYTHON, "/opt/ray/lib/python3.11/site-packages/ray/dashboard/dashboard.py")
SESSION = "/tmp/ray/session_2026-11-23_08-00-00_1_7"
ADDRESS = ("--port=8265", "--port-retries=0", "--node-ip-address=10.1.2.3", "--proxy-server-url=")
OPTIONS = (*ADDRESS, f"--session-dir={SESSION}")


@pytest.mark.parametrize(
    ("arguments", "dashboard"),
    [
        ((*DASHBOARD, "--host=0.0.0.0", *OPTIONS), Dashboard("10.1.2.3:8265", SESSION)),
        ((*DASHBOARD, "--host=127.0.0.1", *OPTIONS), Dashboard("127.0.0.1:8265", SESSION)),
        ((*DASHBOARD, "--host=0.0.0.0", *ADDRESS), None),
        ((*DASHBOARD, "--host=0.0.0.0"), None),
        ((PYTHON, "-m", "ray.util.client.server", "--host=0.0.0.0", *OPTIONS), None),
        ((), None),
    ],
)
def test_the_address_is_the_one_that_the_dashboard_is_going_to_write(arguments, dashboard):
    assert dashboard_of(arguments) == dashboard


@pytest.mark.parametrize("shell", [1, 5], ids=["ray start is the container's process", "a shell has started ray start"])
def test_only_what_ray_start_has_started_is_rays(shell):
    ray = [Process(shell + 20, shell, name, ()) for name in ("gcs_server", "python3", "raylet")]
    supervisor = Process(7, 1, "python3", ("python3", "-m", "workergroups_agent.executor", "127.0.0.1:6379"))
    driver = Process(8, 7, "python3", (PYTHON, "-m", "workergroups_agent.executor.driver", "127.0.0.1:6379", "4"))
    users = Process(9, 30, "python3", ("python3", "train.py"))
    assert started_by_ray([supervisor, driver, users, *ray]) == ray


def test_nothing_is_rays_before_the_gcs():
    assert started_by_ray([Process(7, 1, "python3", ())]) == []


def test_a_process_may_have_any_name():
    """As when a name beyond ASCII is cut off after 15 bytes."""
    program = "open('/proc/self/comm', 'wb', 0).write(bytes([0xe8, 0xae])); print(flush=True); input()"
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as odd:
        odd.stdout.readline()
        found = {each.pid: each for each in visible_processes()}
        odd.stdin.write(b"\n")
    assert found[odd.pid].arguments[1:3] == ("-c", program)
