"""When the operator writes, and when it must not."""

import asyncio
import copy

import pytest

from tests.unit.operator import make
from tests.unit.operator.make import (
    KEY,
    SETTINGS,
    TIMINGS,
    api_error,
    built,
    child,
    decided,
    observed,
    of_kind,
    pool,
)
from tests.unit.virtual_time import now, run
from workergroups_api.conditions import Explanation
from workergroups_api.manifest import RAY_CLUSTER
from workergroups_api.names import network_policy_name
from workergroups_operator.apply import Applier, Changes, covers, is_applied, write
from workergroups_operator.desired import desired
from workergroups_operator.desired.token import FreshSecrets
from workergroups_operator.failures import Failures


@pytest.mark.parametrize(
    ("live", "wanted", "covered"),
    [
        ({"a": 1, "b": 2}, {"a": 1}, True),
        ({"a": 1}, {"a": 2}, False),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ({"a": [{"x": 1, "y": 2}]}, {"a": [{"x": 1}]}, True),
        ({"a": [1, 2]}, {"a": [1]}, False),
        ({}, {"a": {}}, True),
        ({}, {"a": []}, True),
        ({"a": [1]}, {"a": []}, False),
        # The API server writes quantities in its own way.
        ({"requests": {"cpu": "500m", "memory": "1Gi"}}, {"requests": {"cpu": 0.5, "memory": "1024Mi"}}, True),
        ({"requests": {"cpu": "2"}, "limits": {"cpu": "2"}}, {"requests": {"cpu": 2}, "limits": {"cpu": "4"}}, False),
        ({"requests": {}}, {"requests": {"cpu": "1"}}, False),
        ({"limits": None}, {"limits": {"cpu": "odd"}}, False),
        ({"cpu": "500m"}, {"cpu": "0.5"}, False),
    ],
)
def test_what_others_added_is_no_difference(live, wanted, covered):
    assert covers(live, wanted) is covered


def applied():
    """The RayCluster as it is wanted, and as the API server has it after it was applied."""
    wanted = of_kind("RayCluster", make.wanted(observed(pools=(pool(),))))
    live = copy.deepcopy(wanted)
    fields = {"f:spec": {f"f:{key}": {} for key in wanted["spec"]}}
    entry = {"manager": "workergroups-operator", "operation": "Apply", "fieldsV1": fields}
    live["metadata"]["managedFields"] = [entry]
    return wanted, live


def test_what_is_applied_is_not_applied_again():
    wanted, live = applied()
    assert is_applied(live, wanted)
    assert KEY.name == live["metadata"]["name"]


def test_a_field_that_is_not_wanted_any_more_is_taken_away():
    wanted, live = applied()
    live["metadata"]["annotations"]["workergroups.dev/manifest"] = "of a manifest with one field more"
    assert not is_applied(live, wanted)


def test_a_value_that_somebody_changed_is_put_back():
    wanted, live = applied()
    live["spec"]["workerGroupSpecs"][0]["replicas"] = 9
    assert not is_applied(live, wanted)


def test_an_addition_to_a_list_that_is_ours_as_a_whole_is_put_back():
    wanted, live = applied()
    live["spec"]["workerGroupSpecs"][0]["template"]["spec"]["hostNetwork"] = True
    del live["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"]["f:workerGroupSpecs"]
    assert not is_applied(live, wanted)


