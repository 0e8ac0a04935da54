"""Read in which domains of their pool's topology pods are: a label of their Kubernetes nodes.

It is read once for each pod, since afterwards the plan has it. A label that changes later moves no rank.
"""

import asyncio
import logging
from functools import partial

from kubernetes.aio.dynamic.exceptions import ForbiddenError

from workergroups_api.manifest import NODE, name_of
from workergroups_api.resource_pool import ResourcePool
from workergroups_api.vocabulary import Component
from workergroups_kube import Kube, RefusedObject, api_error_message
from workergroups_operator.observed import Domains, Observed, node_group_of

LOGGER = logging.getLogger(__name__)


async def pod_domains(client: Kube, seen: Observed) -> dict[str, Domains]:
    """Return where the pods are of each pool whose nodes are numbered along a topology, by the pool's name."""
    pools = [pool for pool in seen.pools if pool.has_domains]
    found = await asyncio.gather(*(_of_pool(client, pool, seen) for pool in pools))
    return {pool.name: domains for pool, domains in zip(pools, found, strict=True)}


async def _of_pool(client: Kube, pool: ResourcePool, seen: Observed) -> Domains:
    planned = seen.planned_pool(pool.uid)
    known = (planned.domains if planned else None) or {}
    nodes = {
        name_of(pod): str(pod["spec"]["nodeName"])
        for pod in seen.pods_of(Component.WORKER, node_group_of(pool))
        if "nodeName" in pod["spec"]
    }
    unknown = sorted({node for pod, node in nodes.items() if pod not in known})
    label = partial(_label, client, seen.key.namespace, pool.spec.topology.key)
    try:
        # One first: without the right to read nodes, the others would be refused, too.
        labels = [await label(node) for node in unknown[:1]]
        labels += await asyncio.gather(*map(label, unknown[1:]))
    except ForbiddenError as error:
        return Domains(unreadable=api_error_message(error))
    read = {node: label for node, label in zip(unknown, labels, strict=True) if label is not None}
    found = {pod: known.get(pod, read.get(node)) for pod, node in nodes.items()}
    return Domains({pod: domain for pod, domain in found.items() if domain is not None})


async def _label(client: Kube, namespace: str, key: str, node: str) -> str | None:
    """Return the value of a node's label, "" if it has none; None if there is no such node."""
    try:
        found = await client.get(NODE, None, node, on_behalf_of=namespace)
    except RefusedObject as error:
        LOGGER.warning("node %s is ignored: %s", node, error)
        return ""
    return None if found is None else str((found["metadata"].get("labels") or {}).get(key, ""))
