"""The benchmark's arithmetic and its table; the measurements themselves are `make bench`."""

import pytest

from bench.contenders import load
from bench.points import Point, ratio
from bench.table import markdown

OURS = Point("no-op call", 4, None, "ours", 0.0033, 1.1, target=1.1)


def test_a_ratio_is_the_median_of_the_ratios_of_each_round():
    # A round in which the machine was busy slows all contenders, and leaves their ratio as it is.
    assert ratio({"raw": {0: 1.0, 1: 10.0, 2: 1.0}, "ours": {0: 1.5, 1: 12.0, 2: 1.1}}, "ours") == pytest.approx(1.2)


def test_a_contender_may_take_part_in_some_rounds_only():
    assert ratio({"raw": {0: 1.0, 1: 10.0}, "verl": {1: 30.0}}, "verl") == 3.0


@pytest.mark.parametrize(("found", "missed"), [(1.1, False), (1.11, True)])
def test_a_target_is_missed_above_it(found, missed):
    assert Point("no-op call", 4, None, "ours", 1.0, found, target=1.1).missed is missed


def test_only_our_own_points_can_miss():
    assert not Point("no-op call", 4, None, "verl", 1.0, 9.0, target=1.1).missed


def test_a_line_has_all_contenders_of_one_comparison():
    points = [
        Point("no-op call", 4, None, "raw", 0.003, 1.0, target=1.1),
        OURS,
        Point("driver's own memory", 4, 256, "ours", 2**28, 1.0),
    ]
    assert markdown(points).splitlines()[2:] == [
        "| no-op call | 4 |  | 3.0 ms (1.00x) | 3.3 ms (1.10x) | - | 1.1x: met |",
        "| driver's own memory | 4 | 256 MiB | - | 256 MiB (1.00x) | - |  |",
    ]


def test_a_contender_that_is_not_there_is_an_error():
    with pytest.raises(ModuleNotFoundError, match="nobody"):
        load("nobody")
