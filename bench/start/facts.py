"""Facts of a start, from its objects and its pods' logs, and when each became true. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

Manifest = Mapping[str, Any]


class Line(NamedTuple):
    """A fact, and the part of a log line that proves it."""

    fact: str
    pattern: re.Pattern[str]


LOG_LINES = (
    Line("the agent is connected to the GCS", re.compile("connected to the GCS")),
    Line("head: Ray is started", re.compile(r"ray-head .*Ray runtime started")),
    Line("worker: the GCS listens", re.compile("the GCS listens at")),
    Line("worker: `ray start` begins", re.compile(r"ray-worker .*Local node IP")),
    Line("the executor is connected to Ray", re.compile("the executor is connected")),
    Line("the executor creates the placement group", re.compile("creating placement group")),
    Line("the executor submits the launch", re.compile("launching quickstart")),
)


def facts(manifest: Manifest) -> Iterator[str]:
    """Yield the facts that an object proves; if the group is Ready, its ranks answer."""
    kind = manifest["kind"]
    yield f"{kind} is created"
    for condition in manifest.get("status", {}).get("conditions", ()):
        if condition["status"] == "True":
            yield f"{kind} {condition['type']}"
    if manifest.get("status", {}).get("state") == "ready":
        yield f"{kind} ready"


def container_moments(pod: Manifest) -> Iterator[tuple[str, float]]:
    """Yield when kubelet started and ended the containers of a pod, to the second, by the node's clock."""
    status, role = pod["status"], role_of(pod)
    for each in [*status.get("initContainerStatuses", ()), *status["containerStatuses"]]:
        state: Mapping[str, str] = next(iter(each["state"].values()), {})
        for key, word in (("startedAt", "starts"), ("finishedAt", "ends")):
            if key in state:
                yield f"{role}: container {each['name']} {word}", datetime.fromisoformat(state[key]).timestamp()


def role_of(pod: Manifest) -> str:
    """Return whether the pod is head, worker or agent."""
    labels = pod["metadata"]["labels"]
    return str(labels.get("ray.io/node-type") or labels["workergroups.dev/component"])


def log_moments(container: str, log: str) -> Iterator[tuple[str, float]]:
    """Yield when a container printed a line that proves a fact; each line begins with kubelet's time."""
    for line in log.splitlines():
        time, _, text = line.partition(" ")
        for fact, pattern in LOG_LINES:
            if pattern.search(f"{container} {text}"):
                # datetime cannot parse nanoseconds.
                yield fact, datetime.fromisoformat(f"{time[:26]}+00:00").timestamp()
