"""verl's module of that name: everything that its users import from ``single_controller.ray.base``."""

from workergroups.single_controller.base import ClassWithInitArgs, ResourcePool, Worker, WorkerGroup

from .colocation import (
    create_colocated_worker_cls,
    create_colocated_worker_cls_fused,
    create_colocated_worker_raw_cls,
)
from .pool_manager import ResourcePoolManager
from .rank_class import RayClassWithInitArgs
from .resource_pool import (
    RayResourcePool,
    SubRayResourcePool,
    merge_resource_pool,
    split_resource_pool,
)
from .worker_group import RayWorkerGroup

__all__ = [
    "ClassWithInitArgs",
    "RayClassWithInitArgs",
    "RayResourcePool",
    "RayWorkerGroup",
    "ResourcePool",
    "ResourcePoolManager",
    "SubRayResourcePool",
    "Worker",
    "WorkerGroup",
    "create_colocated_worker_cls",
    "create_colocated_worker_cls_fused",
    "create_colocated_worker_raw_cls",
    "merge_resource_pool",
    "split_resource_pool",
]
