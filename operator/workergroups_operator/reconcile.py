"""The loop, for one RayCluster with all its pools and groups: observe, desired, apply, status, publish."""

import asyncio
import secrets
from datetime import UTC, datetime

from workergroups_api.kube import Kube
from workergroups_operator.apply import apply
from workergroups_operator.desired import desired
from workergroups_operator.membership import ClusterKey, Membership
from workergroups_operator.observe import observe
from workergroups_operator.policy.seating import seat
from workergroups_operator.policy.sharing import share
from workergroups_operator.publish import publish
from workergroups_operator.settings import Settings
from workergroups_operator.status import status


async def reconcile(client: Kube, membership: Membership, settings: Settings, key: ClusterKey) -> float | None:
    """Bring the cluster to what its pools and groups ask for, and say on them what is true.

    Returns the seconds after which to look again without any event, None when there is nothing to care for.
    """
    observed = await observe(client, membership, key)
    sharing = share(observed.pools, settings.ray_version)
    seating = seat(observed.groups, sharing.accepted, observed.pools_elsewhere)
    wanted = desired(observed, sharing, seating, settings, fresh_token=secrets.token_urlsafe(32))
    failure = await apply(client, observed, wanted)
    truth = status(observed, sharing, seating, failure, datetime.now(UTC))
    await asyncio.gather(*(publish(client, statement) for statement in truth.statements))
    return truth.look_again_seconds
