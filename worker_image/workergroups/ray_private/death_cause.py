"""Why an actor is dead: what the GCS's record of a death says, as a `Death`.

The record may hold the user's exception, pickled. Only its text is read: nothing of the user's is loaded here.
"""

from __future__ import annotations

from typing import Any

from ray.core.generated.common_pb2 import ActorDiedErrorContext

from workergroups.ray_private.death import Death
from workergroups.stacks.exception_text import exception_line
from workergroups_api.vocabulary import RankEnd

_UNKNOWN = "Ray does not say why"
# Ray adds this to each exit code, also to that of `sys.exit`.
_GUESS = "The worker may have exceeded K8s pod memory limits."
SILENT_END = "its process ended without telling Ray: it was killed (SIGKILL, or by the kernel for memory) or crashed"

_START_FAILED = "failed_start.StartFailed: "
_KILLED = "killed by `ray.kill`"
_ENDED = "a program ended it with ray.kill, as the agent ends the ranks of an incarnation that it replaces"
# What Ray's account holds -> what it means; the first that fits.
_REASON_OF_WORDS: tuple[tuple[str, RankEnd], ...] = (
    (_KILLED, RankEnd.REMOVED),
    ("placement group was removed", RankEnd.REMOVED),
    ("memory running low", RankEnd.OUT_OF_MEMORY),
    ("its node has died", RankEnd.NODE_LOST),
    ("receives a SIGTERM", RankEnd.PROCESS_DIED),
    ("exits with an exit code", RankEnd.PROCESS_EXITED),
)
_REASON_OF_CODE: dict[int, RankEnd] = {
    ActorDiedErrorContext.NODE_DIED: RankEnd.NODE_LOST,
    ActorDiedErrorContext.RAY_KILL: RankEnd.REMOVED,
    ActorDiedErrorContext.OWNER_DIED: RankEnd.OWNER_DIED,
    ActorDiedErrorContext.OUT_OF_SCOPE: RankEnd.REMOVED,
    ActorDiedErrorContext.REF_DELETED: RankEnd.REMOVED,
}


def decode(cause: Any) -> Death:
    """Return what the record of a death (the GCS's ``ActorDeathCause``) says, whichever of its variants is set."""
    kind = cause.WhichOneof("context") if cause is not None else None
    if kind is None:
        return Death(RankEnd.PROCESS_DIED, _UNKNOWN, "")
    context = getattr(cause, kind)
    if kind == "creation_task_failure_context":
        # Ray appends its own account of the first traceback, which repeats the exception.
        details = context.formatted_exception_string.split("\n\n\nDuring handling of the above")[0].strip()
        said = exception_line(details) or _UNKNOWN
        _, mark, why = said.partition(_START_FAILED)
        if mark:  # another process stood in for it, and raised this
            return Death(RankEnd.PROCESS_DIED, f"it cannot start: {why}", details)
        return Death(RankEnd.CONSTRUCTOR_FAILED, said, details)
    details = context.error_message.strip()
    reason: RankEnd = (
        RankEnd.OUT_OF_MEMORY if kind == "oom_context" else _reason(details, getattr(context, "reason", 0))
    )
    return Death(reason, _brief(details) or _UNKNOWN, details)


def _reason(account: str, code: int) -> RankEnd:
    for words, reason in _REASON_OF_WORDS:
        if words in account:
            return reason
    return _REASON_OF_CODE.get(code, RankEnd.PROCESS_DIED)


def _brief(account: str) -> str:
    if "connection error code 2. End of file" in account:
        return SILENT_END
    if _KILLED in account:
        return _ENDED
    return " ".join(account.rpartition("Worker exit detail: ")[2].replace(_GUESS, "").split())
