"""What pools and ranks were used for in the past, as a Prometheus in the Kubernetes cluster has scraped it."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from workergroups.processes.tables import ACTIVITIES, RANK_SECONDS, RankSecondsRow

from ..errors import ClientError, ForbiddenError
from ..objects.names import POOL, read_name
from ..times import duration
from .usage import RankUsage, of_rows

if TYPE_CHECKING:
    from ..api_server.cluster import Cluster

PROMETHEUS = "monitoring/prometheus-operated:9090"
"""The Service that the Prometheus Operator makes, in the namespace whose pods the chart lets in."""
DEVICE_SECONDS = "workergroups_pool_device_seconds_total"
NOT_HELD = "Pending"
_SERVICE = re.compile(r"(?P<namespace>[a-z0-9-]+)/(?P<service>(?:https:)?[a-z0-9-]+:[a-z0-9-]+)")
_HINT = (
    ". If Prometheus is another Service, name it: --prometheus NAMESPACE/SERVICE:PORT; if it is slow, shorten --since"
)
# The PodMonitor of Ray's pods adds this label.
_POOL = "workergroups_dev_pool"
# Series that differ in other labels only are copies: of another scrape job, or of another replica of Prometheus.
_SOURCE = ("instance", "WorkerId")
# Each process of the operator has it, whatever pools there are.
_LEADING = "workergroups_leading"


@dataclass(frozen=True)
class PoolUsage:
    """For how long a pool had devices, and what held them."""

    namespace: str
    pool: str
    states: Mapping[str, float]
    """Seconds of its devices in each state: Pending, Starting, Free, Launching, Ready, Ending, Unknown."""

    @property
    def held(self) -> float:
        """Seconds of devices that pods of the pool had."""
        return sum(seconds for state, seconds in self.states.items() if state != NOT_HELD)


@dataclass(frozen=True)
class PastUsage:
    """What the pools, and the groups on them, have used."""

    pools: Sequence[PoolUsage]
    groups: Sequence[tuple[str, RankUsage]]
    """Each with its namespace."""
    troubles: Sequence[str]
    """What is missing, and why."""


def past_usage(
    cluster: Cluster, seconds: float, pool: str | None = None, *, everywhere: bool = False, prometheus: str = PROMETHEUS
) -> PastUsage:
    """Return what was used until now, in the default namespace or in all: also by what has been deleted.

    Args:
        cluster: The cluster in which Prometheus runs.
        seconds: For how long to look back.
        pool: A pool, as ``NAME`` or ``pool/NAME``; by default all.
        everywhere: Whether to look at all namespaces.
        prometheus: Its Service, as ``NAMESPACE/SERVICE:PORT``.

    Raises:
        ClientError: No Service or pool can have this name, or Prometheus cannot be asked.
        NotFoundError: There is no such Service.
        ForbiddenError: The user may not reach Services through the API server.
    """
    series = _Series(cluster, prometheus, seconds)
    if pool is not None:
        _, pool = read_name(pool, (POOL,))
    wanted = {} if everywhere else {"namespace": cluster.namespace}
    pools = _pools(series, {**wanted, **({"name": pool} if pool else {})})
    troubles = []
    if not series.reach_back():
        from_then = f"{prometheus} has no figures of the operator from {duration(seconds)} ago"
        troubles.append(f"{from_then}: anything that was used before its first figures is missing")
    groups: list[tuple[str, RankUsage]] = []
    try:
        groups = _groups(series, {**wanted, **({_POOL: pool} if pool else {})})
    except ClientError as error:
        if not pools:
            raise
        troubles.append(f"what the ranks did is missing: {error}")
    return PastUsage(pools, groups, troubles)


def _pools(series: _Series, wanted: Mapping[str, str]) -> list[PoolUsage]:
    found: defaultdict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    for labels, spent in series.increase(DEVICE_SECONDS, wanted, ("namespace", "name", "state")):
        found[labels["namespace"], labels["name"]][labels["state"]] = spent
    return [PoolUsage(*key, found[key]) for key in sorted(found)]


def _groups(series: _Series, wanted: Mapping[str, str]) -> list[tuple[str, RankUsage]]:
    found: defaultdict[tuple[str, str], list[RankSecondsRow]] = defaultdict(list)
    by = ("namespace", "group", "activity", "method")
    for labels, spent in series.increase(f"ray_{RANK_SECONDS}_total", wanted, by):
        if labels["activity"] in ACTIVITIES:
            row = RankSecondsRow("", labels["activity"], labels["method"], spent)
            found[labels["namespace"], labels["group"]].append(row)
    return [(namespace, of_rows(group, found[namespace, group])) for namespace, group in sorted(found)]


class _Series:
    """What Prometheus has of the last seconds."""

    def __init__(self, cluster: Cluster, prometheus: str, seconds: float) -> None:
        found = _SERVICE.fullmatch(prometheus)
        if found is None:
            wanted = f"write NAMESPACE/SERVICE:PORT, such as {PROMETHEUS}"
            raise ClientError(f"--prometheus {prometheus!r} names no Service: {wanted}")
        self._cluster, self._name, self._span = cluster, prometheus, f"{seconds:.0f}s"
        self._namespace, self._service = found.group("namespace", "service")

    def increase(
        self, counter: str, wanted: Mapping[str, str], by: Sequence[str]
    ) -> list[tuple[dict[str, str], float]]:
        """Return labels, and by how much a counter with these labels has risen."""
        selector = ",".join(f"{label}={json.dumps(value)}" for label, value in wanted.items())
        risen = f"increase({counter}{{{selector}}}[{self._span}])"
        once = f"max by ({','.join((*by, *_SOURCE))}) ({risen})"
        found = self._ask(f"sum by ({','.join(by)}) ({once}) > 0")
        return [({label: str(labels.get(label, "")) for label in by}, spent) for labels, spent in found]

    def reach_back(self) -> bool:
        """Return whether Prometheus has something from their beginning."""
        return bool(self._ask(f"count(max_over_time({_LEADING}[10m] offset {self._span}))"))

    def _ask(self, query: str) -> list[tuple[Mapping[str, object], float]]:
        """Return the labels and the value of each series of the answer."""
        try:
            answer = self._cluster.ask_service(self._namespace, self._service, "api/v1/query", {"query": query})
            return [({**each["metric"]}, float(each["value"][1])) for each in answer["data"]["result"]]
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            raise ClientError(f"{self._name} answers otherwise than Prometheus does{_HINT}") from error
        except ForbiddenError:
            raise
        except ClientError as error:
            raise type(error)(f"{self._name} was asked through the API server, which says: {error}{_HINT}") from error
