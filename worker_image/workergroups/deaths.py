"""Why an actor is dead: what the GCS's record of a death says, as one word and one sentence.

The record may hold the user's exception, pickled. Only its text is read: nothing of the user's is loaded here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from ray.core.generated.common_pb2 import ActorDiedErrorContext

from .last_line import last_line

Reason = Literal["ConstructorFailed", "OutOfMemory", "Removed", "NodeLost", "OwnerDied", "ProcessDied"]

_UNKNOWN = "Ray does not say why"
_SILENT_END = "its process ended without telling Ray: it was killed (SIGKILL, or by the kernel for memory) or crashed"

# What Ray's account holds -> what it means; the first that fits.
_REASON_OF_WORDS: tuple[tuple[str, Reason], ...] = (
    ("killed by `ray.kill`", "Removed"),
    ("placement group was removed", "Removed"),
    ("memory running low", "OutOfMemory"),
    ("its node has died", "NodeLost"),
)
_REASON_OF_CODE: dict[int, Reason] = {
    ActorDiedErrorContext.NODE_DIED: "NodeLost",
    ActorDiedErrorContext.RAY_KILL: "Removed",
    ActorDiedErrorContext.OWNER_DIED: "OwnerDied",
    ActorDiedErrorContext.OUT_OF_SCOPE: "Removed",
    ActorDiedErrorContext.REF_DELETED: "Removed",
}


@dataclass(frozen=True)
class Death:
    """Why an actor is dead."""

    reason: Reason
    message: str
    """One line: the constructor's exception, or Ray's account without what it says of every death."""
    details: str
    """All that Ray says, the traceback of the constructor's exception included; may be empty."""


def decode(cause: Any) -> Death:
    """What a death's record (the GCS's ``ActorDeathCause``) says, whichever of its variants is set."""
    kind = cause.WhichOneof("context") if cause is not None else None
    if kind is None:
        return Death("ProcessDied", _UNKNOWN, "")
    context = getattr(cause, kind)
    if kind == "creation_task_failure_context":
        # Ray appends its own account of the first traceback, which repeats the exception.
        details = context.formatted_exception_string.split("\n\n\nDuring handling of the above")[0].strip()
        return Death("ConstructorFailed", last_line(details) or _UNKNOWN, details)
    details = context.error_message.strip()
    reason: Reason = "OutOfMemory" if kind == "oom_context" else _reason(details, getattr(context, "reason", 0))
    return Death(reason, _brief(details) or _UNKNOWN, details)


def _reason(account: str, code: int) -> Reason:
    for words, reason in _REASON_OF_WORDS:
        if words in account:
            return reason
    return _REASON_OF_CODE.get(code, "ProcessDied")


def _brief(account: str) -> str:
    if "connection error code 2. End of file" in account:
        return _SILENT_END
    return " ".join(account.rpartition("Worker exit detail: ")[2].split())
