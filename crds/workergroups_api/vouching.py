"""For which objects the agent does not vouch, and why: an annotation of the agent's Lease.

The agent holds the Lease while it sees Ray. If it cannot write what it sees of an object into the object's status, it
names the object here, and the operator ignores what that status says of Ray.
"""

import json
from collections.abc import Mapping
from typing import Any

from workergroups_common.bounded_json import Limits, RefusedJson, parse
from workergroups_common.text import plain

# Used as a UID: the agent vouches for no object.
EVERY = "*"
MAX_OBJECTS = 20
# Characters of the whole annotation. The operator's watch leaves out longer texts.
MAX_ANNOTATION = 4096
_MAX_WHY = 300
# Characters of each object apart from its reason: its UID, quotes and commas.
_MAX_UID = 44
_LIMITS = Limits(size=64 * 1024, depth=1, values=MAX_OBJECTS + 1)


def to_annotation(doubts: Mapping[str, str]) -> str | None:
    """Return the annotation's value, None if the agent vouches for all. If there are too many objects, it names none.

    `doubts` says, by UID, why the agent does not vouch for an object.
    """
    doubts = within_limit(doubts)
    if not doubts:
        return None
    # JSON needs two characters for a quote.
    room = min(_MAX_WHY, (MAX_ANNOTATION // len(doubts) - _MAX_UID) // 2)
    return json.dumps({uid: plain(why, room) for uid, why in doubts.items()}, ensure_ascii=False)


def within_limit(doubts: Mapping[str, str]) -> Mapping[str, str]:
    """Return the doubts, or one about every object if there are too many."""
    if len(doubts) <= MAX_OBJECTS:
        return doubts
    first = next(iter(doubts.values()))
    return {EVERY: plain(f"this is so for more than {MAX_OBJECTS} objects; for the first of them: {first}", _MAX_WHY)}


def from_annotation(value: Any) -> dict[str, str]:
    """Return why the agent does not vouch for an object, by UID; for all objects if the value cannot be read."""
    if value is None:
        return {}
    try:
        found = parse(str(value).encode(), _LIMITS)
        return {str(uid)[:_MAX_UID]: plain(str(why), _MAX_WHY) for uid, why in found.items()}
    except (RefusedJson, UnicodeError, AttributeError):
        return {EVERY: "the annotation in which the agent names such objects cannot be read"}


def doubt(uid: str, doubts: Mapping[str, str]) -> str | None:
    """Return why the agent does not vouch for the object, None if it does."""
    return doubts.get(uid, doubts.get(EVERY))