def test_what_others_added_next_to_ours_stays():
    wanted, live = applied()
    live["spec"]["suspend"] = False
    live["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "research"
    assert is_applied(live, wanted)


class ApiServer:
    """Takes some seconds for a write, and refuses all of them while it is told to."""

    def __init__(self, seconds=0.01):
        self.seconds = seconds
        self.refuses = False
        self.applied = []
        self.others_token = False

    async def create(self, manifest):
        self.applied.append((manifest["kind"], now()))
        if self.refuses:
            raise api_error(403, "denied by a webhook")
        if self.others_token:
            raise api_error(409, "secrets already exists")

    async def apply(self, manifest):
        self.applied.append((manifest["kind"], now()))
        await asyncio.sleep(self.seconds)
        if self.refuses:
            raise api_error(403, "denied by a webhook")


def turn(applier, name="actors", children=None):
    seen = observed(pools=(pool(name),), children=children or {})
    decisions = decided(seen)
    return applier.apply(
        seen, decisions, desired(seen, built(seen), decisions, SETTINGS.network, FreshSecrets.random())
    )


def first_turn(api, **more):
    """What the first turn of an operator says of its writes."""

    async def scenario():
        return await turn(Applier(api, lambda _: None, TIMINGS), **more)

    return run(scenario())


def test_what_is_refused_is_reported_in_the_same_turn():
    api = ApiServer()
    api.refuses = True
    assert set(first_turn(api).by_kind) == {kind for kind, _ in api.applied}


@pytest.mark.parametrize(
    ("error", "is_failure", "is_told"),
    [
        (None, False, True),
        # Somebody has changed or replaced the pool meanwhile.
        (api_error(409, "the object has been modified"), False, False),
        (api_error(403, "denied by a webhook"), True, False),
    ],
)
def test_an_unused_pool_is_deleted_as_it_was_read_and_an_event_tells_why(error, is_failure, is_told):
    deleted, told = [], []

    class Server:
        async def delete(self, manifest, *, only_unchanged):
            deleted.append((manifest["kind"], manifest["metadata"]["uid"], only_unchanged))
            if error is not None:
                raise error

        async def create(self, event):
            told.append((event["reason"], event["note"], event["regarding"]["uid"]))

    why = Explanation("Deleted", "nobody has used it")
    failures = run(write(Server(), Changes(None, None, (), {}, "", ((pool(), why),))))
    assert deleted == [("ResourcePool", "uid-actors", True)]
    assert told == [("Deleted", "nobody has used it", "uid-actors")] * is_told
    assert ("ResourcePool" in failures.by_kind) is is_failure


@pytest.mark.parametrize(
    ("metadata", "is_failure"), [({"resourceVersion": "7"}, False), ({"uid": "u"}, False), ({}, True)]
)
def test_who_comes_second_where_a_queue_may_write_has_not_failed(metadata, is_failure):
    class Quicker:
        async def apply(self, manifest):
            raise api_error(409, "the object has been modified")

    manifest = {"kind": "RayCluster", "metadata": {"name": "actors"} | metadata}
    failures = run(write(Quicker(), Changes(None, None, (manifest,), {}, "")))
    assert bool(failures.by_kind) is is_failure


@pytest.mark.parametrize("seconds", [0.01, 10])
def test_a_reconcile_that_leaves_a_write_does_not_know_that_it_is_written(seconds):
    assert first_turn(ApiServer(seconds)).is_written(RAY_CLUSTER) is (seconds < 1)


def test_pods_come_after_what_they_need():
    api = ApiServer()
    assert not first_turn(api).by_kind
    assert {kind for kind, moment in api.applied if moment} == {"RayCluster", "RoleBinding"}


@pytest.mark.parametrize(
    "present", [{}, child("RayCluster", "actors"), child("NetworkPolicy", network_policy_name("actors"))]
)
def test_rays_pods_do_not_begin_without_a_network_policy(present):
    class NoPolicies(ApiServer):
        async def apply(self, manifest):
            await super().apply(manifest)
            if manifest["kind"] == "NetworkPolicy":
                raise api_error(422, "spec.ingress[1].from[0] is invalid")

    api = NoPolicies()
    failures = first_turn(api, children=present)
    assert set(failures.by_kind) == {"NetworkPolicy"}
    written = [kind for kind, _ in api.applied]
    assert "RoleBinding" in written
    assert ("RayCluster" in written) is failures.is_written(RAY_CLUSTER) is bool(present)


def test_a_token_that_another_operator_wrote_meanwhile_stays_and_nothing_is_made_for_ours():
    api = ApiServer()
    api.others_token = True
    assert not first_turn(api).by_kind
    written = [kind for kind, _ in api.applied]
    assert written.count("Secret") == 1  # the attempt
    assert {"Lease", "ConfigMap", "RoleBinding"} <= set(written)
    assert not {"RayCluster", "Deployment"} & set(written)


def test_where_no_secret_can_be_written_nothing_is_made_for_its_token_and_the_refusal_is_reported():
    class NoSecrets(ApiServer):
        async def create(self, manifest):
            raise api_error(403, "denied by a webhook")

    api = NoSecrets()
    assert set(first_turn(api).by_kind) == {"Secret"}
    assert not {"RayCluster", "Deployment", "Secret"} & {kind for kind, _ in api.applied}


def test_a_late_refusal_is_reported_by_the_next_turn_and_tried_by_the_one_after_it():
    api, enqueued = ApiServer(seconds=10), []
    api.refuses = True

    async def scenario():
        applier = Applier(api, enqueued.append, TIMINGS)
        seen = []
        for pause in (30, 1, 1):
            before, failures = len(api.applied), await turn(applier)
            await asyncio.sleep(pause)
            seen.append((bool(failures.by_kind), len(api.applied) > before))
        return seen

    # Whether a turn reports that something is refused, and whether it tries to write.
    assert run(scenario()) == [(False, True), (True, False), (True, True)]
    assert enqueued == [KEY]


def test_after_a_late_refusal_a_change_is_tried_at_once():
    api = ApiServer(seconds=10)
    api.refuses = True

    async def scenario():
        applier = Applier(api, lambda _: None, TIMINGS)
        await turn(applier)
        await asyncio.sleep(30)
        before = len(api.applied)
        await turn(applier, "others")
        return len(api.applied) - before

    assert run(scenario()) > 0


def test_a_success_ends_what_was_reported():
    api = ApiServer()
    api.refuses = True

    async def scenario():
        applier = Applier(api, lambda _: None, TIMINGS)
        await turn(applier)
        api.refuses = False
        return await turn(applier)

    assert not run(scenario()).by_kind


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ('roles "r" is forbidden: unable to create new content in namespace n because it is being terminated', True),
        ('roles "r" is forbidden: user "u" cannot create it', False),
    ],
)
def test_it_is_known_that_a_namespace_is_being_deleted(message, expected):
    failures = Failures({"Role": Explanation("ApplyFailed", f"Role r cannot be written: {message}")})
    assert failures.are_of_ending_namespace is expected
