"""What the objects of a start, and the logs of its pods, say: facts by name, and when each came true. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

Manifest = Mapping[str, Any]


class Line(NamedTuple):
    """What a line of a log tells, by the part of the line that tells it."""

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
    """What is true of an object as it was just seen; the group's Ready is that its ranks answer."""
    kind = manifest["kind"]
    yield f"{kind} is created"
    for condition in manifest.get("status", {}).get("conditions", ()):
        if condition["status"] == "True":
            yield f"{kind} {condition['type']}"
    if manifest.get("status", {}).get("state") == "ready":
        yield f"{kind} ready"


def container_moments(pod: Manifest) -> Iterator[tuple[str, float]]:
    """When kubelet started and ended the containers of a pod, to the second, by the node's clock."""
    status, role = pod["status"], role_of(pod)
    for each in [*status.get("initContainerStatuses", ()), *status["containerStatuses"]]:
        state: Mapping[str, str] = next(iter(each["state"].values()), {})
        for key, word in (("startedAt", "starts"), ("finishedAt", "ends")):
            if key in state:
                yield f"{role}: container {each['name']} {word}", datetime.fromisoformat(state[key]).timestamp()


def role_of(pod: Manifest) -> str:
    """Head, worker or agent."""
    labels = pod["metadata"]["labels"]
    return str(labels.get("ray.io/node-type") or labels["workergroups.dev/component"])


def log_moments(container: str, log: str) -> Iterator[tuple[str, float]]:
    """When a container printed what tells a fact; each line begins with kubelet's time."""
    for line in log.splitlines():
        time, _, text = line.partition(" ")
        for fact, pattern in LOG_LINES:
            if pattern.search(f"{container} {text}"):
                # Nanoseconds are too much for datetime.
                yield fact, datetime.fromisoformat(f"{time[:26]}+00:00").timestamp()
