"""The operator's settings, which the chart passes as environment variables."""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from workergroups_api.manifest import Manifest


def served_namespaces() -> list[str]:
    """Return the namespaces in the variable NAMESPACES; none if the operator serves all."""
    return [name for name in os.environ.get("NAMESPACES", "").split(",") if name]


@dataclass(frozen=True)
class NetworkSettings:
    """Who may connect to Ray's pods, besides the pods of their own cluster."""

    is_on: bool = True
    # NetworkPolicyPeers that may connect to Ray's dashboard, such as KubeRay's operator, which follows RayJobs.
    dashboard_from: Sequence[Manifest] = ()
    # NetworkPolicyEgressRules: where Ray's pods may connect to, besides the own cluster and DNS. None: anywhere.
    egress: Sequence[Manifest] | None = None

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read the chart's value `networkPolicy`, whose schema has checked it."""
        said = json.loads(text)
        return cls(
            is_on=said.get("enabled", True), dashboard_from=said.get("dashboardFrom") or (), egress=said.get("egress")
        )


@dataclass(frozen=True)
class Settings:
    """Images of clusters that do not run yet, and the network of all clusters."""

    # The default for pools that name no image.
    worker_image: str
    # The operator's own image: Ray's pods get the library from it.
    operator_image: str
    network: NetworkSettings = NetworkSettings()
    # Where Prometheus scrapes; None: nowhere.
    metrics_port: int | None = None
    # Where the Lease is that one process of the operator holds; None: there is no other process.
    lease_namespace: str | None = None

    @classmethod
    def from_environment(cls) -> Self:
        """Read WORKER_IMAGE and OPERATOR_IMAGE, which are required, and the others that the chart sets."""
        return cls(
            worker_image=os.environ["WORKER_IMAGE"],
            operator_image=os.environ["OPERATOR_IMAGE"],
            network=NetworkSettings.from_json(os.environ.get("NETWORK_POLICY", "{}")),
            metrics_port=int(port) if (port := os.environ.get("METRICS_PORT")) else None,
            lease_namespace=os.environ.get("LEASE_NAMESPACE"),
        )
