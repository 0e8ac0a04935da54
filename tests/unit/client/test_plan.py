"""What `up` says that it will do, on a cluster whose API server answers as given."""

import pytest

from tests.unit.client.fake_cluster import FakeCluster, pool
from workergroups_api.launch import digest
from workergroups_api.names import RESTARTED_AT_ANNOTATION
from workergroups_client.errors import ClientError, ConflictError, NotFoundError
from workergroups_client.files.plan import changed_fields, plan


class DryRuns(FakeCluster):
    """An API server that stores what a manifest has on top of the object, or answers with an error."""

    def __init__(self, *objects, error=None):
        super().__init__(*objects)
        self._error = error

    def present(self, manifest):
        named = (each for each in self.objects if each["metadata"]["name"] == manifest["metadata"]["name"])
        return next(named, None)

    def apply(self, manifest, *, force, dry_run):
        assert dry_run
        if self._error is not None and not (force and isinstance(self._error, ConflictError)):
            raise self._error
        before = self.present(manifest) or manifest
        return {**before, "spec": {**before["spec"], **manifest["spec"]}}


def manifest(nodes=1, kind="ResourcePool", **metadata):
    return {
        "apiVersion": "workergroups.dev/v1alpha1",
        "kind": kind,
        "metadata": {"name": "ppo", **metadata},
        "spec": {"nodes": nodes},
    }


def secret(value):
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"}, "data": {"KEY": value}}


def definition(kind):
    spec = {"group": "workergroups.dev", "names": {"kind": kind}}
    return {"apiVersion": "v1", "kind": "CustomResourceDefinition", "metadata": {"name": "x"}, "spec": spec}


def namespace(name):
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}, "spec": {}}


@pytest.mark.parametrize(
    ("before", "after", "fields"),
    [
        ({"nodes": 1}, {"nodes": 1}, ()),
        ({"nodes": 1}, {"nodes": 2}, ("spec.nodes: 1 -> 2",)),
        ({}, {"suspend": True}, ("spec.suspend: unset -> true",)),
        ({"queue": "a"}, {}, ("spec.queue: a -> unset",)),
        ({"a": {"b": 1, "c": 2}, "d": 3}, {"a": {"b": 2, "c": 2}, "d": 4}, ("spec.a.b: 1 -> 2", "spec.d: 3 -> 4")),
        ({"args": ["a"]}, {"args": ["a", "b"]}, ("spec.args",)),
        ({"a": {"b": 1}}, {}, ("spec.a",)),
        ({"setup": "one\ntwo"}, {"setup": "three"}, ("spec.setup",)),
        ({"image": "a"}, {"image": "a" * 61}, ("spec.image",)),
    ],
)
def test_changed_fields_have_their_short_values(before, after, fields):
    assert changed_fields({**manifest(), "spec": before}, {**manifest(), "spec": after}) == fields


def test_what_the_server_counts_is_no_change():
    before = {**manifest(generation=1, resourceVersion="1", managedFields=[1]), "status": {"nodes": 1}}
    after = {**manifest(generation=2, resourceVersion="2", managedFields=[2]), "status": {"nodes": 2}}
    assert changed_fields(before, after) == ()
    assert changed_fields(before, manifest(labels={"a": "b"})) == ("metadata.labels",)


def test_values_of_a_secret_are_not_shown():
    assert changed_fields(secret("old"), secret("new")) == ("data.KEY",)


@pytest.mark.parametrize(
    ("objects", "said"),
    [
        ((), "create ResourcePool ppo"),
        ((pool("ppo", nodes=1),), "change ResourcePool ppo (spec.nodes: 1 -> 2)"),
        ((pool("ppo", nodes=2),), "leave ResourcePool ppo"),
    ],
)
def test_each_object_is_created_changed_or_left(objects, said):
    assert [str(step) for step in plan(DryRuns(*objects), [manifest(nodes=2)])] == [said]


