"""Report what ranks and devices are used for, from Ray's metrics: ``python -m workergroups.processes.usage``."""

from __future__ import annotations

import sys
import urllib.request
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from workergroups.answering import give
from workergroups.naming import RankName, latest_births
from workergroups.ray_private import records
from workergroups.ray_private.gcs import Gcs, address_of_this_node
from workergroups.ray_private.records import ActorRecord, NodeRecord

from .tables import RANK_SECONDS, DeviceRow, RankSecondsRow, UsageTables

_SECONDS = f"ray_{RANK_SECONDS}_total"
_UTILIZATION, _USED, _FREE = "ray_node_gpus_utilization", "ray_node_gram_used", "ray_node_gram_available"
_MIB = 1 << 20
_ANSWER_SECONDS = 10.0
_AT_ONCE = 64
# Pods reach each other without the proxy that the pool's environment may name.
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def answer() -> UsageTables:
    """Return what all nodes that are alive report of their ranks and devices."""
    gcs = Gcs.connect(address_of_this_node())
    nodes = [node for node in map(records.node, gcs.nodes()) if node.is_alive]
    names = rank_names(map(records.actor, gcs.actors("ALIVE")))
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        found = [(node.pod, *samples) for node, samples in zip(nodes, threads.map(samples_of, nodes), strict=True)]
    return UsageTables(
        tuple(seconds_rows(names, (sample for _, samples, _ in found for sample in samples))),
        tuple(row for pod, samples, _ in found for row in device_rows(pod, samples)),
        tuple(f"pod {pod} has no metrics: {why}" for pod, _, why in found if why),
    )


def rank_names(actors: Iterable[ActorRecord]) -> dict[str, RankName]:
    """Return the ranks of each group's newest incarnation by the ids of their processes."""
    found: dict[tuple[str, int], dict[RankName, str]] = defaultdict(dict)
    for actor in actors:
        if name := RankName.parse(actor.name):
            found[name.uid, name.incarnation][name] = actor.worker_id
    newest = {uid: workers for (uid, _), workers in sorted(found.items())}
    return {workers[name]: name for workers in newest.values() for name in latest_births(workers).values()}


def seconds_rows(names: Mapping[str, RankName], samples: Iterable[Sample]) -> Iterator[RankSecondsRow]:
    """Yield what the ranks spent their seconds on; of one that does not count them, a row without an activity."""
    of_worker = defaultdict(list)
    for sample in samples:
        if sample.name == _SECONDS:
            of_worker[sample.labels.get("WorkerId", "")].append(sample)
    for worker, name in names.items():
        for sample in of_worker[worker]:
            yield RankSecondsRow(str(name), sample.labels["activity"], sample.labels["method"], sample.value)
        if not of_worker[worker]:
            yield RankSecondsRow(str(name), "", "", 0.0)


def device_rows(pod: str, samples: Sequence[Sample]) -> Iterator[DeviceRow]:
    """Yield the devices of a node; what the driver does not report, Ray exports as -1 or not at all."""
    values = {
        (sample.name, sample.labels["GpuIndex"]): (sample.value, sample.labels.get("GpuDeviceName", ""))
        for sample in samples
        if "GpuIndex" in sample.labels
    }
    for (metric, index), (percent, product) in values.items():
        if metric == _UTILIZATION:
            used, free = (values[each, index][0] * _MIB if (each, index) in values else None for each in (_USED, _FREE))
            total = None if used is None or free is None else used + free
            yield DeviceRow(pod, index, product, percent / 100 if percent >= 0 else None, used, total)


def samples_of(node: NodeRecord) -> tuple[list[Sample], str]:
    """Return the metrics of a node, or why there are none."""
    host = f"[{node.address}]" if ":" in node.address else node.address
    try:
        with _DIRECT.open(f"http://{host}:{node.metrics_port}/metrics", timeout=_ANSWER_SECONDS) as page:
            families = text_string_to_metric_families(page.read().decode())
            return [sample for family in families for sample in family.samples], ""
    except (OSError, ValueError, HTTPException) as error:
        return [], f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    give(answer, *sys.argv[1:])
