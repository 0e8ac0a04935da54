"""Of a rank's threads, those are shown that run code of users, wherever that is."""

import pytest

from workergroups.processes.stack_dump import _without_rays_threads

RAY = "/opt/venv/lib/python3.11/site-packages/ray/_private/worker.py"
WAITS = "/opt/workergroups/workergroups/stacks/flight_recorder.py"
THREADING = "/usr/lib/python3.11/threading.py"


def thread(number, *files):
    return "\n".join(
        [f"Thread 0x{number} (most recent call first):", *(f'  File "{file}", line 1 in f' for file in files)]
    )


@pytest.mark.parametrize(
    "code", ["/home/ray/train.py", "/work/tests/ray/train.py", "/tmp/ray/session_1/runtime_resources/train.py"]
)
def test_the_thread_that_runs_a_users_code_is_shown_and_no_other(code):
    main = thread(3, code, RAY)
    text = "\n\n".join([thread(1, WAITS, THREADING), thread(2, RAY, THREADING), main])
    assert _without_rays_threads(text) == main


def test_of_an_idle_rank_the_main_thread_is_shown():
    text = "\n\n".join([thread(1, WAITS, THREADING), thread(2, RAY, THREADING), thread(3, RAY)])
    assert _without_rays_threads(text) == thread(3, RAY)
