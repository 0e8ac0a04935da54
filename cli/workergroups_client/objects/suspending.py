"""Wait until a pool has no pods, or a group has no ranks."""

from __future__ import annotations

from workergroups_api.vocabulary import ConditionType

from ..api_server.cluster import Cluster
from ..errors import ClientError, DeadlineError, UnreachableError
from ..times import duration
from ..waiting import Tell, look_again
from .names import Target, find
from .status import status_of


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
        if not status.is_current or suspended is None:
            continue
        if suspended.status == "True":
            return
        left = suspended.message
        tell(f"{target}: {left}")
    raise DeadlineError(f"{target} is not suspended within {duration(seconds)}: {left}")
