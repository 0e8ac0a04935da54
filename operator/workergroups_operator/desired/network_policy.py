"""The NetworkPolicy of a cluster: Ray's pods are reached by each other, and by whom the administrator has allowed.

The agent's pod listens on no port, runs no user code, and must reach the API server, which a policy cannot name: it is
left alone. Policies add up: this one never lets through what the administrator's own would not let through otherwise.
"""

from collections.abc import Sequence
from typing import Any

from workergroups_api.manifest import NETWORK_POLICY, Manifest
from workergroups_api.names import CLUSTER_LABEL, COMPONENT_LABEL, network_policy_name
from workergroups_api.vocabulary import Component
from workergroups_operator.settings import NetworkSettings
from workergroups_operator.templates.probes import DASHBOARD_PORT

_RAYS_PODS = [str(Component.HEAD), str(Component.WORKER)]
_DNS = [{"port": 53, "protocol": protocol} for protocol in ("UDP", "TCP")]


def network_policy(cluster: str, settings: NetworkSettings) -> Manifest:
    """Return the policy. If the administrator wants none, it is for no pod, since the operator deletes nothing."""
    own = {"podSelector": {"matchLabels": {CLUSTER_LABEL: cluster}}}
    egress = {} if settings.egress is None else {"egress": _egress(own, settings.egress)}
    pods = {"key": COMPONENT_LABEL, "operator": "In", "values": _RAYS_PODS if settings.is_on else ["none"]}
    spec = {
        "podSelector": {"matchLabels": {CLUSTER_LABEL: cluster}, "matchExpressions": [pods]},
        "policyTypes": ["Ingress", "Egress"] if egress else ["Ingress"],
        "ingress": _ingress(own, settings),
        **egress,
    }
    return NETWORK_POLICY.manifest({"name": network_policy_name(cluster)}, spec=spec)


def _ingress(own: Manifest, settings: NetworkSettings) -> list[dict[str, Any]]:
    dashboard = [{"port": DASHBOARD_PORT, "protocol": "TCP"}]
    # A rule without peers would let everybody in.
    allowed = [{"from": list(settings.dashboard_from), "ports": dashboard}] if settings.dashboard_from else []
    return [{"from": [own]}, *allowed]


def _egress(own: Manifest, allowed: Sequence[Manifest]) -> list[dict[str, Any]]:
    return [{"to": [own]}, {"ports": _DNS}, *allowed]
