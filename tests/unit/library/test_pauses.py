"""Which pauses that somebody has written into Ray's control service are accepted."""

import dataclasses

import pytest

from workergroups.debugger.pauses import Pause, parsed

PAUSE = Pause("node", "/code/train.py", 12, "Trainer.step", "/code", "", 5678, 1e9)
RECORD = dataclasses.asdict(PAUSE)


def test_a_pause_is_read_as_it_was_written():
    assert parsed(RECORD) == PAUSE
    assert PAUSE.where == "/code/train.py:12 in Trainer.step"
    assert dataclasses.replace(PAUSE, error="ValueError: no").where.endswith("Trainer.step after ValueError: no")


@pytest.mark.parametrize(
    "odd",
    [
        None,
        {},
        RECORD | {"more": 1},
        RECORD | {"line": "12"},
        RECORD | {"line": -1},
        RECORD | {"line": True},
        RECORD | {"port": 1 << 16},
        RECORD | {"port": -1},
        RECORD | {"since": float("nan")},
        RECORD | {"since": float("inf")},
        RECORD | {"since": 1},
        RECORD | {"file": "x" * 513},
        RECORD | {"error": ["no text"]},
    ],
)
def test_what_no_rank_of_ours_has_written_is_none(odd):
    assert parsed(odd) is None
