"""A process that hangs while it starts."""

import pytest

from tests.ray.agent.alone.test_broken_starts import told
from tests.ray.agent.planned import broken
from workergroups.worker_process import starting


@pytest.fixture(scope="module")
def cluster(patient_raylets):
    return patient_raylets


def test_a_process_that_hangs_while_it_starts_is_ended_and_the_launch_tried_again(agent, tmp_path):
    hanging = broken(tmp_path, "hanging", 0, path={"sitecustomize.py": "import time; time.sleep(3600)"})
    words = "in pod", f"{starting.LATE}; its last lines: see raylet.err", "(1 of 6 tries)"
    agent.until(lambda reports: told(reports, "hanging", *words), hanging, seconds=90)
