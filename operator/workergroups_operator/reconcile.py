"""The loop, for one RayCluster with all its pools and groups."""

import secrets
from datetime import UTC, datetime

from workergroups_api.kube import API_ERRORS, Kube, api_error_message
from workergroups_operator.apply import apply
from workergroups_operator.decisions import decide
from workergroups_operator.desired import desired
from workergroups_operator.heartbeats import Heartbeats
from workergroups_operator.membership import ClusterKey, Membership
from workergroups_operator.observe import observe
from workergroups_operator.publish import publish
from workergroups_operator.settings import Settings
from workergroups_operator.status import status
from workergroups_operator.try_pods import try_pods
from workergroups_operator.work_queue import Result


async def reconcile(
    client: Kube, membership: Membership, heartbeats: Heartbeats, settings: Settings, key: ClusterKey
) -> Result:
    """Bring the cluster to what its pools and groups ask for, and say on them what is true."""
    try:
        observed = await observe(client, membership, heartbeats, key)
        decisions = decide(observed, await try_pods(client, observed, settings), settings)
        wanted = desired(observed, decisions, fresh_token=secrets.token_urlsafe(32))
        failures = await apply(client, observed, decisions, wanted)
        statuses = status(observed, decisions, failures, datetime.now(UTC))
        unpublished = await publish(client, statuses.updates)
    except API_ERRORS as error:
        return Result(None, f"the API server cannot be asked: {api_error_message(error)[:500]}", is_urgent=True)
    if statuses.requeue_after is None:
        heartbeats.forget(key)
    return Result(statuses.requeue_after, unpublished or failures.summary, is_urgent=unpublished is not None)
