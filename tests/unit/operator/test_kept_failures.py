"""Which failures of ranks get their own event."""

import pytest

from tests.unit.operator.make import NOW
from workergroups_api.failure_policy import KeptFailure
from workergroups_operator.status.kept_failures import new_failures, told


def failure(rank, reason="Preempted", incarnation=5):
    words = {"reason": reason, "message": "to make room", "pod": "p-worker-a"}
    return KeptFailure(rank=rank, incarnation=incarnation, time=NOW, **words)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ([], [], None),
        ([failure(0)], [failure(0)], None),
        ([], [failure(0)], "rank 0 of incarnation 5 in pod p-worker-a: Preempted: to make room"),
        ([failure(0, incarnation=4)], [failure(1), failure(2), failure(0, incarnation=4)], "rank 1 of incarnation 5"),
        # Only the reason is new: the operator learns of an eviction after the agent of the node's end.
        ([failure(0, "NodeLost")], [failure(0)], "Preempted: to make room"),
        # The list is full, and the oldest leaves it.
        ([failure(0), failure(1)], [failure(0)], None),
    ],
)
def test_a_failure_is_news_once_and_again_when_its_reason_is_known(before, after, said):
    new = new_failures(before, after, or_reasons=True)
    assert said in told(new) if said else not new


def test_a_failure_counts_once():
    assert not new_failures([failure(0, "NodeLost")], [failure(0)])
    assert len(new_failures([failure(0)], [failure(1), failure(0)])) == 1
