"""Resource pools on Ray: bundles of placement groups, one per process; split and merged without new reservations."""

from __future__ import annotations

import secrets
import string
import sys
import warnings
from collections.abc import Iterable
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

import ray
from ray.util.placement_group import PlacementGroup

from workergroups.errors import InvalidValueError, PoolClosedError
from workergroups.protocol.packing import read_before_end
from workergroups.ray_private.cluster_state import all_dead
from workergroups.single_controller.base import ResourcePool
from workergroups.waiting import wait_for_end

from . import placement
from .closing import Closing
from .part import Part
from .ranks import Seat

if TYPE_CHECKING:
    from typing_extensions import Self  # in typing since Python 3.11

DEFAULT_PLACEMENT_TIMEOUT = 300.0
"""Seconds for which a pool waits for its placement groups, unless it is told otherwise."""

# verl's get_device_name() returns "cpu" if there is no device: the GPUs are only numbers in Ray then.
_RESOURCE_OF_DEVICE = {"cuda": "GPU", "amd": "GPU", "npu": "NPU", "cpu": "GPU"}


# The pools of this program that have reserved bundles, and have not been closed. A pool that is dropped without that is
# among them: its bundles stay reserved.
_HOLDING: set[RayResourcePool] = set()


class Bundle(NamedTuple):
    """One process's share of a node."""

    placement_group: PlacementGroup
    bundle_index: int
    devices: int | None = None
    """How many accelerators it has, if not as many as the pool's settings say."""
    device_name: str | None = None
    """The kind of these accelerators, if it is not the one that the group asks for."""


