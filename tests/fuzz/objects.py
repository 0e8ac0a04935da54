"""Odd pools and groups: drawn from what the schemas accept, with odd labels, annotations and statuses."""

import random
from dataclasses import dataclass
from typing import Any

from tests.fuzz.schema import drawn as drawn_from
from tests.fuzz.schema import most, schema_of
from tests.fuzz.values import as_json, large, text
from tests.simulation.machines import NO_SUCH_NODE
from tests.simulation.scene import group, pool
from tests.simulation.story import BROKEN
from workergroups_api.conditions import MAX_CONDITIONS
from workergroups_api.manifest import POD, RESOURCE_POOL, WORKER_GROUP, Kind, Manifest, kind_of
from workergroups_api.names import CLUSTER_LABEL, GROUP, RESTARTED_AT_ANNOTATION
from workergroups_api.plan import MAX_PARTS, MAX_POOL_BUNDLES

# The bundles of pools that groups at their maxima name.
_MOST_BUNDLES: tuple[dict[str, Any], ...] = (
    {},
    {"bundles": {"start": 0, "count": MAX_POOL_BUNDLES}},
    {"bundles": {"start": MAX_POOL_BUNDLES - 1, "count": MAX_POOL_BUNDLES}},
    {"bundles": {"start": MAX_POOL_BUNDLES - 1, "count": 1}},
)
# The most pods of a pool: more would cost time, and show nothing new.
NODES = (1, 1, 1, 1, 2, 3)
LARGE_ANNOTATIONS = ("example.com/large", f"{GROUP}/of-a-later-version", RESTARTED_AT_ANNOTATION, "volcano.sh/large")


@dataclass(frozen=True)
class OddObject:
    """An object that a user sends, and a status that a user writes into it, both as JSON."""

    kind: Kind
    name: str
    body: bytes
    status: bytes | None = None


def drawn(choices: random.Random, namespace: str, name: str, neighbour: str) -> list[OddObject]:
    """Return an object that may share the cluster, or the pool, of the healthy `neighbour`."""
    kind = choices.choice((RESOURCE_POOL, WORKER_GROUP, WORKER_GROUP))
    spec = drawn_from(schema_of(kind, "spec"), choices)
    if kind is RESOURCE_POOL:
        _place_pool(spec, choices, neighbour)
    else:
        _place_group(spec, choices, neighbour)
    body = {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": _metadata(choices, namespace, name),
        "spec": spec,
    }
    status = {"status": drawn_from(schema_of(kind, "status"), choices)} if choices.random() < 0.3 else None
    return [OddObject(kind, name, as_json(body), None if status is None else as_json(status))]


def largest(choices: random.Random, namespace: str, name: str, neighbour: str) -> list[OddObject]:
    """Return pools of the largest size, and groups that name all of them, with all ranges and statuses at their maxima.

    No pod of them can be created: a pool's would cost time, and show nothing new.
    """
    cluster = choices.choice((neighbour, neighbour, name))
    names = [f"{name}-{number}" for number in range(choices.choice((1, 3, MAX_PARTS)))]
    manifests = [pool(namespace, each, clusterName=cluster, **_largest_pool(choices)) for each in names]
    for number in range(choices.choice((1, 3, 10))):
        refs = [{"name": choices.choice(names), **choices.choice(_MOST_BUNDLES)} for _ in range(MAX_PARTS)]
        manifests.append(group(namespace, f"{name}-g{number}", pools=refs))
    return [_with_most_status(manifest, choices) for manifest in manifests]


def _largest_pool(choices: random.Random) -> dict[str, Any]:
    fields = schema_of(RESOURCE_POOL, "spec")["properties"]
    numbers = {field: fields[field]["maximum"] for field in ("nodes", "processesPerNode", "maxColocateCount")}
    accelerator = choices.choice(({"vendor": "none"}, {"vendor": "nvidia", "perProcess": 64}))
    keeps_no_pods = choices.choice(({"suspend": True}, {"podTemplate": BROKEN["account"][0]}))
    return numbers | {"accelerator": accelerator, **keeps_no_pods}


def _with_most_status(manifest: Manifest, choices: random.Random) -> OddObject:
    kind = kind_of(manifest)
    status = as_json(most_status(kind, choices)) if choices.random() < 0.7 else None
    return OddObject(kind, manifest["metadata"]["name"], as_json(manifest), status)


def most_status(kind: Kind, choices: random.Random) -> dict[str, Any]:
    """Return a status in which everything is at its maximum, but with room for the operator's conditions."""
    status = most(schema_of(kind, "status"), choices)
    return {"status": status | {"conditions": status["conditions"][: MAX_CONDITIONS // 2]}}


def _place_pool(spec: dict[str, Any], choices: random.Random, neighbour: str) -> None:
    cluster = choices.choice((neighbour, neighbour, neighbour, "odd", None))
    if cluster is not None:
        spec["clusterName"] = cluster
    spec["nodes"] = choices.choice(NODES)


def _place_group(spec: dict[str, Any], choices: random.Random, neighbour: str) -> None:
    if choices.random() < 0.7:
        spec["pools"] = [{"name": neighbour}]
    if choices.random() < 0.9:
        spec.pop(choices.choice(("worker", "roles")), None)
        if not spec.get("roles") and "worker" not in spec:
            spec.pop("roles", None)
            spec["worker"] = drawn_from(schema_of(WORKER_GROUP, "spec")["properties"]["worker"], choices)
        elif spec.get("roles"):
            spec.pop("worker", None)


def _metadata(choices: random.Random, namespace: str, name: str) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name, "namespace": namespace}
    if choices.random() < 0.3:
        metadata["annotations"] = {f"example.com/a{number}": text(choices, 5000) for number in range(3)}
        metadata["annotations"][RESTARTED_AT_ANNOTATION] = text(choices)
    if choices.random() < 0.05:
        metadata["annotations"] = {choices.choice(LARGE_ANNOTATIONS): str(large(choices))[:250_000]}
    if choices.random() < 0.2:
        metadata["labels"] = {CLUSTER_LABEL: choices.choice((name, "healthy", "x"))}
    if choices.random() < 0.03:
        domain = choices.choice(("example.com", "kueue.x-k8s.io"))
        metadata["labels"] = {
            f"{domain}/{'x' * 40}-{number}": "y" * 60 for number in range(choices.choice((300, 5_000)))
        }
    return metadata


def pods_like_ours(choices: random.Random, namespace: str, cluster: str) -> list[Manifest]:
    """Return large pods with a cluster's label that no node takes, and of which nothing is ours."""
    count = choices.choice((0, 1, 9))
    return [pod_like_ours(choices, namespace, f"a-copy-{number}", cluster) for number in range(count)]


def pod_like_ours(choices: random.Random, namespace: str, name: str, cluster: str) -> Manifest:
    """Return one of them."""
    args = choices.choice((["x" * 1_000_000], ["x"] * 205_000, ["x"] * 20_000, ["<" * 1_400_000]))
    return {
        "apiVersion": POD.api_version,
        "kind": POD.kind,
        "metadata": {"name": name, "namespace": namespace, "labels": {CLUSTER_LABEL: cluster}},
        "spec": {
            "containers": [{"name": "c", "image": "example.test/image", "args": args}],
            "nodeSelector": {NO_SUCH_NODE: "true"},
        },
    }
