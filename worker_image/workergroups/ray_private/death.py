"""`Death`: why an actor is dead."""

from __future__ import annotations

from dataclasses import dataclass

from workergroups_api.vocabulary import RankEnd


@dataclass(frozen=True)
class Death:
    """Why an actor is dead, as the library and the agent know it from Ray.

    The agent reports it as `workergroups_api.report.RankFailure`. These are two types because the library works without
    pydantic, and because only the agent knows which rank of which pod the actor was.
    """

    reason: RankEnd
    message: str
    """One line: the constructor's exception, or Ray's account without what it says of every death."""
    details: str
    """All that Ray says, the traceback of the constructor's exception included; may be empty."""
