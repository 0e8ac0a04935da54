"""The pod templates of a RayCluster: the head's, and one for each pool."""

from collections.abc import Mapping
from typing import Any

from workergroups_api.manifest import Manifest
from workergroups_api.names import (
    CLUSTER_LABEL,
    COMPONENT_LABEL,
    POOL_LABEL,
    group_env_name,
)
from workergroups_api.pod_settings import Head, PodTemplate, Setup
from workergroups_api.resource_pool import PRODUCT_LABELS, ResourcePool
from workergroups_api.vocabulary import Component, Container, TopologyMode, Variable
from workergroups_operator.membership import ClusterKey
from workergroups_operator.policy.agent_liveness import GCS_STORAGE
from workergroups_operator.policy.images import Images, image_of
from workergroups_operator.templates import notice
from workergroups_operator.templates.executor import with_executor
from workergroups_operator.templates.library import BASH_ENV, RESTRICTED, with_library
from workergroups_operator.templates.placement import placement
from workergroups_operator.templates.pod_overlay import overlay
from workergroups_operator.templates.pod_parts import (
    NOTHING_UNASKED,
    environment,
    given,
    head_volumes,
    mounts,
    named_pull_secrets,
    named_resources,
    node_volumes,
    resources,
    tolerations,
    volumes,
    with_dns,
)
from workergroups_operator.templates.probes import DASHBOARD_PORT, with_probes
from workergroups_operator.templates.ray_start import head_note, node_note
from workergroups_operator.templates.stamp import stamped_head, stamped_nodes
from workergroups_operator.templates.tls import with_tls

_GROUP_ENV = "workergroups-group-env"
_GROUP_ENV_DIRECTORY = f"/opt/{_GROUP_ENV}"
# On a busy node, a pod without requests starves first, and then its probes fail.
_HEAD_REQUESTS = {"cpu": "200m", "memory": "512Mi"}
# When the first driver connects, which is the executor, Ray would start a process for each CPU.
_NO_PROCESSES_AHEAD = {"RAY_prestart_worker_first_driver": "0"}
_GCS_STORAGE_DIRECTORY = f"/opt/{GCS_STORAGE}"
# Drivers run in the head; a pool can ask for more.
_HEAD_LIMITS = {"cpu": "8", "memory": "16Gi"}
_WORKER_REQUESTS = {"cpu": "100m", "memory": "256Mi"}
# The GCS declares a node dead that does not answer three requests of three seconds each. It begins soon, since a node
# may have died while the head was away.
_NODE_HEALTH = {
    "RAY_health_check_initial_delay_ms": "500",
    "RAY_health_check_period_ms": "1000",
    "RAY_health_check_timeout_ms": "3000",
    "RAY_health_check_failure_threshold": "3",
}

# A raylet connects to its object store before the store listens. By default, Ray retries ten times, once a second.
_RETRY_SOON = {
    "RAY_raylet_client_connect_timeout_milliseconds": "50",
    "RAY_raylet_client_num_connect_attempts": "200",
}


def head_template(
    key: ClusterKey, images: Images, oldest: ResourcePool, restricted: bool = False, tls: bool = False
) -> Manifest:
    """Return the head's template, with the user's over it, and its notes: it has no accelerator and runs no ranks.

    `restricted` is whether the namespace enforces the restricted Pod Security Standard. Elsewhere, images may run as
    root and call what seccomp's default profile forbids. `tls` is whether the cluster's Ray uses TLS.
    """
    head = oldest.spec.head or Head()
    mounted = head_volumes(oldest)
    container: dict[str, Any] = {
        "name": Container.HEAD,
        "image": images.head,
        "imagePullPolicy": "IfNotPresent",
        **environment(
            oldest,
            BASH_ENV,
            {"name": Variable.GCS_STORAGE, "value": f"{_GCS_STORAGE_DIRECTORY}/{key.name}"},
            *_variables(_NODE_HEALTH | _NO_PROCESSES_AHEAD | _RETRY_SOON),
        ),
        "resources": _head_resources(head),
        **given("securityContext", RESTRICTED if restricted else None),
        "volumeMounts": [*mounts(mounted), {"name": GCS_STORAGE, "mountPath": _GCS_STORAGE_DIRECTORY}],
        "ports": [
            {"containerPort": 6379, "name": "gcs-server"},
            {"containerPort": DASHBOARD_PORT, "name": "dashboard"},
            {"containerPort": 10001, "name": "client"},
        ],
    }
    template = {
        "metadata": {
            "labels": {CLUSTER_LABEL: key.name, COMPONENT_LABEL: Component.HEAD},
            **given("annotations", head_note(head)),
        },
        "spec": {
            **placement(oldest, head),
            **NOTHING_UNASKED,
            "terminationGracePeriodSeconds": notice.TERMINATION_SECONDS,
            "volumes": [*volumes(mounted, oldest.spec.shared_memory), _gcs_storage(head)],
            "containers": [container],
        },
    }
    merged = with_executor(_with_users(template, head.pod_template, Container.HEAD, images, oldest.spec.head_setup))
    return stamped_head(_with_tls(merged, Container.HEAD, key, images) if tls else merged, oldest, images.head)


def _head_resources(head: Head) -> dict[str, Any]:
    """Return requests, and limits even if the user sets none, since a quota may require them.

    A resource that the user's template sets gets no limit of ours, since its request might be larger.
    """
    named = named_resources(head.pod_template, Container.HEAD)
    return resources(head.resources, _HEAD_REQUESTS, _HEAD_LIMITS, unlimited=named)


