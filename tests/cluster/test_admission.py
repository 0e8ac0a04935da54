"""What the API server refuses, each time naming the field and the way out."""

import copy

import pytest
from kubectl import Refused, group, pool


def changed(manifest, path, value):
    """The manifest with the value at the path; ... removes what is there."""
    manifest = copy.deepcopy(manifest)
    *parents, last = path.split(".")
    place = manifest
    for key in parents:
        place = place.setdefault(key, {})
    if value is ...:
        place.pop(last, None)
    else:
        place[last] = value
    return manifest


BAD_POOLS = {
    "spec.processesPerNode: Required value": ("spec.processesPerNode", ...),
    "spec.processesPerNode in body should have at least 1 items": ("spec.processesPerNode", []),
    "spec.processesPerNode[1] in body should be greater than or equal to 1": ("spec.processesPerNode", [1, 0]),
    "spec.processesPerNode[0] in body should be less than or equal to 64": ("spec.processesPerNode", [65]),
    'spec.accelerator.vendor: Unsupported value: "intel": supported values: "nvidia", "amd", "none"': (
        "spec.accelerator",
        {"vendor": "intel"},
    ),
    "spec.accelerator.product needs an accelerator: set spec.accelerator.vendor": (
        "spec.accelerator",
        {"vendor": "none", "product": "A100"},
    ),
    "spec.accelerator.resourceName needs an accelerator": (
        "spec.accelerator",
        {"vendor": "none", "resourceName": "nvidia.com/gpu"},
    ),
    "spec.accelerator.countPerProcess needs an accelerator": (
        "spec.accelerator",
        {"vendor": "none", "countPerProcess": 2},
    ),
    "spec.accelerator.product must be a label value: copy it from": (
        "spec.accelerator",
        {"product": "NVIDIA A100"},
    ),
    "spec.accelerator.resourceName must be a qualified name such as nvidia.com/gpu: add the domain": (
        "spec.accelerator",
        {"resourceName": "gpu"},
    ),
    "spec.accelerator.countPerProcess in body should be greater than or equal to 1": (
        "spec.accelerator",
        {"countPerProcess": 0},
    ),
    "spec.rayVersion must be MAJOR.MINOR.PATCH": ("spec.rayVersion", "2.60"),
    "at least 2.52.0, the first with token authentication: use a newer Ray": ("spec.rayVersion", "2.9.3"),
    "spec.rayVersion is required with spec.image": ("spec.image", "example.test/ray:1"),
    "spec.image must be an image reference without spaces": ("spec.image", "my image"),
    'spec.placementStrategy: Unsupported value: "PACKED"': ("spec.placementStrategy", "PACKED"),
    "spec.reservationDeadlineSeconds in body should be greater than or equal to 5": (
        "spec.reservationDeadlineSeconds",
        0,
    ),
    "spec.maxColocateCount in body should be greater than or equal to 1": ("spec.maxColocateCount", 0),
    "spec.cluster must be lower-case letters": ("spec.cluster", "Shared_Cluster"),
    "spec.tolerations: operator Exists takes no value": (
        "spec.tolerations",
        [{"key": "gpu", "operator": "Exists", "value": "yes"}],
    ),
    "spec.tolerations: operator Equal needs a key": ("spec.tolerations", [{"value": "yes"}]),
    "spec.tolerations: tolerationSeconds works with effect NoExecute only": (
        "spec.tolerations",
        [{"key": "gpu", "operator": "Exists", "tolerationSeconds": 5}],
    ),
    "spec.nodeSelector must not repeat the product label": (
        "spec.nodeSelector",
        {"nvidia.com/gpu.product": "H100"},
    ),
    "spec.nodeSelector must hold label keys and values": ("spec.nodeSelector", {"rack": "row 7"}),
    'unknown field "spec.proceses"': ("spec.proceses", [4]),
    'unknown field "spec.podTemplate.containers"': ("spec.podTemplate", {"containers": []}),
    "metadata.name of a ResourcePool must be at most 40 lower-case letters": ("metadata.name", "a" * 41),
    "metadata.name of a ResourcePool must be": ("metadata.name", "4gpus"),
}

