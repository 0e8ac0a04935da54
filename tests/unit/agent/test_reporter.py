"""What the reporter concludes from what it knows: launches, entries, connection, beats and further tries."""

from datetime import UTC, datetime

import pytest
from kubernetes.aio.dynamic.exceptions import DynamicApiError
from ray_world import SESSION, group, plan, pool

from workergroups_agent.exchange import GroupEntry, PoolEntry, Pulse, Reports
from workergroups_agent.reporter.entries import Entry, entries
from workergroups_agent.reporter.known import CodeFiles, Known, Unreadable
from workergroups_agent.reporter.lease import Beats, Holder, lease_manifest
from workergroups_agent.reporter.prepare import prepare
from workergroups_agent.reporter.pulse import PulseWatch
from workergroups_agent.reporter.status import covers, is_gone, next_retry
from workergroups_api.launch import Launch, revision
from workergroups_api.manifest import RESOURCE_POOL, WORKER_GROUP
from workergroups_api.report import GroupReport, PoolReport

CODE = CodeFiles({"train.py": "class Trainer: ..."}, "digest-1")


def manifest(uid="uid-g", code="code", status=None, **worker):
    spec = {"worker": {"class": "train.Trainer"} | worker} | ({"code": {"configMap": {"name": code}}} if code else {})
    return {"metadata": {"name": "g", "uid": uid}, "spec": spec} | ({"status": status} if status else {})


LAUNCH = Launch(class_path="train.Trainer", config_map="code")
PLANNED = group(revision=revision(LAUNCH, CODE.digest))


class TestPrepare:
    def test_a_launch_is_handed_over_in_the_version_that_is_planned(self):
        prepared = prepare(PLANNED, manifest(), {"code": CODE})
        assert (prepared.launch, prepared.files, prepared.missing) == (LAUNCH, CODE.files, None)
        assert (prepared.uid, prepared.revision) == ("uid-g", PLANNED.revision)

    def test_a_class_in_the_image_needs_no_code(self):
        launch = Launch(class_path="train.Trainer")
        prepared = prepare(group(revision=revision(launch, None)), manifest(code=None), {})
        assert (prepared.launch, prepared.files) == (launch, None)

    @pytest.mark.parametrize(
        ("found", "code", "words"),
        [
            (None, {"code": CODE}, "to see the WorkerGroup"),
            (manifest(uid="of another"), {"code": CODE}, "to see the WorkerGroup"),
            (Unreadable("403: forbidden"), {"code": CODE}, "cannot read the WorkerGroup: 403: forbidden"),
            (manifest(), {"code": None}, "spec.code.configMap: there is no ConfigMap code: create it"),
            (manifest(), {}, "to read ConfigMap code"),
            (manifest(), {"code": Unreadable("403: no")}, "cannot read ConfigMap code: 403: no"),
            (manifest(), {"code": CodeFiles({}, "digest-2")}, "waiting for the operator's plan"),
            (manifest(args=[1]), {"code": CODE}, "waiting for the operator's plan"),
            (manifest(args="all"), {"code": CODE}, "cannot be read: spec.worker.args"),
            ({"metadata": {"uid": "uid-g"}, "spec": {"seats": []}}, {"code": CODE}, "cannot be read: spec"),
            ({"metadata": {"uid": "uid-g"}, "spec": None}, {"code": CODE}, "cannot be read: spec"),
        ],
    )
    def test_what_is_missing_is_said(self, found, code, words):
        prepared = prepare(PLANNED, found, code)
        assert words in prepared.missing.message
        assert (prepared.missing.reason, prepared.launch, prepared.files) == ("WaitingForCode", None, None)

    def test_arguments_that_are_nested_too_deeply_are_said(self):
        deep = []
        for _ in range(100_000):
            deep = [deep]
        assert prepare(PLANNED, manifest(args=[deep]), {"code": CODE}).missing is not None


def report(**more):
    return GroupReport(session=SESSION, incarnation=1, state="Launched", **more)


REPORTS = Reports(
    session=SESSION,
    pools={"p": PoolEntry(uid="uid-p", report=PoolReport(session=SESSION))},
    groups={"g": GroupEntry(uid="uid-g", report=report())},
)
THE_GROUP = (WORKER_GROUP, "g")


