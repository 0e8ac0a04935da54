"""Draw the rewards that train.py has written: python plot.py metrics.csv ppo.svg (needs matplotlib)."""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot


def plot(metrics: Path, picture: Path) -> None:
    """Return the mean reward of each step."""
    with metrics.open() as file:
        steps = list(csv.DictReader(file))
    # So that the same numbers give the same file.
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "workergroups"})
    figure, axis = pyplot.subplots(figsize=(7, 3), layout="constrained")
    axis.plot([int(step["step"]) for step in steps], [float(step["reward"]) for step in steps])
    axis.set(xlabel="step", ylabel="mean reward", xlim=(0, None), ylim=(0, 1.03))
    axis.grid(alpha=0.3)
    figure.savefig(picture, metadata={"Date": None})


if __name__ == "__main__":
    plot(Path(sys.argv[1]), Path(sys.argv[2]))
