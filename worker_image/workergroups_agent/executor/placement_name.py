"""How placement groups are named, so that the next agent finds them again."""

from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True)
class PlacementName:
    """One node of a pool on one Ray node.

    The Ray node is part of the name: on another one it is another placement group, and no half-lost one lives on.
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
        if len(parts) != 4 or not parts[2].isdecimal() or not parts[2].isascii():
            return None
        return cls(parts[0], parts[1], int(parts[2]), parts[3])
