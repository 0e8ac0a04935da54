"""Draw the results as curves."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot
from matplotlib.ticker import LogLocator

from .contenders import NAMES
from .points import Point

_COLOURS = {"raw": "#8c8c8c", "ours": "#1f77b4", "verl": "#d95f02"}


def draw(points: Sequence[Point], path: Path) -> None:
    """Draw three charts with logarithmic axes: calls and creations by ranks, batches by payload."""
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "workergroups", "font.size": 9})
    figure, axes = pyplot.subplots(1, 3, figsize=(11, 3.4), layout="constrained")
    for axis, comparison, over in zip(
        axes,
        ("no-op call", "batch there and back", "group creation"),
        ("ranks", "payload_mib", "ranks"),
        strict=True,
    ):
        chosen = [point for point in points if point.comparison == comparison and (over == "ranks" or point.ranks == 4)]
        for name, label in NAMES.items():
            line = sorted((getattr(point, over), point.value) for point in chosen if point.contender == name)
            axis.plot(*zip(*line, strict=True), marker="o", color=_COLOURS[name], label=label)
        places = sorted({getattr(point, over) for point in chosen})
        axis.set(xscale="log", yscale="log", xticks=places, xticklabels=[str(place) for place in places])
        axis.set(title=comparison, xlabel="ranks" if over == "ranks" else "payload in MiB, 4 ranks", ylabel="seconds")
        axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.yaxis.set_major_formatter("{x:g}")
        axis.minorticks_off()
        axis.grid(alpha=0.3)
    axes[0].legend()
    figure.savefig(path, metadata={"Date": None})
