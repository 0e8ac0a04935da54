"""The page on monitoring names each metric and each alert."""

import json
import re
from pathlib import Path

import yaml

from tests.unit.docs.pages import tables
from workergroups.processes.tables import RANK_SECONDS
from workergroups_operator.metrics import Metrics

REPOSITORY = Path(__file__).parents[3]
PAGE = (REPOSITORY / "docs" / "monitoring.md").read_text()
RULES = yaml.safe_load((REPOSITORY / "charts" / "workergroups" / "files" / "rules.yaml").read_text())
DASHBOARD = json.loads((REPOSITORY / "charts" / "workergroups" / "files" / "dashboard.json").read_text())
ALERTS = [rule for group in RULES["groups"] for rule in group["rules"]]


def rows(header):
    return [row for first, of_table in tables(PAGE) if first[0] == header for row in of_table]


def exported():
    metrics = Metrics()
    metrics.is_leading = lambda: True
    families = [each for each in metrics.registry.collect() if each.name.startswith("workergroups_")]
    return {f"{each.name}_total" if each.type == "counter" else each.name: each.type for each in families}


def test_each_metric_has_its_row():
    assert {row[0].strip("`"): row[1] for row in rows("metric") if "process" not in row[0]} == exported()


def test_each_alert_has_its_row_and_its_severity():
    assert [row[0] for row in rows("alert")] == [rule["alert"] for rule in ALERTS]
    assert {rule["labels"]["severity"] for rule in ALERTS} == {"critical", "warning", "info"}


def test_alerts_and_the_dashboard_use_metrics_that_exist():
    names = exported()
    queries = [target["expr"] for panel in DASHBOARD["panels"] for target in panel.get("targets", ())]
    assert len(queries) > 10
    for query in (*(rule["expr"] for rule in ALERTS), *queries):
        for name in re.findall(r"(?:ray_)?workergroups_[a-z_]+", query):
            assert name in {*names, f"ray_{RANK_SECONDS}_total"} or re.sub("_(count|bucket)$", "", name) in names
