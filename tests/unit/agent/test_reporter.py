"""What the reporter concludes from what it knows: launches, subtrees, connection and renewals."""

from datetime import UTC, datetime

import pytest

from tests.unit.agent.ray_world import SESSION, group, plan, pool
from workergroups_agent.exchange import ObserverHeartbeat, ReportedGroup, ReportedPool, Reports
from workergroups_agent.reporter.known import CodeFiles, Known, Unreadable
from workergroups_agent.reporter.lease import HeartbeatWatch, Holder, LeaseContent, Renewals, lease_manifest
from workergroups_agent.reporter.prepare import prepare
from workergroups_agent.reporter.subtrees import StatusSubtree, count_unplanned, subtrees, unreported
from workergroups_agent.reporter.timings import ReporterTimings
from workergroups_api.launch import CodeItem, Launch, revision
from workergroups_api.manifest import RESOURCE_POOL, WORKER_GROUP
from workergroups_api.report import GroupReport, PoolReport

TIMINGS = ReporterTimings()
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
        assert (prepared.uid, prepared.revision) == ("uid-g", PLANNED.launch_revision)

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
    def test_what_is_missing_is_reported(self, found, code, words):
        prepared = prepare(PLANNED, found, code)
        assert words in prepared.missing.message
        assert (prepared.missing.reason, prepared.launch, prepared.files) == ("WaitingForCode", None, None)

    def test_keys_become_files_in_folders(self):
        items = [{"key": "train.py", "path": "models/train.py"}, {"key": "train.py", "path": "train.py"}]
        found = manifest()
        found["spec"]["code"]["configMap"]["items"] = items
        launch = LAUNCH.model_copy(update={"config_map_items": tuple(CodeItem(**item) for item in items)})
        planned = group(revision=revision(launch, CODE.digest))
        prepared = prepare(planned, found, {"code": CODE})
        assert prepared.files == dict.fromkeys(("models/train.py", "train.py"), "class Trainer: ...")
        other = CodeFiles({"other.py": ""}, CODE.digest)
        message = prepare(planned, found, {"code": other}).missing.message
        assert message == (
            "spec.code.configMap.items[0]: ConfigMap code has no key train.py: add it, or correct the key"
        )

    def test_variables_from_objects_are_waited_for_until_the_plan_has_their_digest(self):
        spec = {"envFrom": [{"secretRef": {"name": "keys"}}]}
        found = manifest(code=None)
        found["spec"] |= spec
        sources = ({"secretRef": {"name": "keys", "optional": False}},)
        planned = group(revision=revision(Launch(class_path="train.Trainer", env_sources=sources), None))
        missing = prepare(planned, found, {}).missing
        assert missing.reason == "WaitingForEnvironment"
        assert "waiting for the operator to read the Secrets and ConfigMaps" in missing.message
        known = planned.model_copy(update={"environment": "digest"})
        assert prepare(known, found, {}).launch.env_sources == sources

    def test_arguments_that_are_nested_too_deeply_are_reported(self):
        deep = []
        for _ in range(100_000):
            deep = [deep]
        assert "nested too deeply" in prepare(PLANNED, manifest(args=[deep]), {"code": CODE}).missing.message


def report(**more):
    return GroupReport(session=SESSION, incarnation=1, state="Launched", **more)


REPORTS = Reports(
    session=SESSION,
    pools={"p": ReportedPool(uid="uid-p", report=PoolReport(session=SESSION))},
    groups={"g": ReportedGroup(uid="uid-g", report=report())},
)


def known(found=None, code=CODE):
    return Known(plan(pool(), PLANNED), {"g": found or manifest()}, {"code": code})


