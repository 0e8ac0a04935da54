"""The benchmark's arithmetic and its table; the measurements themselves are `make bench`."""

from dataclasses import dataclass, field

import pytest

from bench import table
from bench.contenders import load
from bench.points import Point, noop
from bench.table import markdown, publish

BEGIN, END = "<!-- measured: begin -->\n", "<!-- measured: end -->\n"
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
        "| no-op call | 4 |  | 3.0 ms | 3.3 ms (1.10x; of medians 1.20x) | - | 1.1x: met |",
        "| driver's own memory | 4 | 256 MiB | - | 256 MiB (1.00x) | - |  |",
    ]


@dataclass
class Timed:
    """A driver that takes these seconds, one after the other."""

    name: str
    seconds: list[float] = field(default_factory=list)

    def time(self, operation, *args, repeat=1):
        return self.seconds.pop(0)


def test_the_lower_quartile_of_the_rounds_counts():
    warm_up = 99.0
    raw = Timed("raw", [warm_up, 4.0, 1.0, 9.0, 2.0, 8.0])
    ours = Timed("ours", [warm_up, 3.0, 7.0, 0.5, 5.0, 6.0])
    point = noop([raw, ours], 4, rounds=5)[1]
    assert (point.value, point.ratio, point.median_ratio) == (3.0, 3.0 / 2.0, 5.0 / 4.0)


def test_the_table_takes_the_place_of_the_one_before(tmp_path, monkeypatch):
    monkeypatch.setattr(table, "environment", lambda: "Measured here.")
    page = tmp_path / "benchmarks.md"
    page.write_text(f"before\n{BEGIN}old\n{END}after\n")
    publish([OURS], page)
    publish([OURS], page)
    assert page.read_text() == f"before\n{BEGIN}\nMeasured here.\n\n{markdown([OURS])}\n{END}after\n"


def test_a_page_without_a_place_for_the_table_says_what_it_lacks(tmp_path, monkeypatch):
    monkeypatch.setattr(table, "environment", lambda: "Measured here.")
    page = tmp_path / "benchmarks.md"
    page.write_text("nothing\n")
    with pytest.raises(ValueError, match="must contain the lines '<!-- measured: begin -->'"):
        publish([OURS], page)
    assert page.read_text() == "nothing\n"


def test_a_contender_that_is_not_there_is_an_error():
    with pytest.raises(ModuleNotFoundError, match="nobody"):
        load("nobody")
