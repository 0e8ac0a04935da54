"""What executor and reporter hand each other arrives as it was, or not at all."""

import os
from pathlib import Path

import pytest
from ray_world import PREPARED, group, plan, pool

from workergroups_agent.exchange import Exchange, GroupEntry, PoolEntry, PreparedLaunch, Pulse, Reports
from workergroups_api.conditions import Explanation
from workergroups_api.launch import Launch
from workergroups_api.report import GroupReport, PoolReport


@pytest.fixture
def exchange(tmp_path):
    return Exchange(tmp_path)


def test_nothing_is_there_at_first(exchange):
    assert (exchange.read_plan(), exchange.read_launch("u"), exchange.read_reports(), exchange.read_pulse()) == (
        (None,) * 4
    )
    assert (exchange.plan_stamp(), exchange.launch_stamp("u"), exchange.reports_stamp()) == (None,) * 3


def test_a_plan_arrives(exchange):
    exchange.write_plan(plan(pool(), group()))
    assert exchange.read_plan() == plan(pool(), group())


@pytest.mark.parametrize("text", ["\U0001f33f", "\ud800", "\0", "\x7f\x85\u2028", "é", "\udcff" * 3])
def test_any_text_of_a_user_arrives(exchange, text):
    prepared = PreparedLaunch(
        uid="u",
        revision="r",
        launch=Launch(
            class_path="a.B", init_args=(text, None), init_kwargs={"a": {"x": [text, None]}}, env={"A": text}
        ),
        files={"a.py": text},
    )
    exchange.write_launch(prepared)
    assert exchange.read_launch("u") == prepared


def test_what_is_missing_arrives(exchange):
    prepared = PreparedLaunch(uid="u", missing=Explanation("WaitingForCode", "create it"))
    exchange.write_launch(prepared)
    assert exchange.read_launch("u") == prepared


def test_a_launch_that_cannot_be_written_leaves_nothing_and_the_others_alone(exchange, tmp_path, monkeypatch):
    exchange.write_launch(PREPARED)
    write = Path.write_text

    def full(path, *arguments, **named):
        write(path, *arguments, **named)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(OSError, match="No space"):
        exchange.write_launch(PreparedLaunch(uid="large"))
    assert os.listdir(tmp_path) == ["launch-uid-g.json"]
    assert exchange.read_launch("uid-g") == PREPARED


def test_launches_that_are_no_longer_planned_are_removed(exchange, tmp_path):
    for uid in ("u1", "u2"):
        exchange.write_launch(PreparedLaunch(uid=uid))
    exchange.remove_launches_but({"u2"})
    assert os.listdir(tmp_path) == ["launch-u2.json"]


def test_reports_arrive_and_are_withdrawn_with_the_pulse(exchange):
    reports = Reports(
        session="s",
        pools={"p": PoolEntry(uid="u1", report=PoolReport(session="s", reserved_nodes=1))},
        groups={"g": GroupEntry(uid="u2", report=GroupReport(session="s", incarnation=3))},
    )
    exchange.write_reports(reports)
    exchange.beat("s")
    assert (exchange.read_reports(), exchange.read_pulse()) == (reports, Pulse(session="s", count=1))
    exchange.withdraw()
    assert (exchange.read_reports(), exchange.read_pulse()) == (None, None)


def test_each_write_can_be_told_from_the_one_before(exchange):
    stamps = set()
    pulses = set()
    for _ in range(5):
        exchange.write_plan(plan(pool()))
        exchange.beat("s")
        stamps.add(exchange.plan_stamp())
        pulses.add(exchange.read_pulse().count)
    assert len(pulses) == 5
    assert len(stamps) > 1
