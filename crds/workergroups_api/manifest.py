"""Manifests as plain dicts, and the kinds that operator and agent use."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from workergroups_api.names import API_VERSION

Manifest = dict[str, Any]


@dataclass(frozen=True)
class Kind:
    """A kind and its plural, so that no discovery is needed and no cache can be stale."""

    api_version: str
    kind: str
    plural: str
    is_namespaced: bool = True

    @property
    def group(self) -> str:
        """The API group; empty for the core group."""
        return self.api_version.rpartition("/")[0]

    @property
    def version(self) -> str:
        """The version of the API group."""
        return self.api_version.rpartition("/")[2]

    def manifest(self, metadata: Manifest, **fields: Any) -> Manifest:
        """Return an object of this kind."""
        return {"apiVersion": self.api_version, "kind": self.kind, "metadata": metadata, **fields}

    def reference(self, name: str, uid: str, **fields: Any) -> Manifest:
        """Return a reference to an object of this kind, as owners and events have it."""
        return {"apiVersion": self.api_version, "kind": self.kind, "name": name, "uid": uid, **fields}


RESOURCE_POOL = Kind(API_VERSION, "ResourcePool", "resourcepools")
WORKER_GROUP = Kind(API_VERSION, "WorkerGroup", "workergroups")
RAY_CLUSTER = Kind("ray.io/v1", "RayCluster", "rayclusters")
DEPLOYMENT = Kind("apps/v1", "Deployment", "deployments")
REPLICA_SET = Kind("apps/v1", "ReplicaSet", "replicasets")
POD = Kind("v1", "Pod", "pods")
SERVICE = Kind("v1", "Service", "services")
SECRET = Kind("v1", "Secret", "secrets")
CONFIG_MAP = Kind("v1", "ConfigMap", "configmaps")
SERVICE_ACCOUNT = Kind("v1", "ServiceAccount", "serviceaccounts")
ROLE = Kind("rbac.authorization.k8s.io/v1", "Role", "roles")
ROLE_BINDING = Kind("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings")
NAMESPACE = Kind("v1", "Namespace", "namespaces", is_namespaced=False)
NODE = Kind("v1", "Node", "nodes", is_namespaced=False)
NETWORK_POLICY = Kind("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies")
LEASE = Kind("coordination.k8s.io/v1", "Lease", "leases")
# The events that KubeRay writes. Ours are in the newer group.
CORE_EVENT = Kind("v1", "Event", "events")
EVENT = Kind("events.k8s.io/v1", "Event", "events")

# All of these, by what a manifest says of its kind.
KINDS = {(kind.api_version, kind.kind): kind for kind in tuple(globals().values()) if isinstance(kind, Kind)}


def kind_of(manifest: Manifest) -> Kind:
    """Return the kind that a manifest names."""
    return KINDS[manifest["apiVersion"], manifest["kind"]]


def name_of(manifest: Manifest) -> str:
    """Return the name of an object."""
    return str(manifest["metadata"]["name"])


def annotations_of(manifest: Manifest | None) -> Mapping[str, Any]:
    """Return the annotations of an object; none of one that does not exist."""
    return ((manifest or {}).get("metadata") or {}).get("annotations") or {}


def identity(manifest: Manifest) -> tuple[str, str]:
    """Return kind and name, which identify an object within its namespace."""
    return str(manifest["kind"]), name_of(manifest)
