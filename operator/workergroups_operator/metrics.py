"""Metrics for Prometheus: how pools and groups are, what failed, and how the operator works.

Gauges of objects are those of the last reconcile: a scrape costs the API server nothing. What counts for as long as the
object lives, such as restarts, comes from its status, and so survives a restart of the operator.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from workergroups_api.group_status import WorkerGroupStatus
from workergroups_api.manifest import RESOURCE_POOL, WORKER_GROUP
from workergroups_api.pool_status import ResourcePoolStatus
from workergroups_api.vocabulary import GROUP_CONDITIONS, POOL_CONDITIONS
from workergroups_operator.device_seconds import DeviceSeconds
from workergroups_operator.membership import ClusterKey
from workergroups_operator.status.conclusion import StatusUpdate
from workergroups_operator.status.link_seconds import link_seconds

_OBJECT = ("kind", "namespace", "name")
# Seconds; a reconcile of a small cluster takes some hundredths.
_BUCKETS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
# Seconds; conditions tell whole ones.
_LINK_BUCKETS = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0)

Samples = Iterable[tuple[tuple[str, ...], float]]


class Figures(NamedTuple):
    """What the metrics say of a pool or group."""

    object: tuple[str, str, str]
    status: str
    reason: str
    # When `Ready` got this status, in seconds since the epoch.
    since: float
    # Nodes or ranks, and those that are ready; None while that is unknown.
    wanted: int | None
    ready: int | None
    devices: Mapping[str, int] | None
    restarts: int
    oldest_call: float | None

    @classmethod
    def of(cls, update: StatusUpdate) -> "Figures":
        """Return the figures of an object as its status will be."""
        after, metadata, ready = update.after, update.metadata, update.ready
        wanted = ready_count = restarts = None
        if isinstance(after, ResourcePoolStatus):
            wanted, ready_count = after.nodes, after.ready_nodes
        elif isinstance(after, WorkerGroupStatus):
            wanted, ready_count = after.world_size, after.ready_ranks
            restarts = after.restarts.count if after.restarts else 0
        return cls(
            (update.kind.kind, str(metadata["namespace"]), str(metadata["name"])),
            ready.status,
            ready.reason,
            ready.last_transition_time.timestamp(),
            wanted,
            ready_count,
            update.devices,
            restarts or 0,
            update.oldest_call.timestamp() if update.oldest_call else None,
        )


class Metrics(Collector):
    """All metrics of this process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        # Whether this process serves, and no other one can.
        self.is_leading: Callable[[], bool] = lambda: False
        self._figures: dict[ClusterKey, tuple[Figures, ...]] = {}
        # What may exist of each cluster, also while it cannot be read: its counters go on.
        self._objects: dict[ClusterKey, set[tuple[str, str, str]]] = {}
        self._device_seconds = DeviceSeconds()
        # For how long each agent has not renewed its Lease, by namespace and cluster.
        self.silences: Callable[[], Mapping[ClusterKey, float]] = dict
        self.registry.register(self)
        ProcessCollector(registry=self.registry)
        self._failures = Counter(
            "workergroups_rank_failures",
            "Ranks that failed since the operator started, by the reason in the group's status.",
            ("namespace", "name", "reason"),
            registry=self.registry,
        )
        self._writes = Counter(
            "workergroups_status_writes",
            "Writes of statuses since the operator started; result is taken, refused or failed.",
            ("result",),
            registry=self.registry,
        )
        self._reconciles = Histogram(
            "workergroups_reconcile_seconds",
            "Duration of a reconcile of one Ray cluster; result is done or failed.",
            ("result",),
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self._waits = Histogram(
            "workergroups_reconcile_wait_seconds",
            "How long a reconcile that was due waited for those of other clusters.",
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self._links = Histogram(
            "workergroups_condition_seconds",
            "How long each condition took to become True when an object became ready; Ready is all of them.",
            ("kind", "condition"),
            buckets=_LINK_BUCKETS,
            registry=self.registry,
        )
        # Prometheus counts nothing of a counter's first value.
        for kind, conditions in ((RESOURCE_POOL, POOL_CONDITIONS), (WORKER_GROUP, GROUP_CONDITIONS)):
            for condition in conditions:
                self._links.labels(kind.kind, condition)

    def serve(self, port: int) -> None:
        """Answer scrapes, outside the event loop."""
        start_http_server(port, registry=self.registry)

    def note(self, key: ClusterKey, updates: Sequence[StatusUpdate], *, are_all: bool = True) -> None:
        """Take note of the present statuses of a cluster's objects; forget the others, if these are all."""
        self._figures[key] = tuple(map(Figures.of, updates))
        devices = {figures.object: figures.devices for figures in self._figures[key]}
        before = self._objects.get(key, set())
        self._objects[key] = set(devices) if are_all else before | set(devices)
        for kind, namespace, name in self._objects[key]:
            if kind == RESOURCE_POOL.kind:
                self._device_seconds.note(namespace, name, devices.get((kind, namespace, name)))
        self._forget(before - self._objects[key])

    def forget(self, key: ClusterKey) -> None:
        """Forget a cluster that is gone."""
        self._figures.pop(key, None)
        self._forget(self._objects.pop(key, set()))

    def _forget(self, gone: set[tuple[str, str, str]]) -> None:
        if not gone:
            return
        # What was deleted and created again may be of another cluster by now.
        for kind, namespace, name in gone.difference(*self._objects.values()):
            if kind == WORKER_GROUP.kind:
                self._failures.remove_by_labels({"namespace": namespace, "name": name})
            else:
                self._device_seconds.forget(namespace, name)

    def written(self, update: StatusUpdate, result: str) -> None:
        """Count the write of a status; what is new in it counts once it is taken."""
        self._writes.labels(result).inc()
        if result == "taken":
            for condition, seconds in link_seconds(update):
                self._links.labels(update.kind.kind, condition).observe(seconds)
            for failure in update.new_failures:
                self._failures.labels(update.metadata["namespace"], update.metadata["name"], failure.reason).inc()

    def reconciled(self, seconds: float, *, has_failed: bool) -> None:
        """Take note of a reconcile."""
        self._reconciles.labels("failed" if has_failed else "done").observe(seconds)

    def waited(self, seconds: float) -> None:
        """Take note of how long a reconcile waited for others."""
        self._waits.observe(seconds)

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics of all objects. A scrape calls this in its thread."""
        is_leading = self.is_leading()
        yield _gauge("leading", "1 in the process that serves, 0 in one that waits.", (), [((), is_leading)])
        if not is_leading:
            return
        # A pool that moves to another cluster may be in both for a moment.
        found = {figures.object: figures for of_cluster in list(self._figures.values()) for figures in of_cluster}
        known = list(found.values())
        yield _gauge("clusters", "Ray clusters that have pools or groups.", (), [((), len(self._figures))])
        yield _gauge(
            "agent_silence_seconds",
            "For how long the agent of a Ray cluster has not renewed its Lease, which it does every 2.5 s.",
            ("namespace", "cluster"),
            [((key.namespace, key.name), seconds) for key, seconds in self.silences().items()],
        )
        yield _gauge(
            "ready",
            "1 if the condition Ready is True, else 0.",
            _OBJECT,
            [(f.object, f.status == "True") for f in known],
        )
        yield _gauge(
            "ready_reason",
            "1 for the present status and reason of the condition Ready.",
            (*_OBJECT, "status", "reason"),
            [((*f.object, f.status, f.reason), 1) for f in known],
        )
        yield _gauge(
            "ready_transition_timestamp_seconds",
            "When the condition Ready got its present status.",
            _OBJECT,
            [(f.object, f.since) for f in known],
        )
        yield _gauge(
            "size", "Nodes of a pool, or ranks of a group, that there should be.", _OBJECT, _known(known, "wanted")
        )
        yield _gauge(
            "ready_size", "Nodes or ranks that are ready; absent while unknown.", _OBJECT, _known(known, "ready")
        )
        yield _gauge(
            "pool_devices",
            "Devices of the pool's nodes by what holds them; none on CPUs.",
            ("namespace", "name", "state"),
            [((*f.object[1:], state), number) for f in known for state, number in (f.devices or {}).items()],
        )
        yield _gauge(
            "group_oldest_call_timestamp_seconds",
            "When the call began that has been in flight for longest; absent if none has been for a minute.",
            ("namespace", "name"),
            [(f.object[1:], f.oldest_call) for f in known if f.oldest_call is not None],
        )
        yield _counter(
            "pool_device_seconds",
            "Seconds of the pool's devices by what held them, since this operator serves; none on CPUs.",
            ("namespace", "name", "state"),
            self._device_seconds.spent(),
        )
        yield _counter(
            "group_restarts",
            "Restarts of a group after failures, since it exists.",
            ("namespace", "name"),
            [(f.object[1:], f.restarts) for f in known if f.object[0] == WORKER_GROUP.kind],
        )


def _known(figures: Sequence[Figures], field: str) -> list[tuple[tuple[str, ...], float]]:
    return [(each.object, number) for each in figures if (number := getattr(each, field)) is not None]


def _gauge(name: str, text: str, labels: tuple[str, ...], samples: Samples) -> Metric:
    return _family(GaugeMetricFamily(f"workergroups_{name}", text, labels=labels), samples)


def _counter(name: str, text: str, labels: tuple[str, ...], samples: Samples) -> Metric:
    return _family(CounterMetricFamily(f"workergroups_{name}", text, labels=labels), samples)


def _family(family: GaugeMetricFamily | CounterMetricFamily, samples: Samples) -> Metric:
    for values, number in samples:
        family.add_metric(values, number)
    return family
