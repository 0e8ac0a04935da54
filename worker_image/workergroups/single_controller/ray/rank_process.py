"""Set a rank's process up before the constructor of its class runs."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass

import ray

from workergroups.announcements import told_ends
from workergroups.debugger import stopping
from workergroups.node import group_env
from workergroups.ports import bind_any_port
from workergroups.processes import stack_dump
from workergroups.ray_private.process import accelerators_at_start
from workergroups.stacks import flight_recorder
from workergroups.warm import learning

from . import group_record, rank_seconds, told_errors
from .method_table import Signatures
from .visible_devices import bundle_devices, check_own_env, device_env, ray_name

_master_port: socket.socket | None = None
"""Of rank 0: where the group's ranks meet."""


@dataclass(frozen=True)
class RankLaunch:
    """What the creator of a group tells each rank's process. Calling it makes the process that rank."""

    rank: int
    world_size: int
    local_rank: int
    local_world_size: int
    wg_prefix: str
    device_name: str
    devices_per_rank: int
    """How many devices each bundle has."""
    master: tuple[str, str] | None
    """Address and port if the user chose them; otherwise rank 0 chooses them."""
    rank_zero: str | None
    """Rank 0's actor id; ``None`` for rank 0 itself."""
    methods: Mapping[str, bytes]
    """The class's registered methods, which rank 0 publishes; empty for the others."""
    signatures: Signatures
    """The signatures of the class's methods, which rank 0 publishes; empty for the others."""
    places: group_record.Places
    """Where the ranks are, which rank 0 publishes; empty for the others."""

    def __call__(self) -> None:
        """Set this process's environment; rank 0 also publishes the group's record.

        Raises:
            RendezvousTimeoutError: Rank 0 did not publish in time where the ranks meet.
            ValueError: The environment that the user gave the rank selects devices.
            RuntimeError: The pod does not have the variables that the group takes from Secrets and ConfigMaps.
        """
        learning.keep_warm(self.local_rank)
        check_own_env(ray.get_runtime_context().runtime_env.env_vars(), os.environ)
        group_env.require()
        actor_id = ray.get_runtime_context().get_actor_id()
        stack_dump.enable(actor_id)
        told_ends.enable(actor_id)
        flight_recorder.enable(actor_id)
        name = f"rank {self.rank} of {self.wg_prefix}" if self.wg_prefix else f"rank {self.rank}"
        stopping.enable(actor_id, name, self.local_rank)
        address, port = self._publish() if self.rank_zero is None else self._find_master(self.rank_zero)
        os.environ.update(
            RANK=str(self.rank),
            WORLD_SIZE=str(self.world_size),
            # verl's meaning: the rank's number among the processes that see the same devices. A rank sees only the
            # devices of its bundle, and no other rank of the group shares that.
            LOCAL_RANK="0",
            LOCAL_WORLD_SIZE="1",
            RAY_LOCAL_RANK=str(self.local_rank),
            RAY_LOCAL_WORLD_SIZE=str(self.local_world_size),
            MASTER_ADDR=address,
            MASTER_PORT=port,
            WG_PREFIX=self.wg_prefix,
            WG_BACKEND="ray",
        )
        told_errors.enable(actor_id)
        rank_seconds.enable()
        os.environ.update(device_env(self._own_devices(), self.device_name, os.environ))

    def _own_devices(self) -> list[str]:
        resource = ray_name(self.device_name)
        assigned = ray.get_runtime_context().get_accelerator_ids()[resource]
        of_node = accelerators_at_start(resource)
        return bundle_devices(assigned, of_node, self.devices_per_rank)

    def _publish(self) -> tuple[str, str]:
        address, port = self.master or _reserve_master()
        actor_id = ray.get_runtime_context().get_actor_id()
        record = group_record.GroupRecord(address, port, self.methods, self.signatures, self.places)
        group_record.publish(actor_id, record)
        return address, port

    def _find_master(self, rank_zero: str) -> tuple[str, str]:
        if self.master is not None:
            return self.master
        record = group_record.wait_for_record(rank_zero)
        return record.master_addr, record.master_port


def _reserve_master() -> tuple[str, str]:
    """Return the address of this node, and a port for MASTER_PORT that stays reserved for this process until it ends.

    The reservation is a socket that is bound but does not listen. The kernel never assigns such a port to a process
    that asks for any free port. But a second socket can bind it and listen on it if both set SO_REUSEADDR, as the
    TCPStore of ``torch.distributed`` does. So no other process can take the port between its choice and its use.
    """
    global _master_port
    if _master_port is None:
        _master_port = bind_any_port()
    address: str = ray.util.get_node_ip_address()
    return address.strip("[]"), str(_master_port.getsockname()[1])