BAD_GROUPS = {
    "spec.pools: Required value": ("spec.pools", ...),
    "spec.pools in body should have at least 1 items": ("spec.pools", []),
    'spec.pools[1]: Duplicate value: {"name":"actors"}': (
        "spec.pools",
        [{"name": "actors"}, {"name": "actors"}],
    ),
    "spec.pools[0].bundles.count: Required value": ("spec.pools", [{"name": "actors", "bundles": {"start": 1}}]),
    "spec.pools[0].bundles.count in body should be greater than or equal to 1": (
        "spec.pools",
        [{"name": "actors", "bundles": {"count": 0}}],
    ),
    "spec.pools[0].bundles.start in body should be greater than or equal to 0": (
        "spec.pools",
        [{"name": "actors", "bundles": {"start": -1, "count": 1}}],
    ),
    "spec.pools[].name must be lower-case letters": ("spec.pools", [{"name": "Actors"}]),
    "spec.worker: Required value": ("spec.worker", ...),
    "spec.worker.class must be an import path: write package.module.Class": ("spec.worker", {"class": "Trainer"}),
    "spec.code.configMap.name must be the name of a ConfigMap": ("spec.code", {"configMap": {"name": "My Code"}}),
    "spec.env[].name must be letters, digits and '_'": ("spec.env", [{"name": "1ST", "value": ""}]),
    "spec.env[].name is set by WorkerGroups for each rank: remove it": (
        "spec.env",
        [{"name": "MASTER_ADDR", "value": "localhost"}],
    ),
    "spec.env[1]: Duplicate value": ("spec.env", [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]),
    'spec.env[0].value: Invalid value: "integer"': ("spec.env", [{"name": "A", "value": 1}]),
    "spec.startDeadlineSeconds in body should be greater than or equal to 5": ("spec.startDeadlineSeconds", 1),
    'unknown field "spec.role"': ("spec.role", "actor"),
    "metadata.name of a WorkerGroup must be": ("metadata.name", "trainer.v1"),
}


@pytest.mark.parametrize("words", BAD_POOLS)
def test_a_bad_pool_is_refused(namespace, words):
    refuse(namespace, changed(pool(), *BAD_POOLS[words]), words)


@pytest.mark.parametrize("words", BAD_GROUPS)
def test_a_bad_group_is_refused(namespace, words):
    refuse(namespace, changed(group(), *BAD_GROUPS[words]), words)


def refuse(namespace, manifest, words):
    with pytest.raises(Refused) as refusal:
        namespace.apply(manifest)
    assert words in str(refusal.value)


@pytest.fixture(scope="module")
def unplaceable(namespace):
    """A pool and a group that exist, and hold nothing."""
    placed = pool("fixed", cluster="fixed", nodeSelector={"no-such-node": "x"})
    grouped = group("fixed", ["fixed"], worker={"class": "a.B", "args": [1], "kwargs": {"x": {"y": 2}}})
    namespace.apply(placed, grouped)
    return placed, grouped


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("spec.processesPerNode", [3]),
        ("spec.accelerator", {"vendor": "amd"}),
        ("spec.rayVersion", "2.60.0"),
        ("spec.maxColocateCount", 3),
        ("spec.cluster", "other"),
        ("spec.placementStrategy", "SPREAD"),
        ("spec.nodeSelector", {"no-such-node": "y"}),
        ("spec.tolerations", [{"operator": "Exists"}]),
    ],
)
def test_what_a_pool_was_made_with_stays(namespace, unplaceable, path, value):
    refuse(namespace, changed(unplaceable[0], path, value), f"{path} is immutable: delete the pool and create it again")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("spec.pools", [{"name": "another"}]),
        ("spec.worker", {"class": "a.B", "args": [2], "kwargs": {"x": {"y": 2}}}),
        ("spec.worker", {"class": "a.B", "args": [1], "kwargs": {"x": {"y": 3}}}),
        ("spec.code", ...),
        ("spec.env", [{"name": "A", "value": "1"}]),
    ],
)
def test_what_a_group_was_made_with_stays(namespace, unplaceable, path, value):
    refuse(
        namespace, changed(unplaceable[1], path, value), f"{path} is immutable: delete the group and create it again"
    )


def test_a_deadline_may_be_moved(namespace, unplaceable):
    namespace.apply(changed(unplaceable[0], "spec.reservationDeadlineSeconds", 900))
    namespace.apply(changed(unplaceable[1], "spec.startDeadlineSeconds", 900))
