"""The agent: a pod of its own that joins the Ray cluster, and exactly the rights that it needs.

Its two containers share a directory and nothing else. The executor is a Ray node, so a user's task could be made to
run there: it has no Kubernetes token. The reporter has the token, and runs no code but ours.
"""

from collections.abc import Sequence
from typing import Any

from workergroups_api.kube import Manifest
from workergroups_api.names import (
    CLUSTER_LABEL,
    COMPONENT_LABEL,
    GROUP,
    TOKEN_KEY,
    agent_name,
    head_service,
    plan_name,
    token_secret_name,
)
from workergroups_api.resource_pool import ResourcePool
from workergroups_api.worker_group import WorkerGroup
from workergroups_operator.desired.raycluster import image
from workergroups_operator.membership import ClusterKey
from workergroups_operator.settings import Settings

GCS_PORT = 6379
EXCHANGE = "/run/workergroups"
USER_ID = 65532
_TOKEN_MOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
_SECURITY = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
}


def access(key: ClusterKey, pools: Sequence[ResourcePool], groups: Sequence[WorkerGroup]) -> list[Manifest]:
    """ServiceAccount, Role and RoleBinding: named resources only."""
    name = agent_name(key.name)
    code = {group.spec.code.config_map.name for group in groups if group.spec.code}
    read = ["get", "list", "watch"]
    rules = [
        _rule("", "configmaps", [plan_name(key.name), *sorted(code)], read),
        _rule(GROUP, "resourcepools/status", [pool.name for pool in pools], ["patch"]),
    ]
    # A rule without names would mean all of them.
    if groups:
        rules.append(_rule(GROUP, "workergroups/status", [group.name for group in groups], ["patch"]))
    return [
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": name},
            "automountServiceAccountToken": False,
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "Role",
            "metadata": {"name": name},
            "rules": rules,
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": key.namespace}],
        },
    ]


def _rule(group: str, resource: str, resource_names: list[str], verbs: list[str]) -> Manifest:
    return {"apiGroups": [group], "resources": [resource], "resourceNames": resource_names, "verbs": verbs}


def deployment(key: ClusterKey, pools: Sequence[ResourcePool], settings: Settings) -> Manifest:
    """One agent, never two at a time."""
    labels = {CLUSTER_LABEL: key.name, COMPONENT_LABEL: "agent"}
    agent_image = image(pools[0], settings)
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": agent_name(key.name)},
        "spec": {
            "replicas": 1,
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "serviceAccountName": agent_name(key.name),
                    "automountServiceAccountToken": False,
                    "terminationGracePeriodSeconds": 5,
                    "securityContext": {
                        "runAsNonRoot": True,
                        "runAsUser": USER_ID,
                        "runAsGroup": USER_ID,
                        "fsGroup": USER_ID,
                        "seccompProfile": {"type": "RuntimeDefault"},
                    },
                    "containers": [_executor(key, agent_image), _reporter(key, agent_image)],
                    "volumes": [
                        {"name": "exchange", "emptyDir": {"medium": "Memory", "sizeLimit": "16Mi"}},
                        {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "256Mi"}},
                        {"name": "tmp", "emptyDir": {}},
                        {"name": "token", "projected": {"sources": _token_sources()}},
                    ],
                },
            },
        },
    }


def _container(name: str, agent_image: str, env: list[dict[str, Any]], mounts: dict[str, str]) -> dict[str, Any]:
    return {
        "name": name,
        "image": agent_image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["python3", "-m", f"workergroups_agent.{name}"],
        "env": [{"name": "WORKERGROUPS_EXCHANGE", "value": EXCHANGE}, {"name": "HOME", "value": "/tmp"}, *env],
        "securityContext": _SECURITY,
        "volumeMounts": [{"name": volume, "mountPath": path} for volume, path in mounts.items()],
    }


def _executor(key: ClusterKey, agent_image: str) -> dict[str, Any]:
    token: dict[str, Any] = {"secretKeyRef": {"name": token_secret_name(key.name), "key": TOKEN_KEY}}
    env: list[dict[str, Any]] = [
        {"name": "WORKERGROUPS_GCS_ADDRESS", "value": f"{head_service(key.name, key.namespace)}:{GCS_PORT}"},
        {"name": "RAY_AUTH_MODE", "value": "token"},
        # When the head is gone, end soon and join the next one; Ray's own patience is a minute.
        {"name": "RAY_gcs_rpc_server_reconnect_timeout_s", "value": "10"},
        {"name": "RAY_AUTH_TOKEN", "valueFrom": token},
    ]
    mounts = {"exchange": EXCHANGE, "shm": "/dev/shm", "tmp": "/tmp"}
    return _container("executor", agent_image, env, mounts) | {
        "readinessProbe": {
            # The executor writes its reports once it is connected to Ray, and removes them when it starts.
            "exec": {"command": ["test", "-e", f"{EXCHANGE}/reports.json"]},
            "periodSeconds": 1,
            "failureThreshold": 1,
        },
    }


def _reporter(key: ClusterKey, agent_image: str) -> dict[str, Any]:
    env = [
        {"name": "WORKERGROUPS_CLUSTER", "value": key.name},
        {"name": "WORKERGROUPS_NAMESPACE", "value": key.namespace},
    ]
    return _container("reporter", agent_image, env, {"exchange": EXCHANGE, "token": _TOKEN_MOUNT})


def _token_sources() -> list[dict[str, Any]]:
    namespace = {"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}
    return [
        {"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [namespace]}},
    ]
