"""Which events the operator records with a status."""

from typing import Any

import pytest

from tests.unit.operator.make import NOW, group
from workergroups_api.conditions import Condition
from workergroups_api.group_status import WorkerGroupStatus
from workergroups_api.manifest import WORKER_GROUP
from workergroups_operator.publish import event, is_news
from workergroups_operator.status.conclusion import StatusUpdate


def ready(status: Any, reason: str, message: str = "") -> Condition:
    return Condition(type="Ready", status=status, reason=reason, message=message, last_transition_time=NOW)


def update(before: Condition | None, after: Condition) -> StatusUpdate:
    status = WorkerGroupStatus()
    return StatusUpdate(WORKER_GROUP, group().metadata, status, status, before, after)


@pytest.mark.parametrize(
    ("before", "after", "is_told"),
    [
        (None, ready("False", "WaitingForPools"), True),
        (ready("True", "RanksReady"), ready("True", "PausedByDebugger"), False),
        (ready("True", "RanksReady"), ready("True", "Complete"), True),
        (ready("True", "Complete"), ready("True", "Complete"), False),
        (ready("True", "RanksReady"), ready("False", "ProcessDied"), True),
        (ready("False", "Launching"), ready("False", "RanksStarting"), False),
        (ready("False", "PoolNotReady"), ready("False", "Hung"), True),
        (ready("False", "Hung", "suspect: rank 1"), ready("False", "Hung", "suspect: rank 2"), False),
        (ready("False", "Hung"), ready("False", "PoolNotReady"), False),
        (ready("False", "Hung"), ready("True", "RanksReady"), True),
    ],
)
def test_a_change_of_ready_is_told_and_so_is_a_hang(before, after, is_told):
    assert is_news(update(before, after)) is is_told


@pytest.mark.parametrize(
    ("after", "type_", "reason"),
    [
        (ready("True", "RanksReady"), "Normal", "Ready"),
        (ready("True", "Complete"), "Normal", "Complete"),
        (ready("False", "ProcessDied"), "Warning", "NotReady"),
        (ready("False", "Hung", "suspect: rank 2 in data.py:17 in read_shard"), "Warning", "Hung"),
    ],
)
def test_the_event_has_the_reason_and_the_message(after, type_, reason):
    told = event(update(None, after), NOW)
    assert (told["type"], told["reason"]) == (type_, reason)
    assert told["note"] == f"{after.reason}: {after.message}"