def known(found=None, code=CODE):
    return Known(plan(pool(), PLANNED), {"g": found or manifest()}, {"code": code})


class TestEntries:
    def test_a_group_gets_the_executors_report_with_the_digest_of_its_code(self):
        found = entries(REPORTS, known())
        assert found[THE_GROUP] == Entry("uid-g", report(code="digest-1").to_json())
        assert found[RESOURCE_POOL, "p"] == Entry("uid-p", PoolReport(session=SESSION).to_json())

    def test_code_that_is_gone_has_no_digest(self):
        before = manifest(status={"ranks": report(code="digest-1").to_json()})
        assert "code" not in entries(REPORTS, known(before, code=None))[THE_GROUP].report

    @pytest.mark.parametrize("code", [{}, {"code": Unreadable("500")}])
    def test_as_long_as_the_code_was_not_read_its_digest_stays(self, code):
        before = manifest(status={"ranks": report(code="digest-0").to_json()})
        found = entries(REPORTS, Known(plan(pool(), PLANNED), {"g": before}, code))
        assert found[THE_GROUP].report["code"] == "digest-0"

    def test_without_a_report_what_was_written_stays_but_for_the_code(self):
        before = manifest(status={"ranks": report(ready="0-3").to_json()})
        assert entries(Reports(), known(before)) == {
            THE_GROUP: Entry("uid-g", report(ready="0-3", code="digest-1").to_json())
        }

    def test_the_operator_learns_the_code_before_there_is_any_report(self):
        assert entries(Reports(), known())[THE_GROUP].report == GroupReport(code="digest-1").to_json()

    def test_of_a_group_that_was_not_read_yet_nothing_is_written(self):
        assert entries(REPORTS, Known(plan(pool(), PLANNED))).keys() == {(RESOURCE_POOL, "p")}

    def test_the_report_on_a_group_that_had_this_name_before_is_not_written(self):
        reports = Reports(groups={"g": GroupEntry(uid="uid-before", report=report())})
        assert entries(reports, known())[THE_GROUP] == Entry("uid-g", GroupReport(code="digest-1").to_json())

    @pytest.mark.parametrize("status", [{"ranks": "odd"}, {"ranks": {"failures": 7}}, {"conditions": []}])
    def test_an_odd_status_is_written_anew(self, status):
        assert entries(REPORTS, known(manifest(status=status)))[THE_GROUP].report == report(code="digest-1").to_json()


class TestPulse:
    def pulse(self, count, session=SESSION):
        return Pulse(session=session, count=count)

    def test_the_first_pulse_may_be_an_old_one(self):
        watch = PulseWatch()
        assert watch.session(self.pulse(7), 0.0) is None
        assert watch.session(self.pulse(7), 0.1) is None
        assert watch.session(self.pulse(8), 0.2) == SESSION

    def test_a_pulse_that_appears_while_one_looks_is_a_new_one(self):
        watch = PulseWatch()
        assert watch.session(None, 0.0) is None
        assert watch.session(self.pulse(1), 0.1) == SESSION

    def test_a_pulse_that_does_not_change_for_three_seconds_is_stale(self):
        watch = PulseWatch()
        watch.session(None, 0.0)
        watch.session(self.pulse(1), 10.0)
        assert watch.session(self.pulse(1), 13.0) == SESSION
        assert watch.session(self.pulse(1), 13.1) is None
        assert watch.session(self.pulse(2), 20.0) == SESSION

    def test_a_pulse_that_is_withdrawn_ends_at_once_and_another_session_is_told_at_once(self):
        watch = PulseWatch()
        watch.session(None, 0.0)
        watch.session(self.pulse(1), 0.1)
        assert watch.session(None, 0.2) is None
        assert watch.session(self.pulse(1, "session-2"), 0.3) == "session-2"


