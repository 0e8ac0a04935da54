"""A connection to a Ray cluster from this machine: the tunnel, the token, and Ray's API."""

from __future__ import annotations

from ..api_server.cluster import Cluster
from ..api_server.tunnel import Tunnel
from ..objects import names
from ..waiting import Tell, silently
from .heads import head_pod
from .ray_api import UP_SECONDS, RayApi

DASHBOARD_PORT = 8265


class RayConnection:
    """Holds the tunnel until it is closed; finds the head again after the head was replaced.

    Args:
        cluster: The Kubernetes cluster.
        ray_cluster: The name of the RayCluster.
        local_port: A port of this machine; 0 for a free one.
        tell: Called with progress messages until the dashboard answers.
        seconds: How long to wait for the dashboard.

    Raises:
        DeadlineError: The dashboard did not answer in time.
    """

    def __init__(
        self,
        cluster: Cluster,
        ray_cluster: str,
        local_port: int = 0,
        tell: Tell = silently,
        seconds: float = UP_SECONDS,
    ) -> None:
        self.token = names.token(cluster, ray_cluster)
        self._tunnel = Tunnel(cluster, lambda: head_pod(cluster, ray_cluster), DASHBOARD_PORT, local_port)
        self.api = RayApi(self._tunnel, self.token)
        try:
            self.api.wait_until_up(tell, seconds)
        except BaseException:
            self.close()
            raise

    @property
    def url(self) -> str:
        """The address of Ray's dashboard and of Ray's jobs API."""
        return self._tunnel.url

    @property
    def environment(self) -> dict[str, str]:
        """The variables with which Ray's own tools find the cluster and authenticate."""
        return {"RAY_ADDRESS": self.url, "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": self.token}

    def close(self) -> None:
        """Close the tunnel."""
        self._tunnel.close()

    def __enter__(self) -> RayConnection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
