"""The agent's Deployment. Its pod is not a node of the Ray cluster, so no user code can be sent to it.

Its two containers share only a directory for each direction, which one writes and the other reads. The observer has
Ray's token and the head's image, since both must speak the same Ray. The reporter has the Kubernetes token, and runs
only the operator's image. The executor, which acts in Ray, runs in the head's container: see `templates.executor`.
"""

from typing import Any

from workergroups_api.heads import KEEPALIVE
from workergroups_api.manifest import DEPLOYMENT, Manifest
from workergroups_api.names import (
    CLUSTER_LABEL,
    COMPONENT_LABEL,
    SERVICE_ACCOUNT_ANNOTATION,
    TOKEN_ANNOTATION,
    TOKEN_KEY,
    agent_name,
    head_service,
    token_secret_name,
)
from workergroups_api.pod_settings import Agent, Resources
from workergroups_api.resource_pool import ResourcePool
from workergroups_api.vocabulary import ORDERS, REPORTS, REPORTS_FILE, Component, Container, Variable
from workergroups_operator.membership import ClusterKey
from workergroups_operator.policy.images import Images
from workergroups_operator.templates.library import UNPRIVILEGED, USER_ID, with_library
from workergroups_operator.templates.placement import placement
from workergroups_operator.templates.pod_parts import NOTHING_UNASKED, resources
from workergroups_operator.templates.probes import agent_probes
from workergroups_operator.templates.tls import with_tls

GCS_PORT = 6379
# A volume for each direction, so that neither can fill or change the other.
EXCHANGE = "/run/workergroups"
_EXCHANGE_SIZE = "128Mi"
_TMP_SIZE = "1Gi"
_TOKEN_MOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
_WRITES = {Container.OBSERVER: REPORTS, Container.REPORTER: ORDERS}
_REQUESTS = {
    Container.OBSERVER: {"cpu": "50m", "memory": "96Mi"},
    Container.REPORTER: {"cpu": "20m", "memory": "64Mi"},
}
# Both are Python programs, which use at most one CPU, when they start.
_LIMITS = {"cpu": "1", "memory": "512Mi"}


def deployment(
    key: ClusterKey,
    images: Images,
    oldest: ResourcePool,
    token_digest: str,
    account_uid: str,
    *,
    is_off: bool = False,
    tls: bool = False,
) -> Manifest:
    """Return the Deployment of one agent, never two at a time; of none if the cluster is off.

    If Ray's token or the ServiceAccount changes, the agent restarts: Ray and the API server refuse the credentials that
    it got from the old ones.
    """
    labels = {CLUSTER_LABEL: key.name, COMPONENT_LABEL: Component.AGENT}
    pod = with_library(_pod(key, images, oldest), Container.OBSERVER, images.agent)
    annotations = {TOKEN_ANNOTATION: token_digest, SERVICE_ACCOUNT_ANNOTATION: account_uid}
    spec = {
        "replicas": 0 if is_off else 1,
        "strategy": {"type": "Recreate"},
        "selector": {"matchLabels": labels},
        "template": {
            "metadata": {"labels": labels, "annotations": annotations},
            "spec": with_tls(pod, Container.OBSERVER, key, images.agent) if tls else pod,
        },
    }
    return DEPLOYMENT.manifest({"name": agent_name(key.name)}, spec=spec)


def _pod(key: ClusterKey, images: Images, oldest: ResourcePool) -> dict[str, Any]:
    asked = oldest.spec.agent or Agent()
    return {
        **placement(oldest, asked),
        "serviceAccountName": agent_name(key.name),
        **NOTHING_UNASKED,
        "terminationGracePeriodSeconds": 5,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER_ID,
            "runAsGroup": USER_ID,
            "fsGroup": USER_ID,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [
            _with_resources(container, asked.resources)
            for container in (_observer(key, images.head), _reporter(key, images.agent))
        ],
        "volumes": [
            {"name": ORDERS, "emptyDir": {"medium": "Memory", "sizeLimit": _EXCHANGE_SIZE}},
            {"name": REPORTS, "emptyDir": {"medium": "Memory", "sizeLimit": _EXCHANGE_SIZE}},
            {"name": "token", "projected": {"sources": _token_sources()}},
            *({"name": _tmp(name), "emptyDir": {"sizeLimit": _TMP_SIZE}} for name in _WRITES),
        ],
    }