class TestEntries:
    def test_a_group_gets_the_executors_report_with_the_digest_of_its_code(self):
        found = subtrees(REPORTS, known())
        assert found["uid-g"] == StatusSubtree(WORKER_GROUP, "g", "uid-g", report(code="digest-1").to_json())
        assert found["uid-p"] == StatusSubtree(RESOURCE_POOL, "p", "uid-p", PoolReport(session=SESSION).to_json())

    def test_code_that_is_gone_has_no_digest(self):
        before = manifest(status={"ranks": report(code="digest-1").to_json()})
        assert "code" not in subtrees(REPORTS, known(before, code=None))["uid-g"].report

    @pytest.mark.parametrize("code", [{}, {"code": Unreadable("500")}])
    def test_as_long_as_the_code_was_not_read_its_digest_stays(self, code):
        before = manifest(status={"ranks": report(code="digest-0").to_json()})
        found = subtrees(REPORTS, Known(plan(pool(), PLANNED), {"g": before}, code))
        assert found["uid-g"].report["code"] == "digest-0"

    def test_without_a_report_what_was_written_stays_but_for_the_code(self):
        before = manifest(status={"ranks": report(ready="0-3").to_json()})
        assert subtrees(Reports(), known(before)) == {
            "uid-g": StatusSubtree(WORKER_GROUP, "g", "uid-g", report(ready="0-3", code="digest-1").to_json())
        }

    def test_the_operator_learns_the_code_before_there_is_any_report(self):
        assert subtrees(Reports(), known())["uid-g"].report == GroupReport(code="digest-1").to_json()

    def test_nothing_is_written_for_a_group_that_was_not_read_yet(self):
        assert subtrees(REPORTS, Known(plan(pool(), PLANNED))).keys() == {"uid-p"}

    def test_the_report_on_a_group_that_had_this_name_before_is_not_written(self):
        reports = Reports(groups={"g": ReportedGroup(uid="uid-before", report=report())})
        assert subtrees(reports, known())["uid-g"] == StatusSubtree(
            WORKER_GROUP, "g", "uid-g", GroupReport(code="digest-1").to_json()
        )

    def test_only_planned_names_and_uids_become_entries(self):
        forged = Reports(
            session=SESSION,
            pools={
                "../../../../api/v1/namespaces/ns/configmaps/x?a=": ReportedPool(uid="uid-x", report=PoolReport()),
                "p": ReportedPool(uid="uid-of-another", report=PoolReport()),
            },
            groups={"other": ReportedGroup(uid="uid-other", report=report())},
        )
        found = subtrees(forged, known())
        assert {(subtree.name, subtree.uid) for subtree in found.values()} == {("g", "uid-g")}
        assert count_unplanned(forged, known()) == 3
        assert count_unplanned(REPORTS, known()) == 0

    def test_what_the_reports_do_not_cover_is_named(self):
        assert unreported(REPORTS, known()) == {}
        assert unreported(Reports(session=SESSION), known()).keys() == {"uid-p", "uid-g"}
        assert unreported(REPORTS, Known(plan(pool(), PLANNED))).keys() == {"uid-g"}
        assert unreported(REPORTS, Known()) == {}
        full = Known(plan(pool()), trouble="the plan cannot be handed over to it: No space left on device")
        assert "No space left" in unreported(Reports(session=SESSION), full)["uid-p"]
        made_again = PLANNED.model_copy(update={"uid": "uid-of-another"})
        assert unreported(REPORTS, Known(plan(pool(), made_again), {"g": manifest()})).keys() == {"uid-of-another"}

    @pytest.mark.parametrize("status", [{"ranks": "odd"}, {"ranks": {"failures": 7}}, {"conditions": []}])
    def test_an_odd_status_is_written_again(self, status):
        assert subtrees(REPORTS, known(manifest(status=status)))["uid-g"].report == report(code="digest-1").to_json()


class TestObserverHeartbeat:
    def heartbeat(self, count, session=SESSION):
        return ObserverHeartbeat(session=session, count=count)

    def test_the_first_heartbeat_may_be_an_old_one(self):
        watch = HeartbeatWatch(TIMINGS)
        assert watch.session(self.heartbeat(7), 0.0) is None
        assert watch.session(self.heartbeat(7), 0.1) is None
        assert watch.session(self.heartbeat(8), 0.2) == SESSION

    def test_a_heartbeat_that_appears_during_a_look_is_a_new_one(self):
        watch = HeartbeatWatch(TIMINGS)
        assert watch.session(None, 0.0) is None
        assert watch.session(self.heartbeat(1), 0.1) == SESSION

    def test_a_heartbeat_that_does_not_change_for_three_seconds_is_stale(self):
        watch = HeartbeatWatch(TIMINGS)
        watch.session(None, 0.0)
        watch.session(self.heartbeat(1), 10.0)
        assert watch.session(self.heartbeat(1), 13.0) == SESSION
        assert watch.session(self.heartbeat(1), 13.1) is None
        assert watch.session(self.heartbeat(2), 20.0) == SESSION

    def test_a_heartbeat_that_is_withdrawn_ends_at_once_and_another_session_is_told_at_once(self):
        watch = HeartbeatWatch(TIMINGS)
        watch.session(None, 0.0)
        watch.session(self.heartbeat(1), 0.1)
        assert watch.session(None, 0.2) is None
        assert watch.session(self.heartbeat(1, "session-2"), 0.3) == "session-2"

    def test_a_heartbeat_that_does_not_vouch_for_the_reports_counts_as_not_seen(self):
        watch = HeartbeatWatch(TIMINGS)
        watch.session(None, 0.0)
        assert watch.session(self.heartbeat(1), 0.1, vouches=False) is None
        assert watch.session(self.heartbeat(1), 0.2) == SESSION
        assert watch.session(self.heartbeat(2), 3.2, vouches=False) == SESSION
        assert watch.session(self.heartbeat(3), 3.3, vouches=False) is None
        assert watch.session(self.heartbeat(3), 3.4) == SESSION


