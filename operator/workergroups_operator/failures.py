"""What could not be written, or not be handled at all."""

from collections.abc import Mapping
from dataclasses import dataclass

from workergroups_api.conditions import Explanation
from workergroups_api.manifest import Kind
from workergroups_api.vocabulary import Reason
from workergroups_common.text import plain

# Characters of an exception's message, which may quote what a user wrote.
_MAX_MESSAGE = 300
# In the API server's words for what a namespace that is being deleted takes no more.
_ENDING = "because it is being terminated"


@dataclass(frozen=True)
class Failures:
    """Why objects could not be written, by kind. The operator retries with back-off."""

    by_kind: Mapping[str, Explanation]
    # The kinds of objects that differ from what is wanted, and are not known to be written: the write was left out, or
    # has not ended.
    unwritten: frozenset[str] = frozenset()

    @property
    def summary(self) -> str | None:
        """All failures in one line for the log; None if there are none."""
        return "; ".join(each.message for each in self.by_kind.values()) or None

    @property
    def are_of_ending_namespace(self) -> bool:
        """Whether the namespace is being deleted, so that no retry can succeed."""
        return any(_ENDING in each.message for each in self.by_kind.values())

    def of(self, *kinds: Kind) -> Explanation | None:
        """Return why one of these kinds could not be written; None if all could."""
        return next((self.by_kind[kind.kind] for kind in kinds if kind.kind in self.by_kind), None)

    def is_written(self, kind: Kind) -> bool:
        """Return whether the objects of this kind are known to be as wanted."""
        return kind.kind not in self.by_kind and kind.kind not in self.unwritten


def internal_error(error: Exception, way_out: str) -> Explanation:
    """Explain an exception that no rule foresaw."""
    return Explanation(Reason.INTERNAL_ERROR, f"{type(error).__name__}: {plain(str(error), _MAX_MESSAGE)}: {way_out}")