def worker_template(
    key: ClusterKey, pool: ResourcePool, images: Images, restricted: bool = False, tls: bool = False
) -> Manifest:
    """Return the template of the pool's nodes, with the user's template over it, and its notes; see `head_template`."""
    mounted = node_volumes(pool)
    container: dict[str, Any] = {
        "name": Container.WORKER,
        "image": image_of(pool, images),
        "imagePullPolicy": "IfNotPresent",
        **environment(
            pool,
            *_variables(_accelerator_variables(pool)),
            {"name": Variable.GROUP_ENV_DIRECTORY, "value": _GROUP_ENV_DIRECTORY},
            {"name": Variable.NOTICE, "value": notice.FILE},
            BASH_ENV,
            *_variables(_RETRY_SOON),
        ),
        "resources": _with_devices(pool, resources(pool.spec.resources, _WORKER_REQUESTS)),
        **given("securityContext", RESTRICTED if restricted else None),
        "volumeMounts": [*mounts(mounted), {"name": _GROUP_ENV, "mountPath": _GROUP_ENV_DIRECTORY, "readOnly": True}],
    }
    template = {
        "metadata": {
            "labels": {CLUSTER_LABEL: key.name, COMPONENT_LABEL: Component.WORKER, POOL_LABEL: pool.name},
            **given("annotations", node_note(pool)),
        },
        "spec": {
            **named_pull_secrets(pool),
            **NOTHING_UNASKED,
            "terminationGracePeriodSeconds": notice.SECONDS + notice.TERMINATION_SECONDS,
            "nodeSelector": _node_selector(pool),
            "tolerations": tolerations(pool),
            **given("priorityClassName", pool.spec.priority_class_name),
            "affinity": _affinity(pool),
            "volumes": [*volumes(mounted, pool.spec.shared_memory), _group_env(key)],
            "containers": [container],
        },
    }
    merged = _with_users(template, pool.spec.pod_template, Container.WORKER, images, pool.spec.node_setup)
    if isinstance(merged["spec"], dict):
        merged["spec"] = notice.with_notice(merged["spec"], Container.WORKER)
    encrypted = _with_tls(merged, Container.WORKER, key, images) if tls else merged
    return stamped_nodes(encrypted, pool, image_of(pool, images))


def _accelerator_variables(pool: ResourcePool) -> dict[str, str]:
    """Return the variables from which the library knows how to select a rank's devices."""
    accelerator = pool.spec.accelerator
    variables = {Variable.ACCELERATOR_VENDOR.value: accelerator.vendor.value}
    if accelerator.visible_devices_env is None:
        return variables
    # Ray must not empty the variable in a rank's process: its value is the node's own list of devices.
    return {
        **variables,
        Variable.VISIBLE_DEVICES_ENV.value: accelerator.visible_devices_env,
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    }


def _with_devices(pool: ResourcePool, asked: Mapping[str, Any]) -> dict[str, Any]:
    resource = pool.spec.accelerator.resource
    if resource is None:
        return dict(asked)
    devices = {resource: str(pool.spec.devices_per_node)}
    return {**asked, **{part: {**asked.get(part, {}), **devices} for part in ("requests", "limits")}}


def _with_users(
    template: Manifest, user: PodTemplate | None, container: str, images: Images, setup: Setup | None
) -> Manifest:
    """Merge the user's template over ours. Our labels and the library stay, and our probes where the user sets none."""
    merged = overlay(overlay(template, user.to_json() if user else {}), {"metadata": template["metadata"]})
    spec = merged["spec"]
    if not isinstance(spec, dict):
        return merged
    spec = with_dns(with_probes(spec, container))
    return merged | {"spec": with_library(spec, container, images.library, setup, is_on_volumes=True)}


def _with_tls(template: Manifest, container: Container, key: ClusterKey, images: Images) -> Manifest:
    spec = template["spec"]
    return {**template, "spec": with_tls(spec, container, key, images.library)} if isinstance(spec, dict) else template


def _group_env(key: ClusterKey) -> Manifest:
    """Return the volume of the variables that groups take from Secrets: in the nodes only, since ranks run there."""
    return {"name": _GROUP_ENV, "secret": {"secretName": group_env_name(key.name), "optional": True}}


def _gcs_storage(head: Head) -> Manifest:
    """Return the volume on which the GCS keeps its state."""
    if head.gcs_storage is None:
        return {"name": GCS_STORAGE, "emptyDir": {}}
    return {"name": GCS_STORAGE, "persistentVolumeClaim": {"claimName": head.gcs_storage.claim_name}}


def _variables(values: Mapping[str, str]) -> list[Manifest]:
    return [{"name": name, "value": value} for name, value in values.items()]


def _node_selector(pool: ResourcePool) -> dict[str, str]:
    accelerator = pool.spec.accelerator
    product = {PRODUCT_LABELS[accelerator.vendor]: accelerator.product} if accelerator.product else {}
    return {**pool.spec.node_selector, **product}


def _affinity(pool: ResourcePool) -> dict[str, Any]:
    """Return the topology as Kubernetes' affinity."""
    topology = pool.spec.topology
    term = {
        "labelSelector": {"matchLabels": {CLUSTER_LABEL: pool.cluster, POOL_LABEL: pool.name}},
        "topologyKey": topology.key,
    }
    match topology.mode:
        case TopologyMode.REQUIRED:
            return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        case TopologyMode.SPREAD:
            return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    preferred = [{"weight": 100, "podAffinityTerm": term}]
    return {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
