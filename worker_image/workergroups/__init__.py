"""Worker groups on Ray: verl's single-controller programming model, on a laptop's Ray and on Kubernetes.

Each name is imported when it is first used, so that `workergroups.client` works without Ray.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .attaching.groups import attach
    from .attaching.pools import attach_pool
    from .deaths.results import get
    from .distributed import init_process_group
    from .errors import (
        BatchLostError,
        GroupClosedError,
        GroupFailedError,
        GroupNotFoundError,
        IncarnationReplacedError,
        LateCallError,
        NotAttachedError,
        PlacementImpossibleError,
        PlacementTimeoutError,
        PoolClosedError,
        PoolNotFoundError,
        RankDiedError,
        RankRaisedError,
        RendezvousTimeoutError,
        WeightsError,
    )
    from .job_variables import attempt
    from .node.notice import Notice
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
    from .weights import Passport, PublishedWeights, Weights, WeightShard, check_weights

__all__ = [
    "BatchLostError",
    "Call",
    "Calls",
    "DataProto",
    "DataProtoConfig",
    "DataProtoFuture",
    "Dispatch",
    "Execute",
    "GroupClosedError",
    "GroupFailedError",
    "GroupNotFoundError",
    "IncarnationReplacedError",
    "LateCallError",
    "NotAttachedError",
    "Notice",
    "Passport",
    "PlacementImpossibleError",
    "PlacementTimeoutError",
    "PoolClosedError",
    "PoolNotFoundError",
    "PublishedWeights",
    "RankDiedError",
    "RankRaisedError",
    "RayClassWithInitArgs",
    "RayResourcePool",
    "RayWorkerGroup",
    "RendezvousTimeoutError",
    "ResourcePool",
    "ResourcePoolManager",
    "WeightShard",
    "Weights",
    "WeightsError",
    "Worker",
    "attach",
    "attach_pool",
    "attempt",
    "check_weights",
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

_HOME = {
    "BatchLostError": ".errors",
    "Call": ".single_controller.ray.calls",
    "Calls": ".single_controller.ray.calls",
    "DataProto": ".protocol",
    "DataProtoConfig": ".protocol",
    "DataProtoFuture": ".protocol",
    "Dispatch": ".single_controller.base.decorator",
    "Execute": ".single_controller.base.decorator",
    "GroupClosedError": ".errors",
    "GroupFailedError": ".errors",
    "GroupNotFoundError": ".errors",
    "IncarnationReplacedError": ".errors",
    "LateCallError": ".errors",
    "NotAttachedError": ".errors",
    "Notice": ".node.notice",
    "Passport": ".weights",
    "PlacementImpossibleError": ".errors",
    "PlacementTimeoutError": ".errors",
    "PoolClosedError": ".errors",
    "PoolNotFoundError": ".errors",
    "PublishedWeights": ".weights",
    "RankDiedError": ".errors",
    "RankRaisedError": ".errors",
    "RayClassWithInitArgs": ".single_controller.ray.base",
    "RayResourcePool": ".single_controller.ray.base",
    "RayWorkerGroup": ".single_controller.ray.base",
    "RendezvousTimeoutError": ".errors",
    "ResourcePool": ".single_controller.base",
    "ResourcePoolManager": ".single_controller.ray.base",
    "WeightShard": ".weights",
    "Weights": ".weights",
    "WeightsError": ".errors",
    "Worker": ".single_controller.base",
    "attach": ".attaching.groups",
    "attach_pool": ".attaching.pools",
    "attempt": ".job_variables",
    "check_weights": ".weights",
    "collect_all_to_all": ".single_controller.base.decorator",
    "create_colocated_worker_cls": ".single_controller.ray.base",
    "create_colocated_worker_cls_fused": ".single_controller.ray.base",
    "create_colocated_worker_raw_cls": ".single_controller.ray.base",
    "get": ".deaths.results",
    "init_process_group": ".distributed",
    "merge_resource_pool": ".single_controller.ray.base",
    "register": ".single_controller.base.decorator",
    "split_resource_pool": ".single_controller.ray.base",
}
"""The module of each name. No name may be a module's too: the module would be found instead."""


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOME[name], __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
