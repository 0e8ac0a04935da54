"""The Grafana dashboard in the chart, built with Grafana's own library, which knows the schema."""

import json
from collections.abc import Sequence
from typing import Any

from grafana_foundation_sdk.builders import common, dashboard, prometheus, stat, statetimeline, table, timeseries
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.common import StackingMode
from grafana_foundation_sdk.models.dashboard import DataSourceRef, VariableRefresh

_SOURCE = DataSourceRef(type_val="prometheus", uid="${datasource}")
_CHOSEN = 'namespace=~"$namespace"'
_PENDING = "Suspended|Idle|Released|PoolSuspended|Queued|Evicted|PoolQueued"
_ALL, _HALF, _QUARTER = 24, 12, 6

Row = tuple[str, Sequence[Builder[Any]]]


def build() -> str:
    """Return the dashboard as JSON."""
    built = (
        dashboard.Dashboard("WorkerGroups")
        .uid("workergroups")
        .description(
            "Pools and groups, what failed, and how the operator works. docs/monitoring.md explains the metrics."
        )
        .tags(["workergroups", "ray"])
        .readonly()
        .refresh("30s")
        .time("now-6h", "now")
        .with_variable(dashboard.DatasourceVariable("datasource").label("Prometheus").type("prometheus"))
        .with_variable(
            dashboard.QueryVariable("namespace")
            .label("Namespace")
            .datasource(_SOURCE)
            .query("label_values(workergroups_ready, namespace)")
            .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
            .multi(True)
            .include_all(True)
            .all_value(".*")
        )
    )
    for title, panels in (_now(), _seconds(), _failures(), _operator()):
        built = built.with_row(dashboard.Row(title))
        for panel in panels:
            built = built.with_panel(panel)
    return json.dumps(built.build(), cls=JSONEncoder, indent=2, sort_keys=True)


def _now() -> Row:
    pools, groups = f'{_CHOSEN}, kind="ResourcePool"', f'{_CHOSEN}, kind="WorkerGroup"'
    waiting = (
        f"workergroups_ready_reason{{{_CHOSEN}}} "
        f'unless on (kind, namespace, name) workergroups_ready_reason{{status="True"}} '
        f'unless on (kind, namespace, name) workergroups_ready_reason{{reason=~"{_PENDING}"}}'
    )
    devices = f"sum by (state) (workergroups_pool_devices{{{_CHOSEN}}})"
    spent = f'workergroups_pool_device_seconds_total{{{_CHOSEN}, state!="Pending"}}'
    hours = f"sum by (namespace) (increase({spent}[24h])) / 3600"
    idle = f'workergroups_pool_devices{{{_CHOSEN}, state=~"Starting|Free|Launching|Ending"}}'
    return "Now", (
        _number(
            "Pools that are ready", f"sum(workergroups_ready{{{pools}}}) or vector(0)", "Of those in the namespace"
        ),
        _number("Groups that are ready", f"sum(workergroups_ready{{{groups}}}) or vector(0)", "All ranks exist"),
        _number("Devices of pools", f"sum(workergroups_pool_devices{{{_CHOSEN}}}) or vector(0)", "Asked for"),
        _number("Devices that are held, and not used", f"sum({idle}) or vector(0)", "Starting, free or launching"),
        _sized(
            statetimeline.Panel()
            .title("Ready")
            .description("1 while the condition Ready is True")
            .with_target(_query(f"workergroups_ready{{{_CHOSEN}}}", "{{kind}} {{namespace}}/{{name}}")),
            _ALL,
            10,
        ),
        _stacked("Devices, by who holds them", devices, "{{state}}"),
        _stacked("Hours of devices in a day, by namespace", hours, "{{namespace}}"),
        _sized(
            table.Panel()
            .title("Not ready, and why")
            .description("Without what somebody has suspended, and what waits in a queue")
            .with_target(_query(waiting, "").instant().format("table")),  # type: ignore[arg-type]  # a literal
            _ALL,
            8,
        ),
    )


def _seconds() -> Row:
    seconds = f"rate(ray_workergroups_rank_seconds_total{{{_CHOSEN}}}[1m])"
    busy = f'rate(ray_workergroups_rank_seconds_total{{{_CHOSEN}, activity!="Idle"}}[1m])'
    return "What ranks do", (
        _stacked("Ranks, by what they do", f"sum by (activity) ({seconds})", "{{activity}}"),
        _stacked(
            "Ranks, by the method that they run",
            f"topk(10, sum by (namespace, group, method) ({busy}))",
            "{{namespace}}/{{group}} {{method}}",
        ),
    )


def _failures() -> Row:
    return "Failures", (
        _curve(
            "Restarts of groups in an hour",
            f"increase(workergroups_group_restarts_total{{{_CHOSEN}}}[1h]) > 0",
            "{{namespace}}/{{name}}",
        ),
        _curve(
            "Ranks that failed in an hour, by reason",
            f"sum by (reason) (increase(workergroups_rank_failures_total{{{_CHOSEN}}}[1h]))",
            "{{reason}}",
        ),
        _curve(
            "Age of the oldest call",
            f"time() - workergroups_group_oldest_call_timestamp_seconds{{{_CHOSEN}}}",
            "{{namespace}}/{{name}}",
            "s",
        ),
        _curve(
            "Ranks and nodes that are missing",
            f"workergroups_size{{{_CHOSEN}}} - workergroups_ready_size{{{_CHOSEN}}} > 0",
            "{{kind}} {{namespace}}/{{name}}",
        ),
    )


def _operator() -> Row:
    duration = "sum by (le) (rate(workergroups_reconcile_seconds_bucket[5m]))"
    return "Operator", (
        _curve("Which pod serves", "workergroups_leading", "{{pod}} {{instance}}"),
        _curve(
            "Reconciles in a second", "sum by (result) (rate(workergroups_reconcile_seconds_count[5m]))", "{{result}}"
        ),
        _curve("Duration of 95 % of reconciles", f"histogram_quantile(0.95, {duration})", "at most", "s"),
        _curve(
            "Writes of statuses in a second",
            "sum by (result) (rate(workergroups_status_writes_total[5m]))",
            "{{result}}",
        ),
        _curve(
            "Memory",
            "process_resident_memory_bytes and on (instance) workergroups_leading",
            "{{pod}} {{instance}}",
            "bytes",
        ),
        _curve(
            "CPU",
            "rate(process_cpu_seconds_total[5m]) and on (instance) workergroups_leading",
            "{{pod}} {{instance}}",
        ),
    )


def _number(title: str, query: str, about: str) -> Builder[Any]:
    return _sized(stat.Panel().title(title).description(about).with_target(_query(query, "")), _QUARTER, 4)


def _stacked(title: str, query: str, legend: str) -> Builder[Any]:
    panel = timeseries.Panel().title(title).min(0).fill_opacity(60)
    stacked = panel.stacking(common.StackingConfig().mode(StackingMode.NORMAL))
    return _sized(stacked.with_target(_query(query, legend)), _ALL, 8)


def _curve(title: str, query: str, legend: str, unit: str = "short") -> Builder[Any]:
    return _sized(timeseries.Panel().title(title).unit(unit).min(0).with_target(_query(query, legend)), _HALF, 8)


def _sized(panel: Any, width: int, height: int) -> Builder[Any]:
    sized: Builder[Any] = panel.datasource(_SOURCE).span(width).height(height)
    return sized


def _query(expression: str, legend: str) -> prometheus.Dataquery:
    return prometheus.Dataquery().expr(expression).legend_format(legend)
