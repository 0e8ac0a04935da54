"""A Ray cluster within reach of this machine: tunnel, token, and Ray's API behind them."""

from __future__ import annotations

from . import names
from .cluster import Cluster
from .ray_api import UP_SECONDS, RayApi
from .tunnel import Tunnel
from .waiting import Tell, silently

DASHBOARD_PORT = 8265


class RayConnection:
    """Holds the tunnel until it is closed; a head that comes back is found again.

    Args:
        cluster: Where the Ray cluster is.
        ray_cluster: Its name.
        local_port: Of this machine; 0 for a free one.
        tell: Told what is waited for, while the dashboard does not serve yet.
        seconds: How long to wait for it.

    Raises:
        DeadlineError: It does not serve by then.
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
        self._tunnel = Tunnel(cluster, lambda: names.head_pod(cluster, ray_cluster), DASHBOARD_PORT, local_port)
        self.api = RayApi(self._tunnel, self.token)
        try:
            self.api.wait_until_up(tell, seconds)
        except BaseException:
            self.close()
            raise

    @property
    def url(self) -> str:
        """The address of Ray's dashboard and its jobs."""
        return self._tunnel.url

    @property
    def environment(self) -> dict[str, str]:
        """With these variables, Ray's own tools find the cluster and are let in."""
        return {"RAY_ADDRESS": self.url, "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": self.token}

    def close(self) -> None:
        """Take the tunnel down."""
        self._tunnel.close()

    def __enter__(self) -> RayConnection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
