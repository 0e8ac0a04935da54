"""What a case is: a seed, and what went wrong with it."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field


class Wrong(Exception):
    """A case ended in a way that is wrong."""


@dataclass
class Outcome:
    """The outcome of some cases."""

    kind: str
    seeds: Sequence[int]
    # By seed; what no single case caused is under the first.
    failures: dict[int, str] = field(default_factory=dict)
    # How often each thing happened, so that a reader sees what the cases reached.
    seen: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0

    def note(self, what: str) -> None:
        """Count that something happened."""
        self.seen[what] = self.seen.get(what, 0) + 1


# Plays one case; raises Wrong, or what the code under test raises. Returns what it reached.
Check = Callable[[random.Random], str]


def choices_of(seed: int, purpose: str) -> random.Random:
    """Return the generator of a case's choices."""
    return random.Random(f"{seed} {purpose}")
