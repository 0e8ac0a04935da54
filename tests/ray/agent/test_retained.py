"""Looks of observer and executor leave nothing behind, at rest and while groups come and go."""

import pytest

from tests.ray.agent.planned import Group
from tests.ray.agent.test_executor import ranks
from tests.unit.retained import retained

LOOKS = 60
# The clocks of a running cluster and the log channel keep something now and then; a report, a plan or Ray's state has
# hundreds of blocks. Bytes of malloc are not counted here: Ray's own code in C++ takes and returns them at any time.
BLOCKS_OF_A_LOOK = 20


@pytest.mark.long
def test_looks_at_rest_leave_nothing(agent):
    group = Group()
    agent.until(lambda reports: ranks(reports, group.name).ready == "0-1", group)
    held = retained(lambda _: agent.look(), LOOKS)
    assert held.blocks < BLOCKS_OF_A_LOOK * LOOKS


def test_looks_during_which_orders_change_leave_nothing(agent):
    def changes(number):
        """A group waits for its code, in another version each time."""
        waiting = Group("waiting", "uid-waiting", incarnation=number + 1, missing=f"there is no code {number}")
        agent.until(lambda _: True, waiting)

    held = retained(changes, LOOKS)
    assert held.blocks < BLOCKS_OF_A_LOOK * LOOKS
