"""Wait until a condition of pools and groups has a status, or cannot get it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from workergroups_api.vocabulary import GROUP_CONDITIONS, POOL_CONDITIONS, ConditionType

from ..api_server.cluster import Cluster
from ..errors import CannotBeReadyError, ClientError, DeadlineError, UnreachableError
from ..times import duration
from ..waiting import Tell, look_again
from .names import GROUP, POOL, Target, find
from .readiness import why
from .status import Status, status_of

_CONDITIONS = {POOL: POOL_CONDITIONS, GROUP: GROUP_CONDITIONS}
_STATUSES = {"true": "True", "false": "False", "unknown": "Unknown"}
# An object that has failed may still get these.
_NO_SUCCESS = (ConditionType.FAILED, ConditionType.STALLED, ConditionType.SUSPENDED, ConditionType.IDLE)


@dataclass(frozen=True)
class Goal:
    """A condition with the status that it should have."""

    type: ConditionType
    status: str = "True"

    @classmethod
    def read(cls, text: str) -> Goal:
        """Return the goal that a text such as ``Ready``, ``UpToDate=False`` or ``condition=Ready`` names.

        Raises:
            ClientError: There is no such condition, or no such status.
        """
        name, equals, status = text.removeprefix("condition=").lower().partition("=")
        type_ = {each.lower(): each for each in ConditionType}.get(name)
        wanted = _STATUSES.get(status if equals else "true")
        if type_ is None or wanted is None:
            known = ", ".join(ConditionType)
            raise ClientError(f"{text!r} is no condition: write one of {known}; or CONDITION=False or =Unknown")
        return cls(type_, wanted)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of objects that have the condition."""
        return tuple(what for what, types in _CONDITIONS.items() if self.type in types)

    def is_reached(self, status: Status) -> bool:
        """Return whether the latest spec has the condition with this status."""
        found = status.condition(self.type)
        return status.is_current and found is not None and found.status == self.status

    def is_hopeless(self, status: Status) -> bool:
        """Return whether the object has failed, so that waiting does not help."""
        failed = status.condition(ConditionType.FAILED)
        has_failed = status.is_current and failed is not None and failed.status == "True"
        return has_failed and self.status == "True" and self.type not in _NO_SUCCESS

    def __str__(self) -> str:
        return str(self.type) if self.status == "True" else f"{self.type}={self.status}"


def wait_for(cluster: Cluster, targets: Sequence[Target], goal: Goal, tell: Tell, seconds: float) -> None:
    """Poll the statuses until all objects have reached the goal.

    Raises:
        CannotBeReadyError: One of them has failed, so that waiting does not help; or a group runs no method, so that it
            never gets the condition Complete.
        DeadlineError: They have not reached it within `seconds`.
        NotFoundError: One of them was deleted.
    """
    left = ""
    for _ in look_again(seconds, pause=1):
        try:
            statuses = [_status(cluster, target, goal) for target in targets]
        except UnreachableError as error:
            tell(f"waiting for {goal}: {error}")
            continue
        waiting = [status for status in statuses if not goal.is_reached(status)]
        if not waiting:
            return
        for status in waiting:
            if goal.is_hopeless(status):
                raise CannotBeReadyError(f"{status.what} {status.name} will not be {goal}: {why(status)}")
        left = "; ".join(f"{status.what} {status.name}: {_present(status, goal)}" for status in waiting)
        tell(f"waiting for {goal}: {left}")
    raise DeadlineError(f"not {goal} within {duration(seconds)}: {left}")


def _status(cluster: Cluster, target: Target, goal: Goal) -> Status:
    found = find(cluster, f"{target.what}/{target.name}")
    if goal.type == ConditionType.COMPLETE and not found.manifest["spec"].get("run"):
        raise CannotBeReadyError(f"{target} runs no method, so it is never {ConditionType.COMPLETE}: set its spec.run")
    return status_of(found)


def _present(status: Status, goal: Goal) -> str:
    """Return the condition in words, or why there is none yet."""
    found = status.condition(goal.type)
    if not status.is_current:
        return why(status)
    if found is None:
        return f"it has no condition {goal.type} yet; {why(status)}"
    return f"{found.type}={found.status}, {found.reason}" + (f": {found.message}" if found.message else "")
