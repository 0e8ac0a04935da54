"""Sequences of legal edits of pools and groups, which in any order must end like a new deployment."""

from tests.fuzz.case import Outcome
from tests.simulation import history
from tests.simulation.control_plane import Access


async def play(access: Access, seed: int) -> Outcome:
    """Play one sequence, and judge it like any other history."""
    played = await history.run(access, seed, history.EDITS)
    outcome = Outcome("edits", [seed])
    for line in played.log:
        outcome.note(" ".join(line.split()[1:3]))
    if played.violations:
        outcome.failures[seed] = "\n".join([*played.log, *played.violations])
    return outcome
