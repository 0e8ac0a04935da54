"""What pools and ranks were used for in the past, as a Prometheus in the Kubernetes cluster has scraped it."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from workergroups.processes.tables import ACTIVITIES, RANK_SECONDS, RankSecondsRow

from ..errors import ClientError, ForbiddenError
from .usage import RankUsage, of_rows

if TYPE_CHECKING:
    from ..api_server.cluster import Cluster

PROMETHEUS = "monitoring/prometheus-operated:9090"
"""The Service that the Prometheus Operator makes, in the namespace whose pods the chart lets in."""
DEVICE_SECONDS = "workergroups_pool_device_seconds_total"
NOT_HELD = "Pending"
_SERVICE = re.compile(r"(?P<namespace>[a-z0-9-]+)/(?P<service>(?:https:)?[a-z0-9-]+:[a-z0-9-]+)")
_HINT = ". If Prometheus is another Service, name it: --prometheus NAMESPACE/SERVICE:PORT"
# The PodMonitor of Ray's pods adds this label.
_POOL = "workergroups_dev_pool"


@dataclass(frozen=True)
class PoolUsage:
    """For how long a pool had devices, and what held them."""

    namespace: str
    pool: str
    states: Mapping[str, float]
    """Seconds of its devices in each state: Pending, Starting, Free, Launching, Ready, Unknown."""

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


def past_usage(
    cluster: Cluster, seconds: float, pool: str | None = None, *, everywhere: bool = False, prometheus: str = PROMETHEUS
) -> PastUsage:
    """Return what was used until now, in the default namespace or in all: also by what has been deleted.

    Args:
        cluster: The cluster in which Prometheus runs.
        seconds: For how long to look back.
        pool: A pool; by default all.
        everywhere: Whether to look at all namespaces.
        prometheus: Its Service, as ``NAMESPACE/SERVICE:PORT``.

    Raises:
        ClientError: The Service is not named like this, or Prometheus cannot be asked.
        NotFoundError: There is no such Service.
        ForbiddenError: The user may not reach Services through the API server.
    """
    series = _Series(cluster, prometheus, seconds)
    wanted = {} if everywhere else {"namespace": cluster.namespace}
    of_pool = {"name": pool} if pool else {}
    on_pool = {_POOL: pool} if pool else {}
    pools: defaultdict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    for labels, spent in series.increase(DEVICE_SECONDS, {**wanted, **of_pool}, ("namespace", "name", "state")):
        pools[labels["namespace"], labels["name"]][labels["state"]] = spent
    groups: defaultdict[tuple[str, str], list[RankSecondsRow]] = defaultdict(list)
    by = ("namespace", "group", "activity", "method")
    for labels, spent in series.increase(f"ray_{RANK_SECONDS}_total", {**wanted, **on_pool}, by):
        if labels["activity"] in ACTIVITIES:
            row = RankSecondsRow("", labels["activity"], labels["method"], spent)
            groups[labels["namespace"], labels["group"]].append(row)
    return PastUsage(
        [PoolUsage(*key, pools[key]) for key in sorted(pools)],
        [(namespace, of_rows(group, groups[namespace, group])) for namespace, group in sorted(groups)],
    )


class _Series:
    """What Prometheus has of the last seconds."""

    def __init__(self, cluster: Cluster, prometheus: str, seconds: float) -> None:
        found = _SERVICE.fullmatch(prometheus)
        if found is None:
            raise ClientError(f"{prometheus!r} names no Service: write NAMESPACE/SERVICE:PORT, such as {PROMETHEUS}")
        self._cluster, self._name, self._seconds = cluster, prometheus, seconds
        self._namespace, self._service = found.group("namespace", "service")

    def increase(
        self, counter: str, wanted: Mapping[str, str], by: Sequence[str]
    ) -> Iterator[tuple[dict[str, str], float]]:
        """Yield labels, and by how much a counter with these labels has risen."""
        selector = ",".join(f"{label}={json.dumps(value)}" for label, value in wanted.items())
        query = f"sum by ({','.join(by)}) (increase({counter}{{{selector}}}[{self._seconds:.0f}s])) > 0"
        try:
            answer = self._cluster.ask_service(self._namespace, self._service, "api/v1/query", {"query": query})
            for each in answer["data"]["result"]:
                labels = {label: str(each["metric"].get(label, "")) for label in by}
                yield labels, float(each["value"][1])
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            raise ClientError(f"{self._name} answers otherwise than Prometheus does{_HINT}") from error
        except (ForbiddenError, GeneratorExit):
            raise
        except ClientError as error:
            raise type(error)(f"{self._name} was asked through the API server, which says: {error}{_HINT}") from error
