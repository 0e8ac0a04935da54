"""A cluster that is a list of objects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from workergroups_api.names import CLUSTER_LABEL, COMPONENT_LABEL

SOON = "2026-01-01T00:00:00Z"


class FakeCluster:
    """What the client's functions read of a Cluster."""

    server, context = "https://cluster.example", "example"

    def __init__(self, *objects: dict[str, Any], namespace: str = "team") -> None:
        self.objects, self.namespace = objects, namespace

    @property
    def options(self):
        return f"-n {self.namespace} --context lab"

    def get(self, kind, name):
        return next((each for each in self.select(kind) if each["metadata"]["name"] == name), None)

    def select(self, kind, selector="", *, everywhere=False):
        wanted = dict(label.split("=") for label in selector.split(",") if label)
        return [
            each
            for each in self.objects
            if each["kind"] == kind.kind
            and (everywhere or each["metadata"]["namespace"] == self.namespace)
            and wanted.items() <= (each["metadata"].get("labels") or {}).items()
        ]


class WritableCluster(FakeCluster):
    """Also takes what the client writes, as far as the API server's rules matter to it."""

    def apply(self, manifest, *, force=False):
        found = self.get(_Named(manifest["kind"]), manifest["metadata"]["name"])
        if found is None:
            found = {**manifest, "metadata": {"namespace": self.namespace}}
            self.objects = (*self.objects, found)
        found["metadata"].update(manifest["metadata"])
        return found

    def merge(self, kind, name, patch):
        found = self.get(kind, name)
        data = {**found.get("data", {}), **patch["data"]}
        found["data"] = {key: value for key, value in data.items() if value is not None}


@dataclass
class _Named:
    kind: str


def labels(component, ray_cluster="ppo"):
    """Those of a pod of a Ray cluster."""
    return {CLUSTER_LABEL: ray_cluster, COMPONENT_LABEL: component}


def head(name="ppo-head", life="life-1", **metadata):
    """A pod in which Ray's head runs, or did if there is no life."""
    running = [{"name": "ray-head", "containerID": life, "restartCount": 0, "state": {"running": {}}}] if life else []
    status = {"phase": "Running" if life else "Failed", "containerStatuses": running}
    metadata = {"name": name, "namespace": "team", "uid": f"uid-of-{name}", "labels": labels("head"), **metadata}
    return {"kind": "Pod", "metadata": metadata, "status": status}


def pool(name, namespace="team", status=None, **spec):
    """A ResourcePool."""
    return _object("ResourcePool", name, namespace, {"processesPerNode": 2, **spec}, status)


def group(name, namespace="team", status=None, **spec):
    """A WorkerGroup."""
    return _object("WorkerGroup", name, namespace, spec, status)


def condition(type_, status, reason="Because", message="it is so"):
    """A condition of either."""
    return {"type": type_, "status": status, "reason": reason, "message": message, "lastTransitionTime": SOON}


def _object(kind, name, namespace, spec, status):
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-of-{name}", "generation": 2}
    return {"kind": kind, "metadata": metadata, "spec": spec, "status": status or {}}
