"""The plan for the agent, and the ConfigMap that carries it."""

import json
from collections.abc import Mapping, Sequence

from workergroups_api.kube import Manifest
from workergroups_api.names import PLAN_KEY, node_group, plan_name
from workergroups_api.plan import ClusterPlan, PlannedGroup, PlannedNode, PlannedPool
from workergroups_api.resource_pool import ResourcePool
from workergroups_api.worker_group import WorkerGroup
from workergroups_operator.membership import ClusterKey
from workergroups_operator.policy.seating import Refusal, Seating

# A group's ranks are made once; restart policies will count on from here.
FIRST_INCARNATION = 1


def cluster_plan(
    key: ClusterKey, pools: Sequence[ResourcePool], groups: Sequence[WorkerGroup], seating: Mapping[str, Seating]
) -> ClusterPlan:
    """All pools, and the groups that have seats."""
    planned = (_group(group, seating[group.name]) for group in groups)
    return ClusterPlan(
        cluster=key.name,
        pools=tuple(_pool(pool) for pool in pools),
        groups=tuple(group for group in planned if group is not None),
    )


def config_map(plan: ClusterPlan) -> Manifest:
    """The plan as one key; sorted, so that the same plan is the same text."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": plan_name(plan.cluster)},
        "data": {PLAN_KEY: json.dumps(plan.to_json(), sort_keys=True, indent=1)},
    }


def _pool(pool: ResourcePool) -> PlannedPool:
    spec = pool.spec
    devices = {} if spec.accelerator.vendor == "none" else {"GPU": float(spec.accelerator.count_per_process)}
    return PlannedPool(
        name=pool.name,
        uid=pool.uid,
        generation=pool.generation,
        vendor=spec.accelerator.vendor,
        nodes=tuple(PlannedNode(node_group=node_group(pool.name, n), processes=n) for n in spec.processes_per_node),
        bundle={"CPU": float(spec.max_colocate_count)} | devices,
        max_colocate_count=spec.max_colocate_count,
    )


def _group(group: WorkerGroup, seats: Seating) -> PlannedGroup | None:
    if isinstance(seats, Refusal):
        return None
    spec = group.spec
    return PlannedGroup(
        name=group.name,
        uid=group.uid,
        generation=group.generation,
        incarnation=FIRST_INCARNATION,
        seats=seats,
        class_path=spec.worker.class_,
        init_args=spec.worker.args,
        init_kwargs=spec.worker.kwargs_ or {},
        config_map=spec.code.config_map.name if spec.code else None,
        env={variable.name: variable.value for variable in spec.env},
    )
