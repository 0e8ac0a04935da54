"""The errors of this library. Each message names what is wrong and what to do about it."""

from __future__ import annotations

from functools import partial
from typing import Any

from ray.exceptions import RayActorError, RayError

from workergroups_api.vocabulary import RankEnd


class InvalidValueError(ValueError, AssertionError):
    """An argument or a batch that cannot be used. Also an AssertionError, which verl raises in many such places."""


class InvalidTypeError(TypeError, AssertionError):
    """An argument of a type that cannot be used. Also an AssertionError, which verl raises in many such places."""


class UnknownKeyError(KeyError, AssertionError):
    """There is no column, or no role, of that name. Also an AssertionError, which verl raises for columns."""


class PlacementTimeoutError(TimeoutError):
    """A pool's placement groups were not placed within the deadline; the message names what is short."""


class PlacementImpossibleError(PlacementTimeoutError, InvalidValueError):
    """A pool needs more than the whole cluster has, and nothing adds nodes to it, so waiting would be in vain."""


class PoolClosedError(RuntimeError):
    """The resource pool was closed, and its placement groups are gone."""


class GroupClosedError(RuntimeError):
    """The worker group was closed: its ranks are gone, or this handle on them was given up."""


class GroupNotFoundError(TimeoutError):
    """No complete worker group of that name, or no newer incarnation of it, was found within the deadline."""


class GroupFailedError(GroupNotFoundError):
    """The WorkerGroup's ranks have failed, and by its ``failurePolicy`` the operator does not recreate them."""


class NotAttachedError(RuntimeError):
    """Only the ranks of a group that ``attach`` returned are replaced, so no other group can be renewed."""


class PoolNotFoundError(TimeoutError):
    """Not all bundles of a ResourcePool of that name were found within the deadline."""


class RendezvousTimeoutError(TimeoutError):
    """Rank 0 did not publish its address within the deadline."""


class BatchLostError(RuntimeError):
    """A batch was on the device of a rank that has ended, or cannot be reached; the message names it."""


class WeightsError(RuntimeError):
    """Weights cannot be published or received; the message names the tensor or the rank."""


class LateCallError(TimeoutError):
    """A call did not return within its deadline. The ranks continue with it; the message has their Python stacks.

    Attributes:
        method_name: The method that was called.
        ranks: The ranks that have not returned.
        seconds: How long ago the call was made.
        stacks: The Python stacks of each of these ranks.
    """

    def __init__(
        self, message: str, method_name: str, ranks: list[int], seconds: float, stacks: dict[int, str]
    ) -> None:
        super().__init__(message)
        self.method_name = method_name
        self.ranks = ranks
        self.seconds = seconds
        self.stacks = stacks

    def __reduce__(self) -> tuple[type[LateCallError], tuple[object, ...]]:
        return type(self), (str(self), self.method_name, self.ranks, self.seconds, self.stacks)


class RankRaisedError(RayError):  # type: ignore[misc]  # Ray's classes are untyped
    """A method raised an exception on a rank, which lives on.

    It is also an error of the exception's own class and Ray's `RayTaskError`, so ``except KeyError`` catches it. If the
    driver cannot load the exception's class, it is neither. Its text has the rank, its devices and their memory, and
    the traceback.

    Attributes:
        rank: The rank within its group, from 0.
        group: The WorkerGroup's name, or the ``name_prefix`` of a group that a program created.
    """

    rank: int
    group: str


class RankDiedError(RayActorError):  # type: ignore[misc]  # Ray's classes are untyped
    """A rank is dead. A Ray actor error, so that ``except RayActorError`` still catches it.

    If the group is attached, ``group.renew()`` waits for the ranks that replace it.

    Attributes:
        rank: The rank within its group, from 0.
        reason: What ended it, as in the WorkerGroup's status: ``ProcessDied``, ``NodeLost``, ...
        group: The WorkerGroup's name, or the ``name_prefix`` of a group that a program created.
        incarnation: The number of its incarnation; ``None`` if a program created the group.
        cause: Ray's account of the death, or the constructor's exception. The message adds what the node knows of it.
    """

    def __init__(
        self,
        message: str,
        *,
        rank: int,
        group: str,
        incarnation: int | None,
        actor_id: str,
        reason: RankEnd,
        cause: str,
    ) -> None:
        super().__init__(actor_id, message)
        self.rank = rank
        self.cause = cause
        self.reason = reason
        self.group = group
        self.incarnation = incarnation

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(type(self), **self._named()), (str(self),)

    def _named(self) -> dict[str, Any]:
        """Return the arguments that the constructor takes by name."""
        names = ("rank", "group", "incarnation", "actor_id", "reason", "cause")
        return {name: getattr(self, name) for name in names}


class IncarnationReplacedError(RankDiedError):
    """The ranks of a WorkerGroup were replaced by those of a newer incarnation, and what they had in memory is gone.

    ``group.renew()`` waits for the new ranks.

    Attributes:
        incarnation: The incarnation whose ranks these were.
        current: The incarnation that is current now; it may be lower, if the WorkerGroup was deleted and recreated.
        cause: Which rank failed and how, if the ranks were replaced for that; else Ray's account of this rank's death.
    """

    def __init__(
        self,
        message: str,
        *,
        rank: int,
        group: str,
        incarnation: int,
        current: int,
        actor_id: str,
        reason: RankEnd,
        cause: str,
    ) -> None:
        super().__init__(
            message, rank=rank, group=group, incarnation=incarnation, actor_id=actor_id, reason=reason, cause=cause
        )
        self.current = current

    def _named(self) -> dict[str, Any]:
        return {**super()._named(), "current": self.current}
