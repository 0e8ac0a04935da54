"""The benchmark's arithmetic and its table; the measurements themselves are `make bench`."""

import pytest

from bench.contenders import load
from bench.points import Point
from bench.table import markdown

OURS = Point("no-op call", 4, None, "ours", 0.0033, 1.1, target=1.1, median_ratio=1.2)


@pytest.mark.parametrize(("found", "missed"), [(1.1, False), (1.11, True)])
def test_a_target_is_missed_above_it(found, missed):
    assert Point("no-op call", 4, None, "ours", 1.0, found, target=1.1).missed is missed


def test_only_our_own_points_can_miss():
    assert not Point("no-op call", 4, None, "verl", 1.0, 9.0, target=1.1).missed


def test_a_line_has_all_contenders_of_one_comparison():
    points = [
        Point("no-op call", 4, None, "raw", 0.003, 1.0, target=1.1, median_ratio=1.0),
        OURS,
        Point("driver's own memory", 4, 256, "ours", 2**28, 1.0),
    ]
    assert markdown(points).splitlines()[2:] == [
        "| no-op call | 4 |  | 3.0 ms (1.00x; of medians 1.00x) | 3.3 ms (1.10x; of medians 1.20x) | - | 1.1x: met |",
        "| driver's own memory | 4 | 256 MiB | - | 256 MiB (1.00x) | - |  |",
    ]


def test_a_contender_that_is_not_there_is_an_error():
    with pytest.raises(ModuleNotFoundError, match="nobody"):
        load("nobody")
