"""Groups whose launches break in one way or another come and go, and a healthy group gets its ranks each time."""

import itertools
import random

import pytest

from tests.ray.agent.planned import Group, broken
from tests.ray.agent.test_executor import ranks
from workergroups.ray_private import starting

ROUNDS = 20
SECONDS = 90.0
"""How long a healthy group may take on a busy machine. Ray waits for ten minutes for a process that does not start."""
HEALTHY = (("actors", 6, 2),)
# What breaks a launch, and what its condition or its rank's failure says; None if that comes late.
KINDS = [
    ({"env": {"PYTHONHOME": "/nonexistent"}}, "exit status 1"),
    ({"env": {"LD_LIBRARY_PATH": "{}"}, "path": {"libc.so.6": "-"}}, "exit status 127"),
    ({"path": {"sitecustomize.py": "import os; os.abort()"}}, "signal SIGABRT"),
    ({"path": {"ray/__init__.py": "raise ImportError('not Ray')"}}, "not Ray"),
    ({"path": {"sitecustomize.py": "import time; time.sleep(3600)"}}, None),
    ({"code": {"sitecustomize.py": "import time; time.sleep(3600)"}}, None),
    ({"code": {"queue.py": ""}}, "module 'queue'"),
    ({"code": {"accumulator.py": "import os; os._exit(5)"}}, "died in pod"),
    ({"code": {"accumulator.py": "while True: pass"}}, None),
]


@pytest.fixture(scope="module")
def cluster(patient_raylets):
    return patient_raylets


def said(reports, name):
    report = ranks(reports, name)
    return " ".join([report.message or "", *(failure.message for failure in report.failures)])


def test_a_healthy_group_gets_its_ranks_beside_launches_that_break_at_random(agent, tmp_path):
    seed = random.randrange(1_000_000)
    print(f"the seed is {seed}")
    draw, numbers, launched = random.Random(seed), itertools.count(), 0
    present: dict[str, tuple[Group, str | None]] = {}
    for _ in range(ROUNDS):
        for name in draw.sample(sorted(present), draw.randrange(len(present) + 1)):
            del present[name]
        for _ in range(draw.randrange(4 - len(present) // 2)):
            name, (how, words) = f"broken-{next(numbers)}", draw.choice(KINDS)
            present[name] = broken(tmp_path, name, draw.randrange(6), **how), words
        groups = [group for group, _ in present.values()]
        healthy = Group("healthy", bundles=HEALTHY)
        agent.until(lambda reports: ranks(reports, "healthy").ready == "0-1", healthy, *groups, seconds=SECONDS)
        launched += 1
        if draw.random() < 0.5:  # otherwise, the others go while their processes start
            told = {name: words for name, (_, words) in present.items() if words is not None}
            agent.until(
                lambda reports, told=told: all(words in said(reports, name) for name, words in told.items()),
                *groups,
                seconds=SECONDS,
            )
    assert launched == ROUNDS


def test_a_process_that_hangs_while_it_starts_is_ended_and_the_launch_tried_again(agent, tmp_path):
    hanging = broken(tmp_path, "hanging", 0, path={"sitecustomize.py": "import time; time.sleep(3600)"})
    words = "in pod", f"{starting.LATE}; its last lines: see raylet.err", "(1 of 6 tries)"
    agent.until(lambda reports: all(each in said(reports, "hanging") for each in words), hanging, seconds=SECONDS)
