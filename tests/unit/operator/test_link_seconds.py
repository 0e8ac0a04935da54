"""How long each condition took until an object became ready."""

from datetime import UTC, datetime, timedelta

import pytest

from workergroups_api.conditions import Condition
from workergroups_api.manifest import RESOURCE_POOL
from workergroups_api.pool_status import ResourcePoolStatus
from workergroups_operator.status.conclusion import StatusUpdate
from workergroups_operator.status.link_seconds import link_seconds

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


def condition(type_, status, seconds):
    return Condition(type=type_, status=status, reason="R", last_transition_time=BEGAN + timedelta(seconds=seconds))


def status(**conditions):
    """Each condition with its status and the second of its last transition."""
    return ResourcePoolStatus(conditions=tuple(condition(type_, *values) for type_, values in conditions.items()))


def links(before, after):
    ready = [next((each for each in of.conditions if each.type == "Ready"), None) for of in (before, after)]
    return dict(link_seconds(StatusUpdate(RESOURCE_POOL, {}, before, after, *ready)))


FIRST = status(NodesReady=("False", 0), Reserved=("False", 0), Ready=("False", 0), Progressing=("True", 0))
LOST = status(NodesReady=("True", 40), Reserved=("False", 500), Ready=("False", 500), Progressing=("True", 0))
RESUMED = status(NodesReady=("False", 0), Reserved=("False", 0), Ready=("False", 0), Progressing=("True", 9000))
LATE = status(NodesReady=("True", 40), Reserved=("False", 0), Ready=("False", 0), Progressing=("False", 600))


@pytest.mark.parametrize(
    ("before", "nodes", "reserved", "expected"),
    [
        (FIRST, 40, 43, {"NodesReady": 40, "Reserved": 3, "Ready": 43}),
        # A link that was True all along tells nothing.
        (LOST, 40, 504, {"Reserved": 4, "Ready": 4}),
        # The time for which it was suspended does not count.
        (RESUMED, 9030, 9031, {"NodesReady": 30, "Reserved": 1, "Ready": 31}),
        (LATE, 40, 700, {"NodesReady": 40, "Reserved": 660, "Ready": 700}),
    ],
)
def test_each_link_has_the_seconds_since_the_one_before_it(before, nodes, reserved, expected):
    after = status(
        NodesReady=("True", nodes), Reserved=("True", reserved), Ready=("True", reserved), Progressing=("True", 0)
    )
    assert links(before, after) == expected


def test_only_what_has_just_become_ready_has_seconds():
    ready = status(NodesReady=("True", 40), Ready=("True", 40))
    assert links(ready, ready) == links(ready, FIRST) == links(FIRST, FIRST) == links(ResourcePoolStatus(), ready) == {}