def _tmp(container: Container) -> str:
    return f"{container}-tmp"


def _with_resources(container: dict[str, Any], asked: Resources) -> dict[str, Any]:
    return {**container, "resources": resources(asked, _REQUESTS[container["name"]], _LIMITS)}


def _container(name: Container, image: str, env: list[dict[str, Any]], mounts: dict[str, str]) -> dict[str, Any]:
    return {
        "name": name,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["python3", "-m", f"workergroups_agent.{name}"],
        "env": [
            {"name": Variable.EXCHANGE, "value": EXCHANGE},
            {"name": Variable.ALIVE, "value": "/tmp/workergroups-alive"},
            {"name": "HOME", "value": "/tmp"},
            *env,
        ],
        "securityContext": UNPRIVILEGED | {"readOnlyRootFilesystem": True},
        "volumeMounts": [
            {"name": _tmp(name), "mountPath": "/tmp"},
            *(_exchange_mount(direction, is_written=direction == _WRITES[name]) for direction in (ORDERS, REPORTS)),
            *({"name": volume, "mountPath": path} for volume, path in mounts.items()),
        ],
    }


def _exchange_mount(direction: str, *, is_written: bool) -> dict[str, Any]:
    mount = {"name": direction, "mountPath": f"{EXCHANGE}/{direction}"}
    return mount if is_written else {**mount, "readOnly": True}


def _observer(key: ClusterKey, image: str) -> dict[str, Any]:
    token: dict[str, Any] = {"secretKeyRef": {"name": token_secret_name(key.name), "key": TOKEN_KEY}}
    env: list[dict[str, Any]] = [
        {"name": Variable.GCS_ADDRESS, "value": f"{head_service(key.name, key.namespace)}:{GCS_PORT}"},
        {"name": "RAY_AUTH_MODE", "value": "token"},
        # If the GCS is gone, the observer looks for the next one; by default, Ray would end the process after a minute.
        {"name": "RAY_gcs_rpc_server_reconnect_timeout_s", "value": "1000000"},
        *({"name": name, "value": value} for name, value in KEEPALIVE.items()),
        # Seconds for each attempt to connect, so that the process can answer the probe between two attempts.
        {"name": "RAY_py_gcs_connect_timeout_s", "value": "3"},
        {"name": "RAY_gcs_rpc_server_connect_timeout_s", "value": "2"},
        {"name": "RAY_AUTH_TOKEN", "valueFrom": token},
    ]
    return _container(Container.OBSERVER, image, env, {}) | {
        **agent_probes(),
        "readinessProbe": {
            # For people who look at the Deployment; the operator reads the Lease. The observer writes its reports
            # once it has observed Ray, and removes them when it has lost Ray.
            "exec": {"command": ["test", "-e", f"{EXCHANGE}/{REPORTS}/{REPORTS_FILE}"]},
            "periodSeconds": 5,
            "failureThreshold": 1,
        },
    }


def _reporter(key: ClusterKey, image: str) -> dict[str, Any]:
    env = [
        {"name": Variable.CLUSTER, "value": key.name},
        {"name": Variable.NAMESPACE, "value": key.namespace},
    ]
    return _container(Container.REPORTER, image, env, {"token": _TOKEN_MOUNT}) | agent_probes()


def _token_sources() -> list[dict[str, Any]]:
    namespace = {"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}
    return [
        {"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [namespace]}},
    ]
