"""How long each link of the chain of conditions took until an object became ready, for the metrics."""

from collections.abc import Iterator, Sequence
from itertools import takewhile

from workergroups_api.conditions import Condition, find
from workergroups_api.group_status import WorkerGroupStatus
from workergroups_api.pool_status import ResourcePoolStatus
from workergroups_api.vocabulary import ConditionType
from workergroups_operator.status.conclusion import StatusUpdate


def link_seconds(update: StatusUpdate) -> Iterator[tuple[str, float]]:
    """Yield each condition before `Ready` with its seconds, and then `Ready` with all of them, if it is True only now.

    They begin with the first status, or when the object ceased to be ready, was resumed, or was admitted by a queue.
    What has been True since before then has nothing to tell. An object that was Unknown has not become ready.
    """
    before = update.ready_before
    if update.ready.status != "True" or before is None or before.status != "False":
        return
    progressing = find(_conditions(update.before), ConditionType.PROGRESSING)
    tries = [progressing.last_transition_time] if progressing is not None and progressing.status == "True" else []
    at = began = max([before.last_transition_time, *tries])
    for link in takewhile(lambda condition: condition.type != ConditionType.READY, _conditions(update.after)):
        if link.status == "True" and link.last_transition_time >= began:
            until = max(at, link.last_transition_time)
            yield link.type, (until - at).total_seconds()
            at = until
    yield ConditionType.READY, (max(at, update.ready.last_transition_time) - began).total_seconds()


def _conditions(status: object) -> Sequence[Condition]:
    return status.conditions if isinstance(status, ResourcePoolStatus | WorkerGroupStatus) else ()
