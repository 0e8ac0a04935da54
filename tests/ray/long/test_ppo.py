"""examples/ppo learns, on two pools with two roles each."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path
from statistics import mean

PROGRAM = Path(__file__).parents[3] / "examples" / "ppo" / "train.py"
STEPS = 30


def test_the_ppo_example_learns_within_two_minutes(ray_environment, rays, tmp_path):
    rays.stop()
    metrics = tmp_path / "metrics.csv"
    command = [sys.executable, PROGRAM, f"--steps={STEPS}", f"--metrics={metrics}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    with metrics.open() as file:
        steps = list(csv.DictReader(file))
    assert [int(step["step"]) for step in steps] == list(range(STEPS))
    rewards = [float(step["reward"]) for step in steps]
    assert mean(rewards[:3]) < 0.2
    assert mean(rewards[-3:]) > 0.4
    # It does not only write more: it is surer of what it writes, and further from where it began.
    assert float(steps[-1]["actor/entropy"]) < 0.5 * float(steps[0]["actor/entropy"])
    assert float(steps[-1]["kl"]) > float(steps[0]["kl"])
