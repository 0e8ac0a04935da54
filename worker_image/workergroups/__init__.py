"""Worker groups on Ray: verl's single-controller programming model, on a laptop's Ray and on Kubernetes."""

from .attach import attach
from .attach_pool import attach_pool
from .distributed import init_process_group
from .errors import (
    GroupClosedError,
    GroupNotFoundError,
    IncarnationReplacedError,
    LateCallError,
    PlacementImpossibleError,
    PlacementTimeoutError,
    PoolClosedError,
    PoolNotFoundError,
    RankDiedError,
    RendezvousTimeoutError,
)
from .protocol import DataProto, DataProtoConfig, DataProtoFuture
from .single_controller.base import ResourcePool, Worker
from .single_controller.base.decorator import Dispatch, Execute, collect_all_to_all, register
from .single_controller.ray.base import (
    RayClassWithInitArgs,
    RayResourcePool,
    RayWorkerGroup,
    ResourcePoolManager,
    create_colocated_worker_cls,
    create_colocated_worker_cls_fused,
    create_colocated_worker_raw_cls,
    merge_resource_pool,
    split_resource_pool,
)
from .single_controller.ray.calls import Call, Calls
from .single_controller.ray.results import get

__all__ = [
    "Call",
    "Calls",
    "DataProto",
    "DataProtoConfig",
    "DataProtoFuture",
    "Dispatch",
    "Execute",
    "GroupClosedError",
    "GroupNotFoundError",
    "IncarnationReplacedError",
    "LateCallError",
    "PlacementImpossibleError",
    "PlacementTimeoutError",
    "PoolClosedError",
    "PoolNotFoundError",
    "RankDiedError",
    "RayClassWithInitArgs",
    "RayResourcePool",
    "RayWorkerGroup",
    "RendezvousTimeoutError",
    "ResourcePool",
    "ResourcePoolManager",
    "Worker",
    "attach",
    "attach_pool",
    "collect_all_to_all",
    "create_colocated_worker_cls",
    "create_colocated_worker_cls_fused",
    "create_colocated_worker_raw_cls",
    "get",
    "init_process_group",
    "merge_resource_pool",
    "register",
    "split_resource_pool",
]
