"""Draw the curves of the dashboard in the chart: `python -m bench.panels http://127.0.0.1:9090 docs/dashboard.svg`.

It asks a Prometheus each query, and draws the answers as Grafana would: Grafana itself could not be had here.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import time
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot

DASHBOARD = Path(__file__).parents[1] / "charts" / "workergroups" / "files" / "dashboard.json"
COLUMNS, POINTS, MOST = 3, 240, 8


def answers(url: str, query: str, minutes: float) -> list[dict[str, Any]]:
    """Return the series of a query over the last minutes."""
    now = time.time()
    asked = {"query": query, "start": now - minutes * 60, "end": now, "step": minutes * 60 / POINTS}
    with urllib.request.urlopen(f"{url}/api/v1/query_range?{urllib.parse.urlencode(asked)}", timeout=30) as answer:
        found: list[dict[str, Any]] = json.load(answer)["data"]["result"]
    return found


def legend(form: str, labels: Mapping[str, str]) -> str:
    """Fill a legend in, as Grafana does."""
    return re.sub(r"\{\{\s*(\w+)\s*\}\}", lambda found: labels.get(found[1], ""), form).strip()


def draw(panels: Sequence[Mapping[str, Any]], url: str, minutes: float, path: Path) -> None:
    """Draw a chart for each panel with curves."""
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "workergroups", "font.size": 8})
    rows = math.ceil(len(panels) / COLUMNS)
    figure, axes = pyplot.subplots(rows, COLUMNS, figsize=(15, 3 * rows), layout="constrained", squeeze=False)
    for axis in axes.flat[len(panels) :]:
        axis.remove()
    for axis, panel in zip(axes.flat, panels, strict=False):
        axis.set_title(panel["title"])
        axis.grid(alpha=0.3)
        (target,) = panel["targets"]
        found = answers(url, target["expr"].replace("$namespace", ".*"), minutes)
        is_stacked = panel["fieldConfig"]["defaults"].get("custom", {}).get("stacking", {}).get("mode") == "normal"
        series = found if is_stacked else found[:MOST]
        if len(series) < len(found):
            axis.set_title(f"{panel['title']} ({len(series)} of {len(found)})")
        names = [legend(target.get("legendFormat", ""), each["metric"]) or panel["title"] for each in series]
        points = [{float(at): float(value) for at, value in each["values"]} for each in series]
        times = sorted({at for each in points for at in each})
        ago = [(at - time.time()) / 60 for at in times]
        values = [[each.get(at, math.nan) for at in times] for each in points]
        if is_stacked and times:
            axis.stackplot(ago, [[0.0 if math.isnan(each) else each for each in line] for line in values], labels=names)
        else:
            for name, line in zip(names, values, strict=True):
                axis.step(ago, line, where="post", label=name, linewidth=1)
        axis.set_xlim(-minutes, 0)
        axis.set_ylim(bottom=0)
        axis.legend(fontsize=6, loc="upper left") if series else axis.text(0.4, 0.5, "none", transform=axis.transAxes)
    figure.supxlabel("minutes")
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    """Draw all of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("path", type=Path)
    parser.add_argument("--minutes", type=float, default=30)
    arguments = parser.parse_args()
    panels = [each for each in json.loads(DASHBOARD.read_text())["panels"] if each["type"] == "timeseries"]
    draw(panels, arguments.url, arguments.minutes, arguments.path)


if __name__ == "__main__":
    main()
