"""The latest failures of a group, which its status keeps when the ranks are recreated."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from workergroups_api.bounded_text import MAX_MESSAGE
from workergroups_api.failure_policy import MAX_KEPT_FAILURES, KeptFailure
from workergroups_api.worker_group import WorkerGroup
from workergroups_common.text import plain
from workergroups_operator.policy.believed_report import vouches
from workergroups_operator.policy.rank_failures import GroupFailure
from workergroups_operator.status.conclusion import StatusInputs

# Incarnation, rank and its birth.
_Key = tuple[int, int, int]


def kept_failures(group: WorkerGroup, inputs: StatusInputs) -> tuple[KeptFailure, ...]:
    """Return the ten latest failures, the latest first: those that the status has, and what failed now.

    A rank's last words arrive after its death, and perhaps after its successor's birth.
    """
    before = {(each.incarnation, each.rank, each.birth or 0): each for each in group.status.failures}
    response = inputs.decisions.groups.failures.get(group.name)
    present = _present(response.failure, before, inputs.now) if response else {}
    words = _last_words(group, inputs)
    found = {
        key: each.model_copy(update={"last_words": words[key]}) if key in words else each
        for key, each in (before | present).items()
    }
    # What failed now comes before what failed earlier in the same incarnation, which went on without its dead ranks.
    order = sorted(found, key=lambda key: (-key[0], key not in present, -found[key].time.timestamp(), key[1]))
    return tuple(found[key] for key in order[:MAX_KEPT_FAILURES])


def new_failures(
    before: Sequence[KeptFailure], after: Sequence[KeptFailure], *, or_reasons: bool = False
) -> tuple[KeptFailure, ...]:
    """Return the failures that are new; with `or_reasons`, those too of which only the reason is."""

    def key(each: KeptFailure) -> tuple[object, ...]:
        return each.incarnation, each.rank, each.birth, each.reason if or_reasons else None

    known = set(map(key, before))
    return tuple(each for each in after if key(each) not in known)


def told(failures: Sequence[KeptFailure]) -> str:
    """Return which rank has failed, and why."""
    first, more = failures[0], f" (and {len(failures) - 1} more)" if len(failures) > 1 else ""
    where = f" in pod {first.pod}" if first.pod else ""
    return f"rank {first.rank} of incarnation {first.incarnation}{where}{more}: {first.reason}: {first.message}"


def _present(failure: GroupFailure, before: dict[_Key, KeptFailure], now: datetime) -> dict[_Key, KeptFailure]:
    """Return what failed now; of a failure that the status has, only the reason may change."""
    found: dict[_Key, KeptFailure] = {}
    for rank in failure.ranks:
        key = failure.incarnation, rank.rank, rank.birth or 0
        known = before.get(key)
        if known is not None:
            found[key] = known.model_copy(update={"reason": rank.reason, "message": plain(rank.message, MAX_MESSAGE)})
        else:
            node, time = failure.nodes.get(rank.pod or ""), now.replace(microsecond=0)
            found[key] = KeptFailure(**rank.model_dump(), incarnation=failure.incarnation, node=node, time=time)
    return found


def _last_words(group: WorkerGroup, inputs: StatusInputs) -> Mapping[_Key, str]:
    """Return what dead ranks printed last, according to the agent."""
    report = group.status.ranks
    if report is None or not vouches(group, inputs.observed, inputs.decisions.agent):
        return {}
    return {(each.incarnation, each.rank, each.birth or 0): each.text for each in report.last_words}
