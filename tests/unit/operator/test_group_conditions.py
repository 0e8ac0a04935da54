"""What a group says of itself, from what is observed."""

from typing import Any

import pytest
from make import NOW, group, observed, pool, ready_pool

from workergroups_operator.policy.seating import seat
from workergroups_operator.policy.sharing import Sharing
from workergroups_operator.status import status


def statement_of(group_, *pools_):
    sharing = Sharing(pools_, {})
    seen = observed(pools=pools_, groups=(group_,))
    seating = seat(seen.groups, sharing.accepted, seen.pools_elsewhere)
    return status(seen, sharing, seating, None, NOW).statements[-1]


def ranks(**report: Any) -> dict[str, Any]:
    defaults = {"observedGeneration": 1, "incarnation": 1, "state": "Launched", "total": 4, "created": 4}
    return {"ranks": defaults | {"readyCount": 4, "ready": "0-3"} | report}


def failure(rank: int, **more: Any) -> dict[str, Any]:
    return {"rank": rank, "reason": "ConstructorFailed", "message": "ValueError: boom", "pod": "p-0"} | more


def test_a_group_with_all_ranks_is_ready():
    statement = statement_of(group(status=ranks()), ready_pool())
    assert (statement.ready.status, statement.ready.message) == ("True", "4 of 4 ranks ready")
    assert statement.after.world_size == 4


@pytest.mark.parametrize(
    ("status_", "reason", "words"),
    [
        ({}, "WaitingForPools", "0 of 4 ranks created"),
        (
            ranks(state="WaitingForCode", created=0, readyCount=0, message="there is no ConfigMap code: create it"),
            "WaitingForCode",
            "there is no ConfigMap code: create it (deadline",
        ),
        (ranks(state="Launching", created=1, readyCount=0), "Launching", "1 of 4 ranks created"),
        (
            ranks(state="LaunchFailed", created=0, readyCount=0, message="ModuleNotFoundError: No module named 'x'"),
            "LaunchFailed",
            "ModuleNotFoundError: No module named 'x'; to try again, delete",
        ),
        (ranks(readyCount=3), "RanksStarting", "3 of 4 ranks ready"),
        (
            ranks(readyCount=2, failures=[failure(1), failure(3)]),
            "ConstructorFailed",
            "rank 1 in pod p-0 (and 1 more): ValueError: boom; 2 of 4 ranks ready; to try again, delete",
        ),
        (ranks(observedGeneration=7), "WaitingForPools", "0 of 4 ranks created"),
    ],
)
def test_a_group_says_how_far_it_is(status_, reason, words):
    ready = statement_of(group(status=status_), ready_pool()).ready
    assert (ready.status, ready.reason) == ("False", reason)
    assert words in ready.message


def test_a_failure_that_waiting_does_not_mend_keeps_its_reason_past_the_deadline():
    late = group(status=ranks(failures=[failure(0)]), startDeadlineSeconds=5)
    assert statement_of(late, ready_pool()).ready.reason == "ConstructorFailed"


def test_a_group_whose_pool_is_not_ready_passes_on_why():
    ready = statement_of(group(status=ranks()), pool()).ready
    assert ready.reason == "PoolNotReady"
    assert ready.message.startswith("pool actors: 0 of 2 nodes joined Ray")
    assert ready.message.count("deadline") == 1, "its own, not the pool's too"


def test_a_group_without_its_pool_says_which_field_names_it():
    statement = statement_of(group(pools=["elsewhere"]))
    assert statement.ready.reason == "PoolNotFound"
    assert statement.ready.message.startswith("spec.pools[0]: there is no usable ResourcePool elsewhere")
    assert statement.after.world_size is None