class RayResourcePool(Closing, ResourcePool):
    """Resources for ``sum(process_on_nodes)`` processes: one placement group per node, one bundle per process.

    Nothing is reserved before the first group is created on the pool, or ``get_placement_groups`` is called.
    ``close()``, or leaving a ``with`` block, releases everything and ends the ranks on it.

    Args:
        process_on_nodes: Processes on each node; nodes may differ.
        use_gpu: Whether each process has a GPU (or NPU).
        name_prefix: The start of the placement groups' names; random by default.
        max_colocate_count: How many groups may share the pool: each bundle has that many CPUs, and each rank takes
            1/max_colocate_count of its bundle's GPU. By default 10, or as many as the CPUs suffice for if this program
            has started Ray itself: then the attribute changes when the pool is reserved, with a warning.
        detached: Whether the reservation outlives the driver.
        accelerator_type: A Ray resource that the nodes must have, such as ``"accelerator_type:A100"``.
        timeout: Seconds until the placement groups must be placed, 300 by default. If it is given, the pool also waits
            for other pools of this program to be closed; otherwise, that is refused at once.
    """

    def __init__(
        self,
        process_on_nodes: list[int] | None = None,
        use_gpu: bool = True,
        name_prefix: str | None = None,
        max_colocate_count: int | None = None,
        detached: bool = False,
        accelerator_type: str | None = None,
        *,
        timeout: float | None = None,
    ) -> None:
        super().__init__(process_on_nodes, *(() if max_colocate_count is None else (max_colocate_count,)))
        self._has_default_count = max_colocate_count is None
        self.use_gpu = use_gpu
        self.name_prefix = random_prefix() if name_prefix is None else name_prefix
        self.detached = detached
        self.accelerator_type = accelerator_type
        self.timeout = DEFAULT_PLACEMENT_TIMEOUT if timeout is None else timeout
        self._waits_for_own = timeout is not None
        self._made_at = _caller()
        self._placed: list[Bundle] | None = None
        self._owned_groups: list[PlacementGroup] = []
        self._origins: list[RayResourcePool] = [self]
        self._rank_ids: set[str] = set()
        self._closed = False

    def get_placement_groups(
        self, strategy: str = "STRICT_PACK", name: str | None = None, device_name: str = "cuda"
    ) -> list[PlacementGroup]:
        """Return the placement groups in rank order; the first call reserves them.

        Each handle has only those bundles that are the pool's, numbered from 0, and so have verl's groups on this pool.
        `part.scheduling_strategy` places an actor in one of them.

        Args:
            strategy: Ray's placement strategy for the processes of one node.
            name: The start of the groups' names, instead of ``name_prefix``.
            device_name: ``"cuda"``, ``"amd"``, ``"npu"``, or ``"cpu"`` for GPUs that exist only as numbers in Ray.

        Raises:
            PlacementTimeoutError: Not placed within the pool's ``timeout``; the message names the short resource.
            PlacementImpossibleError: They can never be placed on the Ray that this program has started.
            PoolClosedError: The pool was closed.
        """
        by_group = groupby(self.bundles(strategy, name, device_name), key=lambda bundle: bundle.placement_group)
        return [Part(group, [bundle.bundle_index for bundle in bundles]) for group, bundles in by_group]

    def bundles(
        self, strategy: str = "STRICT_PACK", name: str | None = None, device_name: str = "cuda"
    ) -> list[Bundle]:
        """Return the bundle of each process in rank order; arguments and errors as for ``get_placement_groups``."""
        if self._closed:
            raise PoolClosedError(f"pool {self.name_prefix!r} is closed; create a new RayResourcePool")
        if self._placed is None:
            if not ray.is_initialized():
                ray.init()  # as Ray's own functions do
            if self._has_default_count:
                self._reduce_count(strategy, device_name)
            counts = "_".join(map(str, self._store))
            self._owned_groups = placement.place(
                str(self),
                name or f"{self.name_prefix}workergroups_{counts}:",
                self._store,
                self._bundle_resources(device_name),
                strategy=strategy,
                detached=self.detached,
                timeout=self.timeout,
                held={} if self._waits_for_own else {str(pool): pool._owned_groups for pool in list(_HOLDING)},
            )
            _HOLDING.add(self)
            self._placed = [
                Bundle(group, index)
                for group, count in zip(self._owned_groups, self._store, strict=True)
                for index in range(count)
            ]
        return self._placed

    def seats(self, strategy: str = "STRICT_PACK", device_name: str = "cuda") -> list[Seat]:
        """Return where each rank of a group on this pool runs, in rank order."""
        return [
            Seat(
                bundle.placement_group,
                bundle.bundle_index,
                local_rank,
                local_world_size,
                devices=bundle.devices,
                device_name=bundle.device_name,
            )
            for bundle, local_rank, local_world_size in zip(
                self.bundles(strategy, device_name=device_name),
                self.local_rank_list(),
                self.local_world_size_list(),
                strict=True,
            )
        ]

    def close(self) -> None:
        """Release the reservation and end the ranks on it. Pools from split or merge have no reservation themselves.

        Returns when Ray has removed everything; warns of what is left after 30 s.
        """
        owned, self._owned_groups = self._owned_groups, []
        try:
            if owned:
                read_before_end(self._rank_ids)
        finally:  # also if Ctrl-C ends the wait
            _HOLDING.discard(self)
            self._closed = True
            placement.remove(owned)
        # Ray ends the actors of a placement group a while after it has removed the group.
        wait_for_end(lambda: all_dead(self._rank_ids), what="the ranks on the pool")

    def __str__(self) -> str:
        return f"the pool of {self.world_size} made at {self._made_at}"

    @classmethod
    def over(cls, bundles: list[Bundle], name_prefix: str, *, use_gpu: bool, max_colocate_count: int) -> Self:
        """Return a pool over bundles, node after node, that another owner has reserved and keeps."""
        counts = [len(list(same)) for _, same in groupby(bundle.placement_group for bundle in bundles)]
        pool = cls(counts, use_gpu, name_prefix, max_colocate_count, detached=True)
        pool._placed = bundles
        pool._origins = []
        return pool

    def note_ranks(self, actor_ids: Iterable[str]) -> None:
        """Remember ranks that were created on this pool, so that closing it waits until they have ended."""
        ids = set(actor_ids)
        for origin in self._origins:
            origin._rank_ids |= ids

    def _reduce_count(self, strategy: str, device_name: str) -> None:
        """Let no more groups share the pool than there are CPUs for."""
        count = placement.fitting_cpus(self._store, self._bundle_resources(device_name), strategy)
        # A rank holds a share of its bundle's device, and its CPU only while it starts: without devices, all fit.
        if self.use_gpu and count is not None and count < self.max_colocate_count:
            groups = "one group" if count == 1 else f"{count} groups"
            warnings.warn(
                f"Ray has too few CPUs for {self.max_colocate_count} in each bundle of a pool of {self.world_size}: "
                f"reserving {count} in each, so at most {groups} can use the pool at a time. To choose the number "
                "yourself, set max_colocate_count",
                stacklevel=2,
            )
        self.max_colocate_count = count or 1

    def _bundle_resources(self, device_name: str) -> dict[str, float]:
        resources: dict[str, float] = {"CPU": self.max_colocate_count}
        if self.use_gpu:
            resources[accelerator_resource(device_name)] = 1
            if self.accelerator_type is not None:
                resources[self.accelerator_type] = 1e-4
        return resources

    def _over(
        self,
        cls: type[RayResourcePool],
        bundles: list[Bundle],
        name_prefix: str,
        more_origins: Iterable[RayResourcePool] = (),
    ) -> RayResourcePool:
        """Return a pool with this one's settings over bundles that are reserved already."""
        counts = [len(list(same)) for _, same in groupby(bundle.placement_group for bundle in bundles)]
        pool = cls(
            counts,
            self.use_gpu,
            name_prefix,
            self.max_colocate_count,
            self.detached,
            self.accelerator_type,
            timeout=self.timeout,
        )
        pool._placed = bundles
        pool._origins = [*self._origins, *more_origins]
        return pool