HELD = LeaseContent(SESSION)


class TestLease:
    def test_it_is_written_at_once_at_the_start_and_whenever_the_holder_changes(self):
        renewals = Renewals(TIMINGS)
        assert renewals.is_due(LeaseContent(), 100.0)
        renewals.succeeded(LeaseContent(), 100.0)
        assert not renewals.is_due(LeaseContent(), 100.1)
        assert renewals.is_due(HELD, 100.1)
        renewals.succeeded(HELD, 100.1)
        assert renewals.is_due(LeaseContent(), 100.2)

    def test_it_is_written_at_once_when_an_object_comes_into_doubt_but_not_for_other_words(self):
        renewals = Renewals(TIMINGS)
        renewals.succeeded(HELD, 100.0)
        assert renewals.is_due(LeaseContent(SESSION, {"u": "why"}), 100.1)
        renewals.succeeded(LeaseContent(SESSION, {"u": "why"}), 100.1)
        assert not renewals.is_due(LeaseContent(SESSION, {"u": "in other words"}), 100.2)
        assert renewals.is_due(LeaseContent(SESSION, {"v": "why"}), 100.2)
        assert renewals.is_due(HELD, 100.2)

    def test_it_is_renewed_with_and_without_a_holder(self):
        for content in (LeaseContent(), HELD):
            renewals = Renewals(TIMINGS)
            renewals.succeeded(content, 100.0)
            assert not renewals.is_due(content, 102.4)
            assert renewals.is_due(content, 102.5)

    def test_a_failure_is_retried_soon_but_not_at_once(self):
        renewals = Renewals(TIMINGS)
        renewals.failed(100.0)
        assert not renewals.is_due(HELD, 100.4)
        assert renewals.is_due(HELD, 100.5)

    @pytest.mark.parametrize(("holder", "expected"), [(SESSION, {"holderIdentity": SESSION}), (None, {})])
    def test_only_who_is_connected_holds_it(self, holder, expected):
        now = datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC)
        lease = lease_manifest("ns", "c-agent", "uid-1", LeaseContent(holder), now)
        assert lease["metadata"] == {"name": "c-agent", "namespace": "ns", "uid": "uid-1"}
        renewed = {"renewTime": "2026-01-02T03:04:05.000678Z", "leaseDurationSeconds": 10}
        assert lease["spec"] == renewed | expected

    def test_what_the_agent_does_not_vouch_for_is_named_on_it(self):
        lease = lease_manifest("ns", "c-agent", "uid-1", LeaseContent(SESSION, {"u": "why"}), datetime.now(UTC))
        assert lease["metadata"]["annotations"] == {"workergroups.dev/not-vouched-for": '{"u": "why"}'}


class TestHolder:
    def holder(self, told):
        return Holder(lambda session, now: session in told)

    def test_nobody_holds_the_lease_before_all_is_reported(self):
        told = set()
        holder = self.holder(told)
        assert holder.of(SESSION, 0.0) is None
        told.add(SESSION)
        assert holder.of(SESSION, 0.1) == SESSION
        told.clear()
        assert holder.of(SESSION, 0.2) == SESSION

    def test_who_was_away_has_to_tell_again(self):
        told = {SESSION}
        holder = self.holder(told)
        assert holder.of(SESSION, 0.0) == SESSION
        told.clear()
        assert holder.of(None, 0.1) is None
        assert holder.of(SESSION, 0.2) is None

    def test_another_session_has_to_tell_too(self):
        holder = self.holder({SESSION})
        assert holder.of(SESSION, 0.0) == SESSION
        assert holder.of("session-2", 0.1) is None
