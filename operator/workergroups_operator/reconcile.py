"""The loop, for one RayCluster with all its pools and groups."""

import logging
import secrets
from datetime import UTC, datetime

from workergroups_api.kube import API_ERRORS, Kube, api_error_message
from workergroups_operator.apply import apply
from workergroups_operator.decisions import decide
from workergroups_operator.desired import desired
from workergroups_operator.failures import internal_error
from workergroups_operator.heartbeats import Heartbeats
from workergroups_operator.isolation import pure_steps, without_culprits
from workergroups_operator.membership import ClusterKey, Membership
from workergroups_operator.observe import observe, observe_members
from workergroups_operator.observed import Observed
from workergroups_operator.publish import publish
from workergroups_operator.settings import Settings
from workergroups_operator.status import status
from workergroups_operator.status.unknown import unknown
from workergroups_operator.try_pods import try_pods
from workergroups_operator.work_queue import Result

LOGGER = logging.getLogger(__name__)


async def reconcile(
    client: Kube, membership: Membership, heartbeats: Heartbeats, settings: Settings, key: ClusterKey
) -> Result:
    """Bring the cluster to what its pools and groups ask for, and say on them what is true."""
    try:
        result = await _isolated(client, membership, heartbeats, settings, key)
    except API_ERRORS as error:
        return Result(None, f"the API server cannot be asked: {api_error_message(error)[:500]}", is_urgent=True)
    if result == Result(None):
        heartbeats.forget(key)
    return result


async def _isolated(
    client: Kube, membership: Membership, heartbeats: Heartbeats, settings: Settings, key: ClusterKey
) -> Result:
    """Take a turn; if it raises, without the objects that made it raise; if it still does, report that nobody knows."""
    try:
        return await _turn(client, settings, await observe(client, membership, heartbeats, key))
    except API_ERRORS:
        raise
    except Exception:
        LOGGER.exception("%s: this turn is taken again without the object that made it fail", key)
    try:
        observed = await observe(client, membership, heartbeats, key)
        return await _turn(client, settings, without_culprits(observed, pure_steps(settings)))
    except API_ERRORS:
        raise
    except Exception as error:
        LOGGER.exception("%s: no single object made this turn fail", key)
        return await _nobody_knows(client, await observe_members(client, membership, key), error)


async def _turn(client: Kube, settings: Settings, observed: Observed) -> Result:
    decisions = decide(observed, await try_pods(client, observed, settings), settings)
    wanted = desired(observed, decisions, fresh_token=secrets.token_urlsafe(32))
    failures = await apply(client, observed, decisions, wanted)
    statuses = status(observed, decisions, failures, datetime.now(UTC))
    unpublished = await publish(client, statuses.updates)
    return Result(statuses.requeue_after, unpublished or failures.summary, is_urgent=unpublished is not None)


async def _nobody_knows(client: Kube, observed: Observed, error: Exception) -> Result:
    way_out = (
        f"the operator cannot handle what exists for cluster {observed.key.name} together, so nobody knows what is "
        "true: see the operator's log and report it; what runs goes on"
    )
    why = internal_error(error, way_out)
    await publish(client, tuple(unknown(observed, why, datetime.now(UTC))))
    return Result(None, why.message, is_urgent=True)
