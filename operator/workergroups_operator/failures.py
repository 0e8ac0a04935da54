"""What could not be written. Of one object that fails, nothing follows for the others."""

from collections.abc import Mapping
from dataclasses import dataclass

from workergroups_api.conditions import Explanation


@dataclass(frozen=True)
class Failures:
    """What could not be written, and why, by kind; to be tried again with back-off."""

    by_kind: Mapping[str, Explanation]

    @property
    def summary(self) -> str | None:
        """All in one line for the log; None if there are none."""
        return "; ".join(each.message for each in self.by_kind.values()) or None

    def of(self, *kinds: str) -> Explanation | None:
        """Why one of these kinds could not be written; None if all could."""
        return next((self.by_kind[kind] for kind in kinds if kind in self.by_kind), None)
