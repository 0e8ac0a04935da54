"""Step two: ask the API server whether it would take the pods that are still to be made, by a strict dry run.

KubeRay says neither which pool's pods it cannot make nor why, and stops at the first. Admission knows: schema,
quota, ServiceAccount, Pod Security, webhooks.
"""

import asyncio
from collections.abc import Mapping

from kubernetes.aio.dynamic.exceptions import InternalServerError

from workergroups_api.conditions import Explanation
from workergroups_api.kube import API_ERRORS, Kube, api_error_message, is_refusal
from workergroups_api.manifest import POD, Manifest
from workergroups_api.names import TEMPLATE_ANNOTATION
from workergroups_operator.desired.pods import head_template, worker_template
from workergroups_operator.observed import HEAD, WORKER, Observed, node_group_of
from workergroups_operator.policy.running import versions
from workergroups_operator.settings import Settings


async def try_pods(client: Kube, observed: Observed, settings: Settings) -> Mapping[str, Explanation]:
    """Why pods are refused, by the name of their worker group, or HEAD; nothing about those that are taken."""
    pods = pods_to_try(observed, settings)
    answers = await asyncio.gather(*(_ask(client, pod) for pod in pods.values()))
    return {name: answer for name, answer in zip(pods, answers, strict=True) if answer is not None}


def pods_to_try(observed: Observed, settings: Settings) -> dict[str, Manifest]:
    """A pod of each kind of which some are missing, or whose template is new. Pure."""
    if not observed.pools:
        return {}
    running = versions(observed, settings)
    pods = {}
    if not observed.pods_of(HEAD):
        pods[HEAD] = _pod(observed, HEAD, head_template(observed.key, running, observed.pools[0]))
    for pool in observed.pools:
        name = node_group_of(pool)
        template = worker_template(observed.key, pool, running)
        is_new = _template_digest((observed.live_group(name) or {}).get("template")) != _template_digest(template)
        if is_new or len(observed.pods_of(WORKER, name)) < pool.spec.nodes:
            pods[name] = _pod(observed, name, template)
    return pods


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


async def _ask(client: Kube, pod: Manifest) -> Explanation | None:
    try:
        await client.create(pod, dry_run=True)
    except API_ERRORS as error:
        # A webhook that cannot be called shows as an internal error, and may stay one.
        if is_refusal(error) or isinstance(error, InternalServerError):
            return Explanation("PodsRefused", f"the API server refuses the pod: {api_error_message(error)}")
        return Explanation(
            "ApplyFailed", f"the pod cannot be tried now, and is tried again: {api_error_message(error)}"
        )
    return None