@pytest.mark.parametrize(
    ("annotations", "last", "begins"),
    [
        ({RESTARTED_AT_ANNOTATION: "now"}, None, True),
        ({RESTARTED_AT_ANNOTATION: "now"}, digest("before"), True),
        ({RESTARTED_AT_ANNOTATION: "now"}, digest("now"), False),
        ({}, digest("before"), False),
    ],
)
def test_a_change_with_which_a_restart_begins_that_has_waited_says_so(annotations, last, begins):
    there = pool("ppo", nodes=1, status={"roll": last} if last else {})
    there["metadata"]["annotations"] = annotations
    asked = manifest(nodes=2, annotations=annotations)
    (step,) = plan(DryRuns(there), [asked])
    cancel = f"to cancel it, before: kubectl annotate resourcepool ppo -n team --context lab {RESTARTED_AT_ANNOTATION}-"
    assert (f"the restart that waits may begin now, which ends ranks; {cancel}" in str(step)) == begins


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("new", "leave WorkerGroup ppo (ConfigMap ppo-code changes, so its ranks start again)"),
        ("old", "leave WorkerGroup ppo"),
    ],
)
def test_a_group_that_is_left_starts_again_with_new_code(code, said):
    ranks = {**manifest(kind="WorkerGroup"), "spec": {"code": {"configMap": {"name": "ppo-code"}}}}
    files = {**manifest(kind="ConfigMap", name="ppo-code"), "spec": {"code": code}}
    there = DryRuns(ranks, {**files, "spec": {"code": "old"}})
    assert str(plan(there, [files, ranks])[1]) == said


def test_new_code_of_that_name_in_another_namespace_starts_no_rank_again():
    ranks = {**manifest(kind="WorkerGroup"), "spec": {"code": {"configMap": {"name": "ppo-code"}}}}
    files = {**manifest(kind="ConfigMap", name="ppo-code", namespace="other"), "spec": {"code": "new"}}
    there = DryRuns(ranks, {**files, "spec": {"code": "old"}})
    assert str(plan(there, [files, ranks])[1]) == "leave WorkerGroup ppo"


def test_a_conflict_names_the_object_the_values_and_the_way_out():
    cluster = DryRuns(pool("ppo", nodes=1), error=ConflictError("conflict with kubectl: .spec.nodes"))
    way_out = "With --force-conflicts, up takes these fields over, and changes spec.nodes: 1 -> 2$"
    with pytest.raises(ClientError, match=rf"^ResourcePool ppo: conflict with kubectl.*{way_out}"):
        plan(cluster, [manifest(nodes=2)])
    assert [step.fields for step in plan(cluster, [manifest(nodes=2)], force=True)] == [("spec.nodes: 1 -> 2",)]


class WithoutKind(DryRuns):
    """Lacks the kind or the namespace of pools."""

    def present(self, manifest):
        if manifest["kind"] == "ResourcePool":
            raise NotFoundError("the cluster has no kind ResourcePool")
        return None


@pytest.mark.parametrize(
    ("other", "metadata"),
    [(definition("ResourcePool"), {}), (namespace("team"), {}), (namespace("rl"), {"namespace": "rl"})],
)
def test_a_kind_or_namespace_may_come_with_the_objects(other, metadata):
    steps = plan(WithoutKind(), [other, manifest(**metadata)])
    assert str(steps[1]) == "create ResourcePool ppo"


@pytest.mark.parametrize("other", [definition("WorkerGroup"), namespace("rl"), manifest(kind="WorkerGroup")])
def test_a_kind_or_namespace_that_nothing_brings_is_an_error(other):
    with pytest.raises(NotFoundError, match="no kind ResourcePool"):
        plan(WithoutKind(), [other, manifest()])


def managed(manager, *fields, **entry):
    return {"manager": manager, "fieldsV1": {"f:spec": {f"f:{field}": {} for field in fields}}, **entry}


def test_a_field_that_another_tool_has_set_and_the_file_lacks_is_named_with_its_removal():
    there = pool("ppo", nodes=1, image="trainer:2026-11", volumes=[{}], idle=None)
    there["metadata"]["managedFields"] = [
        managed("workergroups-cli", "nodes"),
        managed("kubectl-patch", "image", "nodes", "gone"),
        managed("kubectl-edit", "volumes"),
        managed("workergroups-operator", "status", subresource="status"),
        {"manager": "labels", "fieldsV1": {"f:metadata": {}}},
    ]
    image, volumes = plan(DryRuns(there), [manifest(nodes=1)])[0].kept
    assert image == (
        "spec.image=trainer:2026-11 stays: kubectl-patch has set it, and the file does not have it; to remove it: "
        "kubectl patch resourcepool ppo -n team --context lab --type=json "
        '--patch=\'[{"op": "remove", "path": "/spec/image"}]\''
    )
    assert volumes.startswith("spec.volumes stays: kubectl-edit has set it")
    assert plan(DryRuns(there), [manifest(nodes=1, kind="Secret")])[0].kept == ()
