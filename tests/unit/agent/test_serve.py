"""The reporter's tasks go on, and show kubelet that they do, whatever lies in the exchange."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kubernetes.aio.client.api_client import ApiClient
from kubernetes.aio.client.configuration import Configuration

from tests.unit.agent.odd_files import NO_FILES
from tests.unit.agent.ray_world import SESSION, group, plan, pool
from workergroups_agent.exchange import Exchange, ReportedGroup, ReportedPool, Reports
from workergroups_agent.liveness_file import LivenessFile
from workergroups_agent.reporter.known import Known
from workergroups_agent.reporter.serve import serve
from workergroups_agent.reporter.status import StatusWriter
from workergroups_agent.reporter.subtrees import subtrees
from workergroups_agent.reporter.timings import ReporterTimings
from workergroups_api.report import GroupReport, PoolReport
from workergroups_kube import Kube

TIMINGS = ReporterTimings()


class CountedLivenessFile(LivenessFile):
    def __init__(self, path):
        super().__init__(path)
        self.prolonged = asyncio.Semaphore(0)

    def prolong(self):
        super().prolong()
        self.prolonged.release()


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", ["heartbeat", "reports.json"])
@pytest.mark.parametrize("put", NO_FILES)
def test_the_reporter_is_alive_whatever_has_the_name_of_a_report(tmp_path, put, name):
    (tmp_path / "reports").mkdir()
    put(tmp_path / "reports" / name)

    async def main():
        alive = CountedLivenessFile(tmp_path / "alive")
        async with ApiClient(Configuration(host="http://127.0.0.1:1")) as api:
            serving = asyncio.create_task(serve(Kube(api, "test", 15.0), "ns", "c", Exchange(tmp_path), alive, TIMINGS))
            for _ in range(3):
                await alive.prolonged.acquire()
            serving.cancel()

    asyncio.run(main())


REPORTS = Reports(
    session=SESSION,
    pools={"p": ReportedPool(uid="uid-p", report=PoolReport(session=SESSION))},
    groups={"g": ReportedGroup(uid="uid-g", report=GroupReport(session=SESSION))},
)


@pytest.fixture
def observer(tmp_path):
    return Exchange(tmp_path)


@pytest.fixture
def writer(tmp_path):
    """A writer that never gets to write."""
    return StatusWriter(None, "ns", Exchange(tmp_path), Known(plan(pool()), {}, {}), TIMINGS)


def test_reports_that_cannot_be_read_are_reported_and_read_as_soon_as_they_are_right_again(writer, observer, tmp_path):
    path = tmp_path / "reports" / "reports.json"
    path.parent.mkdir()
    path.mkdir()
    writer.look(0.0)
    assert writer.trouble == "reports.json cannot be read: it is not a regular file"
    path.rmdir()
    observer.write_reports(REPORTS)
    writer.look(0.1)
    assert writer.trouble is None


def test_reports_that_could_not_be_read_for_another_reason_are_read_again_after_a_while(writer, observer, monkeypatch):
    observer.write_reports(REPORTS)
    with monkeypatch.context() as patch:
        patch.setattr("os.fstat", lambda descriptor: (_ for _ in ()).throw(OSError(5, "Input/output error")))
        writer.look(0.0)
    assert "Input/output error" in writer.trouble
    writer.look(TIMINGS.read_again - 0.1)
    assert writer.trouble is not None
    writer.look(TIMINGS.read_again)
    assert writer.trouble is None


def test_all_is_told_when_it_is_written_or_in_doubt(writer, observer):
    observer.write_reports(REPORTS)
    writer.answered(0.0)
    writer.look(0.0)
    assert not writer.has_told(SESSION, 1.0)
    assert not writer.has_told(SESSION, 3.0), "perhaps the API server answers nobody"
    assert writer.suspects(3.0) == {"uid-p"}
    writer.answered(3.0)
    assert writer.has_told(SESSION, 3.0), "it could not be written, and is in doubt"
    assert writer.doubts(3.0).keys() == {"uid-p"}
    assert not writer.has_told("session-2", 3.0)


def test_what_the_reports_do_not_cover_is_in_doubt_after_a_while(writer, observer):
    observer.write_reports(Reports(session=SESSION))
    writer.look(0.0)
    assert not writer.has_told(SESSION, TIMINGS.unreported)
    assert writer.doubts(TIMINGS.unreported) == {}
    assert "does not report on it" in writer.doubts(TIMINGS.unreported + 0.1)["uid-p"]


TEXTS = st.text(max_size=20) | st.sampled_from(["p", "g", "uid-p", "uid-g"])


@settings(deadline=None)
@given(
    pools=st.dictionaries(TEXTS, st.builds(ReportedPool, uid=TEXTS, report=st.builds(PoolReport)), max_size=5),
    groups=st.dictionaries(TEXTS, st.builds(ReportedGroup, uid=TEXTS, report=st.builds(GroupReport)), max_size=5),
)
def test_whatever_is_reported_only_planned_objects_are_written(pools, groups):
    known = Known(plan(pool(), group()), {"g": None}, {})
    found = subtrees(Reports(session=SESSION, pools=pools, groups=groups), known)
    assert {(subtree.name, subtree.uid) for subtree in found.values()} <= {("p", "uid-p"), ("g", "uid-g")}
