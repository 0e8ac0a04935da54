"""The KubeRay cluster: a head, and for each pool one worker group per node size."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from workergroups_api.kube import Manifest
from workergroups_api.names import CLUSTER_LABEL, COMPONENT_LABEL, POOL_LABEL, node_group, token_secret_name
from workergroups_api.resource_pool import Accelerator, ResourcePool
from workergroups_operator.desired.pod_overlay import overlay
from workergroups_operator.membership import ClusterKey
from workergroups_operator.observe import Observed
from workergroups_operator.settings import Settings

RESOURCE_NAMES = {"nvidia": "nvidia.com/gpu", "amd": "amd.com/gpu"}
PRODUCT_LABELS = {"nvidia": "nvidia.com/gpu.product", "amd": "amd.com/gpu.product-name"}
WORKER_CONTAINER = "ray-worker"
# KubeRay starts Ray under a shell that passes no signal on: waiting longer would only hold the devices longer.
TERMINATION_SECONDS = 5


def ray_cluster(observed: Observed, pools: Sequence[ResourcePool], settings: Settings) -> Manifest:
    """Pools are in the order of their creation; the oldest one's image and Ray version are the head's."""
    key = observed.key
    groups = [group for pool in pools for group in _worker_groups(key, pool, settings)]
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {"name": key.name},
        "spec": {
            "rayVersion": pools[0].spec.ray_version or settings.ray_version,
            # The mode must be spelled out: without it KubeRay makes a Secret and leaves the pods open.
            "authOptions": {"mode": "token", "secretName": token_secret_name(key.name)},
            "headGroupSpec": {
                "rayStartParams": {"dashboard-host": "0.0.0.0", "num-gpus": "0"},
                "template": _head_template(key, image(pools[0], settings)),
            },
            "workerGroupSpecs": [*groups, *_retiring_groups(observed, {group["groupName"] for group in groups})],
        },
    }


def image(pool: ResourcePool, settings: Settings) -> str:
    """The pool's image, or the operator's default."""
    return pool.spec.image or settings.worker_image


def _retiring_groups(observed: Observed, wanted: set[str]) -> list[Manifest]:
    """Groups of pools that are gone, without replicas, until their pods are gone too.

    KubeRay forgets the pods of a group that is not in the spec any more: they would hold their devices for ever.
    """
    live = observed.children.get(("RayCluster", observed.key.name), {}).get("spec", {}).get("workerGroupSpecs", [])
    populated = {pod["metadata"]["labels"].get("ray.io/group") for pod in observed.pods}
    return [
        group | {"replicas": 0, "minReplicas": 0}
        for group in live
        if group["groupName"] not in wanted and (group["replicas"] or group["groupName"] in populated)
    ]


def _head_template(key: ClusterKey, head_image: str) -> Manifest:
    return {
        "metadata": {"labels": {CLUSTER_LABEL: key.name, COMPONENT_LABEL: "head"}},
        "spec": {
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": TERMINATION_SECONDS,
            "containers": [
                {
                    "name": "ray-head",
                    "image": head_image,
                    "imagePullPolicy": "IfNotPresent",
                    "ports": [
                        {"containerPort": 6379, "name": "gcs-server"},
                        {"containerPort": 8265, "name": "dashboard"},
                        {"containerPort": 10001, "name": "client"},
                    ],
                }
            ],
        },
    }


def _worker_groups(key: ClusterKey, pool: ResourcePool, settings: Settings) -> list[Manifest]:
    sizes = Counter(pool.spec.processes_per_node)
    return [
        {
            "groupName": node_group(pool.name, processes),
            "replicas": replicas,
            "minReplicas": replicas,
            "maxReplicas": replicas,
            "rayStartParams": {
                # Logical CPUs, one for each rank that can sit here: Ray's count must not hinder what the bundles allow.
                "num-cpus": str(processes * pool.spec.max_colocate_count),
                "num-gpus": str(_devices(pool.spec.accelerator, processes)),
            },
            "template": _worker_template(key, pool, processes, settings),
        }
        for processes, replicas in sorted(sizes.items(), reverse=True)
    ]


def _devices(accelerator: Accelerator, processes: int) -> int:
    return 0 if accelerator.vendor == "none" else processes * accelerator.count_per_process


def _worker_template(key: ClusterKey, pool: ResourcePool, processes: int, settings: Settings) -> Manifest:
    container: dict[str, Any] = {
        "name": WORKER_CONTAINER,
        "image": image(pool, settings),
        "imagePullPolicy": "IfNotPresent",
        "env": [{"name": "WORKERGROUPS_ACCELERATOR_VENDOR", "value": pool.spec.accelerator.vendor}],
    }
    spec: dict[str, Any] = {
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": TERMINATION_SECONDS,
        "nodeSelector": _node_selector(pool),
        "tolerations": _tolerations(pool),
        "affinity": _affinity(pool),
        "containers": [container],
    }
    resource = resource_name(pool.spec.accelerator)
    if resource:
        devices = str(_devices(pool.spec.accelerator, processes))
        container["resources"] = {"limits": {resource: devices}, "requests": {resource: devices}}
    template = {
        "metadata": {
            "labels": {CLUSTER_LABEL: key.name, COMPONENT_LABEL: "worker", POOL_LABEL: pool.name},
        },
        "spec": spec,
    }
    return overlay(template, pool.spec.pod_template.to_json() if pool.spec.pod_template else {})


def resource_name(accelerator: Accelerator) -> str | None:
    """The extended resource that a process asks for, None on CPUs."""
    return accelerator.resource_name or RESOURCE_NAMES.get(accelerator.vendor)


def _node_selector(pool: ResourcePool) -> dict[str, str]:
    accelerator = pool.spec.accelerator
    product = {PRODUCT_LABELS[accelerator.vendor]: accelerator.product} if accelerator.product else {}
    return {**pool.spec.node_selector, **product}


def _tolerations(pool: ResourcePool) -> list[dict[str, Any]]:
    """The user's, and the one that lets a pod that asks for a device onto nodes kept for such pods."""
    resource = resource_name(pool.spec.accelerator)
    for_device = [{"key": resource, "operator": "Exists", "effect": "NoSchedule"}] if resource else []
    return [*(toleration.to_json() for toleration in pool.spec.tolerations), *for_device]


def _affinity(pool: ResourcePool) -> dict[str, Any]:
    """placementStrategy in the words of Kubernetes, over host names."""
    strategy = pool.spec.placement_strategy
    kind = "podAffinity" if strategy.endswith("PACK") else "podAntiAffinity"
    term = {
        "labelSelector": {"matchLabels": {CLUSTER_LABEL: pool.cluster, POOL_LABEL: pool.name}},
        "topologyKey": "kubernetes.io/hostname",
    }
    if strategy.startswith("STRICT"):
        return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return {kind: {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "podAffinityTerm": term}]}}
