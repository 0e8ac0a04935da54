"""Report what ranks and devices are used for, from Ray's metrics: ``python -m workergroups.processes.usage``."""

from __future__ import annotations

import multiprocessing
import sys
import time
import urllib.request
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from http.client import HTTPException
from multiprocessing.pool import ThreadPool

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
_ALIVE = "ALIVE"
_WANTED = (_SECONDS, _UTILIZATION, _USED, _FREE)
_OF_NODE = "ray_node_"
"""How the metrics begin that Ray's agent on a node measures itself, such as those of devices."""
_MIB = 1 << 20
_DEADLINE_SECONDS = 25.0
"""The command line gives up after 40 s, which include the start of this program."""
_ANSWER_SECONDS = 10.0
_REFILL_SECONDS = 7.0
"""Ray's agent measures every five seconds."""
_LOOK_SECONDS = 1.0
_AT_ONCE = 64
# Pods reach each other without the proxy that the pool's environment may name.
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def answer() -> UsageTables:
    """Return what all nodes that are alive report of their ranks and devices."""
    until = time.monotonic() + _DEADLINE_SECONDS
    gcs = Gcs.connect(address_of_this_node())
    nodes = [node for node in map(records.node, gcs.nodes()) if node.is_alive]
    # An actor whose constructor returns meanwhile is in two of these answers; its last state counts.
    workers = rank_workers(
        records.actor(raw) for state in (*records.NOT_ALIVE_YET, _ALIVE) for raw in gcs.actors(state)
    )
    names = {worker: name for name, worker in workers.items() if worker}
    found = [(node.pod, *answered) for node, answered in zip(nodes, samples_of_each(nodes, until), strict=True)]
    return UsageTables(
        tuple(seconds_rows(names, (sample for _, samples, _ in found for sample in samples))),
        tuple(str(name) for name, worker in workers.items() if not worker),
        tuple(row for pod, samples, _ in found for row in device_rows(pod, samples)),
        tuple(f"pod {pod} {lack}" for pod, _, lack in found if lack),
    )


def rank_workers(actors: Iterable[ActorRecord]) -> dict[RankName, str]:
    """Return the ranks of each group's newest incarnation with the ids of their processes.

    The id of a rank that is being created is empty.
    """
    found: dict[tuple[str, int], dict[RankName, str]] = defaultdict(dict)
    for actor in actors:
        if name := RankName.parse(actor.name):
            found[name.uid, name.incarnation][name] = actor.worker_id if actor.state == _ALIVE else ""
    newest = {uid: workers for (uid, _), workers in sorted(found.items())}
    return {name: workers[name] for workers in newest.values() for name in latest_births(workers).values()}


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


def samples_of_each(nodes: Sequence[NodeRecord], until: float) -> list[tuple[list[Sample], str]]:
    """Return for each node what `samples_of` does; at ``until``, by the monotonic clock, stop waiting for answers."""
    # A node that hangs does not keep the program from ending: the threads of this pool are daemons.
    with ThreadPool(_AT_ONCE) as threads:
        asked = [threads.apply_async(samples_of, (node,)) for node in nodes]
        found = []
        for each in asked:
            try:
                found.append(each.get(max(0.0, until - time.monotonic())))
            except multiprocessing.TimeoutError:
                found.append(([], f"has no metrics: it did not answer within {_DEADLINE_SECONDS:.0f} s"))
        return found


def samples_of(node: NodeRecord) -> tuple[list[Sample], str]:
    """Return the metrics of a node, and what it lacks and why: nothing if the text is empty.

    In Ray 2.52, each reading of the page clears what the node's agent has measured, until it measures again.
    """
    last = time.monotonic() + _REFILL_SECONDS
    try:
        lines = _page(node)
        while not (is_whole := any(line.startswith(_OF_NODE) for line in lines)) and time.monotonic() < last:
            time.sleep(_LOOK_SECONDS)
            lines = _page(node)
        # The parser takes seconds for all that a large node reports.
        wanted = "\n".join(line for line in lines if line.startswith(_WANTED))
        found = [sample for family in text_string_to_metric_families(wanted) for sample in family.samples]
    except (OSError, ValueError, HTTPException) as error:
        return [], f"has no metrics: {type(error).__name__}: {error}"
    return (
        found,
        "" if is_whole else f"has no metrics of devices: Ray's agent measured nothing in {_REFILL_SECONDS:.0f} s",
    )


def _page(node: NodeRecord) -> list[str]:
    host = f"[{node.address}]" if ":" in node.address else node.address
    with _DIRECT.open(f"http://{host}:{node.metrics_port}/metrics", timeout=_ANSWER_SECONDS) as page:
        text: str = page.read().decode()
        return text.split("\n")


if __name__ == "__main__":
    give(answer, *sys.argv[1:])