class TestLease:
    def test_it_is_written_at_once_at_the_start_and_whenever_the_holder_changes(self):
        beats = Beats()
        assert beats.is_due(None, 100.0)
        beats.succeeded(None, 100.0)
        assert not beats.is_due(None, 100.1)
        assert beats.is_due(SESSION, 100.1)
        beats.succeeded(SESSION, 100.1)
        assert beats.is_due(None, 100.2)

    def test_it_is_renewed_with_and_without_a_holder(self):
        for holder in (None, SESSION):
            beats = Beats()
            beats.succeeded(holder, 100.0)
            assert not beats.is_due(holder, 102.4)
            assert beats.is_due(holder, 102.5)

    def test_a_failure_is_tried_again_soon_but_not_at_once(self):
        beats = Beats()
        beats.failed(100.0)
        assert not beats.is_due(SESSION, 100.4)
        assert beats.is_due(SESSION, 100.5)

    @pytest.mark.parametrize(("holder", "expected"), [(SESSION, {"holderIdentity": SESSION}), (None, {})])
    def test_only_who_is_connected_holds_it(self, holder, expected):
        now = datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC)
        lease = lease_manifest("ns", "c-agent", "uid-1", holder, now)
        assert lease["metadata"] == {"name": "c-agent", "namespace": "ns", "uid": "uid-1"}
        renewed = {"renewTime": "2026-01-02T03:04:05.000678Z", "leaseDurationSeconds": 10}
        assert lease["spec"] == renewed | expected


class TestHolder:
    def test_nobody_holds_the_lease_before_all_is_told(self):
        told = set()
        holder = Holder(told.__contains__)
        assert holder.of(SESSION) is None
        told.add(SESSION)
        assert holder.of(SESSION) == SESSION
        told.clear()
        assert holder.of(SESSION) == SESSION

    def test_who_was_away_has_to_tell_again(self):
        told = {SESSION}
        holder = Holder(told.__contains__)
        assert holder.of(SESSION) == SESSION
        told.clear()
        assert holder.of(None) is None
        assert holder.of(SESSION) is None

    def test_another_session_has_to_tell_too(self):
        holder = Holder({SESSION}.__contains__)
        assert holder.of(SESSION) == SESSION
        assert holder.of("session-2") is None

    def test_all_is_said_when_it_is_of_this_session_and_of_every_planned_object(self):
        wanted = plan(pool(), PLANNED)
        assert covers(REPORTS, SESSION, wanted)
        assert not covers(REPORTS, "session-2", wanted)
        assert not covers(Reports(session=SESSION), SESSION, wanted)
        assert not covers(REPORTS.model_copy(update={"groups": {}}), SESSION, wanted)
        made_again = PLANNED.model_copy(update={"uid": "uid-of-another"})
        assert not covers(REPORTS, SESSION, wanted.model_copy(update={"groups": (made_again,)}))


class Refusal:
    headers = None

    def __init__(self, status, body=""):
        self.status, self.reason, self.body = status, "why", body


ENTRY = Entry("u", {})


def refuses(status):
    return next_retry(ENTRY, None, DynamicApiError(Refusal(status)), 0.0).is_refused


class TestRetries:
    def test_a_failed_write_is_tried_again_later_and_later(self):
        retry, delays = None, []
        for _ in range(7):
            retry = next_retry(ENTRY, retry, TimeoutError(), 100.0)
            delays.append(retry.at - 100.0)
        assert delays == [0.5, 1, 2, 4, 8, 10, 10]

    def test_a_refusal_is_told_from_a_write_that_may_yet_succeed(self):
        refused = {status for status in (404, 409, 422, 429, 500) if refuses(status)}
        assert refused == {404, 422}

    @pytest.mark.parametrize(
        ("status", "body", "gone"),
        [
            (404, "", True),
            (409, "Precondition failed: UID in precondition: a, UID in object meta: b", True),
            (409, "the object has been modified; please apply your changes to the latest version", False),
            (422, "invalid", False),
            (500, "", False),
        ],
    )
    def test_an_object_that_is_gone_is_told_from_a_write_that_failed(self, status, body, gone):
        assert is_gone(DynamicApiError(Refusal(status, body))) is gone

    def test_connections_fail_without_meaning_that_the_object_is_gone(self):
        assert not is_gone(TimeoutError())
