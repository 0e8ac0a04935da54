"""`ResourcePoolManager`: the pools of a training program, by the roles that use them."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from workergroups.errors import InvalidValueError, UnknownKeyError
from workergroups.ray_private.cluster_state import live_nodes
from workergroups.waiting import poll

from .resource_pool import RayResourcePool

# Ray's control service counts the resources of a closed pool as free after the next report of its nodes.
_REPORT_SECONDS = 5.0


@dataclass
class ResourcePoolManager:
    """Creates the pools of a trainer, as verl's class of this name.

    Args:
        resource_pool_spec: By pool: how many processes, with a GPU each, on each of its nodes.
        mapping: By role: the name of its pool.
        max_colocate_count: How many groups can share a pool's processes.
    """

    resource_pool_spec: dict[str, list[int]]
    mapping: dict[Hashable, str]
    max_colocate_count: int = 3
    resource_pool_dict: dict[str, RayResourcePool] = field(default_factory=dict)

    def create_resource_pool(self) -> None:
        """Create the pools. Each is reserved when it is first used.

        Raises:
            ValueError: For 5 s, the cluster has had fewer free GPUs than all pools need.
        """
        self._check_resource_available()
        for name, process_on_nodes in self.resource_pool_spec.items():
            self.resource_pool_dict[name] = RayResourcePool(
                process_on_nodes, name_prefix=name, max_colocate_count=self.max_colocate_count
            )

    def get_resource_pool(self, role: Hashable) -> RayResourcePool:
        """Return the pool of a role.

        Raises:
            KeyError: The role has no pool.
        """
        try:
            return self.resource_pool_dict[self.mapping[role]]
        except KeyError:
            known = ", ".join(str(role) for role, pool in self.mapping.items() if pool in self.resource_pool_dict)
            raise UnknownKeyError(f"there is no pool for role {role}; there are pools for {known or 'none'}") from None

    def get_n_gpus(self) -> int:
        """Return how many GPUs all pools have."""
        return sum(sum(process_on_nodes) for process_on_nodes in self.resource_pool_spec.values())

    def _check_resource_available(self) -> None:
        needed = self.get_n_gpus()
        if not poll(lambda: _free_gpus() >= needed, timeout=_REPORT_SECONDS):
            raise InvalidValueError(
                f"the pools need {needed} GPUs, but {_free_gpus():g} are free: {self.resource_pool_spec}"
            )


def _free_gpus() -> float:
    return sum(node.available.get("GPU", 0) or node.available.get("NPU", 0) for node in live_nodes())
