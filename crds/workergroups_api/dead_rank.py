"""A rank that died, as the agent keeps it with the rank's last lines and as the command line shows it."""

from datetime import datetime
from typing import Annotated

from pydantic import Field

from workergroups_api.report import RankFailure


class DeadRank(RankFailure):
    """A rank of one incarnation of a group that died, and when."""

    uid: Annotated[str, Field(description="The group's UID.")]
    incarnation: Annotated[int, Field(description="The incarnation of the group that the rank belonged to.")]
    died: Annotated[datetime, Field(description="When the agent saw that it had died, by the agent's clock.")]

    @property
    def key(self) -> tuple[str, int, int]:
        """What tells it from all other dead ranks: UID, incarnation and rank."""
        return self.uid, self.incarnation, self.rank
