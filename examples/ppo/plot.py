"""Draws the rewards that train.py has written: python plot.py metrics.csv ppo.svg (needs matplotlib)."""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import matplotlib

matplotlib.use("svg")
# The same numbers give the same file.
matplotlib.rcParams["svg.hashsalt"] = "workergroups"

import matplotlib.pyplot as plt  # noqa: E402 - the backend is chosen before


def plot(metrics: Path, picture: Path) -> None:
    """The mean reward of each step, and how sure the policy is."""
    with metrics.open() as file:
        steps = list(csv.DictReader(file))
    figure, axes = plt.subplots(figsize=(7, 3.5), layout="constrained")
    numbers = [int(step["step"]) for step in steps]
    axes.plot(numbers, [float(step["reward"]) for step in steps], label="reward (1: all tokens right)")
    axes.plot(
        numbers, [float(step["actor/entropy"]) for step in steps], label="entropy of the policy (nats)", alpha=0.5
    )
    axes.set_xlabel(f"step ({steps[-1]['seconds']} s in all)")
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(picture, metadata={"Date": None})


if __name__ == "__main__":
    plot(Path(sys.argv[1]), Path(sys.argv[2]))
