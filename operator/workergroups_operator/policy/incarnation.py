"""Which incarnation of a group's ranks is to run: a new number whenever ranks are made anew, and only then."""

from dataclasses import dataclass

FIRST = 1
INTERRUPTED = "LaunchInterrupted"


@dataclass(frozen=True)
class Incarnation:
    """One making of the ranks."""

    number: int
    # Digest of what it is made from and on which bundles; None while the code is not known.
    revision: str | None = None
    # The Ray session that it belongs to; None while there is none.
    session: str | None = None


def next_incarnation(
    last: Incarnation | None, revision: str | None, session: str | None, *, is_interrupted: bool
) -> Incarnation:
    """What is to run, given what ran last.

    Code that is gone is no reason to end ranks that run, nor is a session that is not known for the moment.
    """
    if last is None:
        return Incarnation(FIRST, revision, session)
    is_new = (
        is_interrupted
        or (None not in (last.revision, revision) and last.revision != revision)
        or (None not in (last.session, session) and last.session != session)
    )
    return Incarnation(last.number + is_new, revision or last.revision, session or last.session)


def latest(*candidates: Incarnation | None) -> Incarnation | None:
    """Of several records of the last incarnation, the one that got furthest; the first of equals."""
    known = [candidate for candidate in candidates if candidate is not None]
    return max(known, key=lambda each: (each.number, each.revision is not None, each.session is not None), default=None)
