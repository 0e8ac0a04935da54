"""How placement groups are named, so that the next agent finds them again."""

from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True)
class PlacementName:
    """One entry of a pool's `processesPerNode` on one Ray node.

    The node is part of the name: on another node it is another placement group, and no half-lost one lives on.
    """

    pool: str
    uid: str
    index: int
    node_id: str

    def __str__(self) -> str:
        return f"{self.pool}/{self.uid}/{self.index}/{self.node_id}"

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """The name, or None if it is not one of ours."""
        parts = text.split("/")
        if len(parts) != 4 or not parts[2].isdigit():
            return None
        return cls(parts[0], parts[1], int(parts[2]), parts[3])
