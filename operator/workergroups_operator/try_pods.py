"""Step two: ask the API server whether it would take the pods that are still to be made, by dry runs.

KubeRay says neither which pool's pods it cannot make nor why, and stops at the first. Admission knows: schema,
quota, ServiceAccount, Pod Security, webhooks. A template that is new is also tried as a part of the RayCluster, alone:
so none can keep the RayCluster from being written for the other pools.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace

from kubernetes.aio.dynamic.exceptions import InternalServerError, NotFoundError

from workergroups_api.conditions import Explanation
from workergroups_api.kube import API_ERRORS, Kube, api_error_message, is_refusal
from workergroups_api.manifest import POD, Manifest
from workergroups_api.names import TEMPLATE_ANNOTATION
from workergroups_api.resource_pool import ResourcePool
from workergroups_operator.decisions import decide
from workergroups_operator.desired.ownership import owned
from workergroups_operator.desired.pods import head_template, worker_template
from workergroups_operator.desired.raycluster import ray_cluster
from workergroups_operator.observed import HEAD, WORKER, Observed, node_group_of
from workergroups_operator.policy.generated_names import without_generated_names
from workergroups_operator.policy.images import images_of
from workergroups_operator.settings import Settings


@dataclass(frozen=True)
class Trial:
    """What to ask about one kind of pod."""

    pod: Manifest
    # With this pool's nodes only; None if its template is part of the live one already.
    ray_cluster: Manifest | None = None


async def try_pods(client: Kube, observed: Observed, settings: Settings) -> Mapping[str, Explanation]:
    """Why pods are refused, by the name of their worker group, or HEAD; nothing about those that are taken."""
    trials = trials_of(observed, settings)
    answers = await asyncio.gather(*(_ask(client, trial) for trial in trials.values()))
    return {name: answer for name, answer in zip(trials, answers, strict=True) if answer is not None}


def trials_of(observed: Observed, settings: Settings) -> dict[str, Trial]:
    """A pod of each kind of which some are missing, or whose template is new. Pure."""
    if not observed.pools:
        return {}
    images = images_of(observed, settings)
    trials = {}
    if not observed.pods_of(HEAD):
        trials[HEAD] = Trial(_pod(observed, HEAD, head_template(observed.key, images, observed.pools[0])))
    for pool in observed.pools:
        name = node_group_of(pool)
        template = worker_template(observed.key, pool, images)
        is_new = _template_digest((observed.live_group(name) or {}).get("template")) != _template_digest(template)
        if is_new or len(observed.pods_of(WORKER, name)) < pool.spec.nodes:
            cluster = _ray_cluster(observed, pool, settings) if is_new else None
            trials[name] = Trial(_pod(observed, name, template), cluster)
    return trials


def _template_digest(template: Manifest | None) -> str | None:
    digest = ((template or {}).get("metadata") or {}).get("annotations", {}).get(TEMPLATE_ANNOTATION)
    return None if digest is None else str(digest)


def _pod(observed: Observed, name: str, template: Manifest) -> Manifest:
    where = {"namespace": observed.key.namespace, "generateName": f"{observed.key.name}-{name}-"}
    return {
        "apiVersion": POD.api_version,
        "kind": POD.kind,
        "metadata": {**template["metadata"], **where},
        "spec": template["spec"],
    }


def _ray_cluster(observed: Observed, pool: ResourcePool, settings: Settings) -> Manifest:
    alone = replace(observed, pools=(pool,), groups=())
    return owned(ray_cluster(alone, decide(alone, {}, settings), token=""), observed.key, [pool])


async def _ask(client: Kube, trial: Trial) -> Explanation | None:
    try:
        await client.create(trial.pod, dry_run=True)
        if trial.ray_cluster is not None:
            await client.apply(trial.ray_cluster, dry_run=True)
    except NotFoundError:
        return None  # There is no RayCluster kind, or the namespace is going: whoever writes it will say so.
    except API_ERRORS as error:
        why = without_generated_names(api_error_message(error))
        # A webhook that cannot be called shows as an internal error, and may stay one.
        if is_refusal(error) or isinstance(error, InternalServerError):
            return Explanation("PodsRefused", f"the API server refuses the pod: {why}")
        return Explanation("ApplyFailed", f"the pod cannot be tried now, and is tried again: {why}")
    return None
