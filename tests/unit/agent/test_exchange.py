"""What observer and reporter hand each other arrives as it was, or not at all."""

import contextlib
import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings

from tests.unit.agent.odd_files import CONTENTS, NO_FILES, put_content
from tests.unit.agent.ray_world import PREPARED, group, plan, pool
from workergroups_agent.exchange import Exchange, PreparedLaunch, ReportedGroup, ReportedPool, Reports
from workergroups_agent.files import UnreadableFile
from workergroups_api.conditions import Explanation
from workergroups_api.launch import Launch
from workergroups_api.report import GroupReport, PoolReport
from workergroups_api.vocabulary import ORDERS


@pytest.fixture
def exchange(tmp_path):
    return Exchange(tmp_path)


def test_at_first_nothing_exists(exchange):
    assert (exchange.read_plan(), exchange.read_launch("u"), exchange.read_reports(), exchange.read_heartbeat()) == (
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


def test_launches_that_are_no_longer_planned_are_removed(exchange, tmp_path):
    for uid in ("u1", "u2"):
        exchange.write_launch(PreparedLaunch(uid=uid))
    exchange.remove_launches_but({"u2"})
    assert os.listdir(tmp_path / ORDERS) == ["launch-u2.json"]


def test_reports_arrive_and_are_withdrawn_with_the_heartbeat(exchange):
    reports = Reports(
        session="s",
        pools={"p": ReportedPool(uid="u1", report=PoolReport(session="s", reserved_nodes=1))},
        groups={"g": ReportedGroup(uid="u2", report=GroupReport(session="s", incarnation=3))},
    )
    exchange.write_reports(reports)
    exchange.beat("s")
    heartbeat = exchange.read_heartbeat()
    assert (exchange.read_reports(), heartbeat.session, heartbeat.count) == (reports, "s", 1)
    exchange.withdraw()
    assert (exchange.read_reports(), exchange.read_heartbeat()) == (None, None)


def test_each_heartbeat_can_be_told_from_the_one_before(exchange):
    counts = set()
    for _ in range(5):
        exchange.beat("s")
        counts.add(exchange.read_heartbeat().count)
    assert len(counts) == 5


READERS = {
    "orders/plan.json": (Exchange.read_plan, Exchange.plan_stamp),
    "orders/launch-u.json": (lambda exchange: exchange.read_launch("u"), lambda exchange: exchange.launch_stamp("u")),
    "reports/reports.json": (Exchange.read_reports, Exchange.reports_stamp),
    "reports/heartbeat": (Exchange.read_heartbeat, lambda exchange: None),
}
WRITERS = {
    "orders/plan.json": lambda exchange: exchange.write_plan(plan(pool())),
    "orders/launch-u.json": lambda exchange: exchange.write_launch(PreparedLaunch(uid="u")),
    "reports/reports.json": lambda exchange: exchange.write_reports(Reports(session="s")),
    "reports/heartbeat": lambda exchange: exchange.beat("s"),
}


def place(directory, name):
    path = directory / name
    path.parent.mkdir(exist_ok=True)
    return path


@pytest.mark.parametrize("name", READERS)
@settings(deadline=None, max_examples=40)
@given(content=CONTENTS)
def test_whatever_a_file_holds_it_is_read_or_told_why_not(name, content):
    with tempfile.TemporaryDirectory() as directory:
        exchange = Exchange(Path(directory))
        put_content(place(Path(directory), name), content)
        read, _ = READERS[name]
        with contextlib.suppress(UnreadableFile):
            read(exchange)
        WRITERS[name](Exchange(Path(directory)))
        assert read(exchange) is not None, "it is right again"


@pytest.mark.timeout(30)
@pytest.mark.parametrize("put", NO_FILES)
@pytest.mark.parametrize("name", READERS)
def test_whatever_has_a_files_name_keeps_nobody_waiting(exchange, tmp_path, name, put):
    path = place(tmp_path, name)
    put(path)
    read, find_stamp = READERS[name]
    with pytest.raises(UnreadableFile, match=path.name):
        read(exchange)
    before = find_stamp(exchange)
    shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    WRITERS[name](Exchange(tmp_path))
    assert read(exchange) is not None, "it is right again"
    assert find_stamp(exchange) != before or before is None


def test_other_files_in_a_directory_are_no_matter(exchange, tmp_path):
    exchange.write_launch(PREPARED)
    for number in range(3000):
        (tmp_path / ORDERS / f"odd\n{number}").touch()
    exchange.remove_launches_but({"uid-g"})
    assert exchange.read_launch("uid-g") == PREPARED


@pytest.mark.parametrize("uid", ["../reports/reports", "/etc/passwd", "..", "a/../../b", "\0", "\ud800", "\n"])
def test_no_name_in_a_plan_leads_out_of_the_directory(exchange, tmp_path, uid):
    exchange.write_launch(PreparedLaunch(uid=uid))
    assert len(os.listdir(tmp_path / ORDERS)) == 1
    assert exchange.read_launch(uid).uid == uid


def test_a_heartbeat_vouches_for_the_reports_that_were_written_before_it(exchange, tmp_path):
    observer = Exchange(tmp_path)
    observer.write_reports(Reports(session="s"))
    observer.beat("s")
    assert not exchange.has_read_reports_of(exchange.read_heartbeat())
    exchange.read_reports()
    assert exchange.has_read_reports_of(exchange.read_heartbeat())
    observer.write_reports(Reports(session="s2"))
    observer.beat("s2")
    assert not exchange.has_read_reports_of(exchange.read_heartbeat())
    exchange.read_reports()
    assert exchange.has_read_reports_of(exchange.read_heartbeat())


@pytest.mark.parametrize("content", [b"", b"[", b"{}", None])
def test_a_heartbeat_does_not_vouch_for_reports_that_cannot_be_read(exchange, tmp_path, content):
    observer = Exchange(tmp_path)
    observer.write_reports(Reports(session="s"))
    observer.beat("s")
    exchange.read_reports()
    path = tmp_path / "reports" / "reports.json"
    path.unlink() if content is None else path.write_bytes(content)
    with contextlib.suppress(UnreadableFile):
        exchange.read_reports()
    assert not exchange.has_read_reports_of(exchange.read_heartbeat())