class SubRayResourcePool(RayResourcePool):
    """A range of another pool's bundles, made by `split_resource_pool`."""


def split_resource_pool(resource_pool: RayResourcePool, split_size: int | list[int]) -> list[RayResourcePool]:
    """Split a pool into pools over disjoint ranges of its bundles, which can be split further.

    Args:
        resource_pool: The pool; its resources are reserved if they were not.
        split_size: The world size of each result, or the one size of all.

    Raises:
        ValueError: The sizes do not sum to the pool's world size.
    """
    world_size = resource_pool.world_size
    if isinstance(split_size, int):
        if split_size < 1 or world_size % split_size:
            raise InvalidValueError(
                f"split_size {split_size} does not divide the pool's world size {world_size}; give a list of sizes"
            )
        split_size = [split_size] * (world_size // split_size)
    if sum(split_size) != world_size or min(split_size) < 1:
        raise InvalidValueError(
            f"the split sizes {split_size} must be positive and sum to the pool's world size {world_size}"
        )
    bundles = iter(resource_pool.bundles())
    return [
        resource_pool._over(
            SubRayResourcePool,
            [next(bundles) for _ in range(size)],
            f"{resource_pool.name_prefix}_split_{index}",
        )
        for index, size in enumerate(split_size)
    ]


def merge_resource_pool(rp1: RayResourcePool, rp2: RayResourcePool) -> RayResourcePool:
    """Return one pool over the bundles of both: the ranks on ``rp1`` first, then those on ``rp2``.

    Raises:
        ValueError: The pools differ in a setting that must be equal.
    """
    for setting in ("use_gpu", "max_colocate_count", "n_gpus_per_node", "detached"):
        one, two = getattr(rp1, setting), getattr(rp2, setting)
        if one != two:
            raise InvalidValueError(f"pools to be merged must have equal {setting}, not {one} and {two}")
    return rp1._over(
        RayResourcePool,
        rp1.bundles() + rp2.bundles(),
        f"{rp1.name_prefix}_{rp2.name_prefix}",
        more_origins=rp2._origins,
    )


def accelerator_resource(device_name: str) -> str:
    """Ray's resource for a kind of device.

    Raises:
        ValueError: The device has none; use pools without GPUs for it.
    """
    try:
        return _RESOURCE_OF_DEVICE[device_name]
    except KeyError:
        raise InvalidValueError(
            f"no accelerator resource is known for device_name {device_name!r}; use one of "
            f"{', '.join(_RESOURCE_OF_DEVICE)}, or a pool with use_gpu=False"
        ) from None


def _caller() -> str:
    """Return which line of the user's code runs."""
    frame = sys._getframe()
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).partition(".")[0] == "workergroups":
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def random_prefix() -> str:
    """Return six random letters or digits, which keep names of pools and groups apart, also after ``random.seed``."""
    return "".join(secrets.choice(string.ascii_letters + string.digits) for _ in range(6))
