"""Wait until a pool has no pods, or a group no ranks; wake a pool that the operator has suspended for being idle."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timezone

from workergroups_api.names import WAKE_AT_ANNOTATION
from workergroups_api.vocabulary import ConditionType

from ..api_server.cluster import Cluster
from ..errors import ClientError, DeadlineError, UnreachableError
from ..times import duration
from ..waiting import Tell, look_again
from .names import Target, find
from .readiness import wait_until_ready, why
from .reading import pool_status
from .status import Status, status_of

_SEEN_SECONDS = 60.0
_READY_SECONDS = 86400.0


def wait_until_suspended(cluster: Cluster, target: Target, tell: Tell, seconds: float) -> None:
    """Wait until the condition Suspended is True.

    Raises:
        ClientError: The object was resumed meanwhile.
        DeadlineError: It is not suspended within `seconds`.
    """
    left = "the operator has not seen it yet: check that it runs: kubectl get pods -n workergroups-system"
    for _ in look_again(seconds, pause=1):
        try:
            found = find(cluster, f"{target.what}/{target.name}")
        except UnreachableError as error:
            tell(f"{target}: {error}")
            continue
        if not found.manifest["spec"].get("suspend"):
            raise ClientError(f"{target} is not suspended: it was resumed")
        status = status_of(found)
        suspended = status.condition(ConditionType.SUSPENDED)
        if status.is_current and suspended is not None:
            if suspended.status == "True":
                return
            left = suspended.message
        tell(f"{target}: {left}")
    raise DeadlineError(f"{target} is not suspended within {duration(seconds)}: {left}")


def wake(cluster: Cluster, pool: Target, tell: Tell) -> None:
    """Wake the pool, and wait until it is ready; do nothing with a pool that only its user suspends."""
    if not begin_to_wake(cluster, pool, tell):
        return

    def show(statuses: Sequence[Status]) -> None:
        for status in statuses:
            tell(f"pool {status.name}: " + ("ready" if status.is_ready else why(status)))

    wait_until_ready(cluster, [pool], show, _READY_SECONDS)


def begin_to_wake(cluster: Cluster, pool: Target, tell: Tell) -> bool:
    """Wake the pool, and wait until the operator has seen it; return whether that is for it to do: see `wake`."""
    spec = pool.manifest["spec"]
    if spec.get("idle") is None or spec.get("suspend"):
        return False
    now = datetime.now(timezone.utc).isoformat()
    cluster.annotate(pool.kind, pool.name, WAKE_AT_ANNOTATION, now)
    tell(f"waking pool {pool.name}")
    # The operator may be about to suspend it: what it says counts only after it has seen the annotation.
    for _ in look_again(_SEEN_SECONDS):
        with suppress(UnreachableError):
            idle = pool_status(find(cluster, f"{pool.what}/{pool.name}")).idle
            if idle is not None and idle.wake_at == now:
                return True
    raise DeadlineError(
        f"the operator has not seen within {_SEEN_SECONDS:.0f} s that pool {pool.name} is wanted: check that it "
        f"runs: kubectl get pods -n workergroups-system"
    )
