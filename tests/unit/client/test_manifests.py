"""What `up` reads."""

import pytest

from workergroups_client.errors import ClientError
from workergroups_client.files.manifests import load, namespace_of


def test_what_groups_and_pools_need_comes_before_them(tmp_path):
    for name, kind in (("a", "WorkerGroup"), ("b", "ResourcePool"), ("c", "ConfigMap")):
        (tmp_path / f"{name}.yaml").write_text(f"apiVersion: v1\nkind: {kind}\nmetadata: {{name: {name}}}\n---\n")
    (tmp_path / "driver.py").write_text("no manifest")
    assert [manifest["kind"] for manifest in load(str(tmp_path))] == ["ConfigMap", "ResourcePool", "WorkerGroup"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "contains no Kubernetes objects"),
        ("kind: Pod", "object 1: apiVersion is missing"),
        ("[1]", "object 1: it is a list, not a mapping with apiVersion, kind and metadata"),
        ("apiVersion: 1\nkind: Pod\nmetadata: {name: a}", "apiVersion is 1, not text: quote it"),
        ("apiVersion: v1\nkind: Pod\nmetadata:\nname: a", "metadata is empty: below it, indent name"),
        ("apiVersion: v1\nkind: Pod\nmetadata: a", "metadata is text: below it, indent name"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {}", "metadata.name is missing"),
        (
            "apiVersion: v1\nkind: Pod\nmetadata: {generateName: a-}",
            "each time would make another object: set metadata.name",
        ),
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: 2024}", "metadata.name is 2024, not text: quote it"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: on}", "metadata.name is true, not text: quote it"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: 1}", "metadata.namespace is 1, not text"),
        ("apiVersion: v1\nkind: ResourcePool\nmetadata: {name: a}\nspec:\nnodes: 2", "spec is empty: below it, indent"),
        ("apiVersion: v1\nkind: List\nitems: [{kind: Pod}]", "object 1: apiVersion is missing"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {x: .inf}", "JSON has no .inf"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {1.5: 2}", "the key 1.5 is no text: quote it"),
        ("a: [", "cannot be read"),
        (None, "cannot be read"),
    ],
)
def test_what_cannot_be_applied_is_refused(tmp_path, text, said):
    path = tmp_path / "pool.yaml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ClientError, match=said):
        load(str(path))


def test_a_list_is_its_items(tmp_path):
    objects = (
        "[{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}, {apiVersion: v1, kind: Pod, metadata: {name: b}}]"
    )
    path = tmp_path / "list.yaml"
    path.write_text(f"apiVersion: v1\nkind: List\nitems: {objects}\n---\n---\napiVersion: v1\nkind: PodList\nitems: []")
    assert [each["metadata"]["name"] for each in load(str(path))] == ["a", "b"]


def test_numbers_and_dates_are_what_kubectl_makes_of_them(tmp_path):
    """`tests/api/test_yaml_of_kubectl.py` compares both."""
    path = tmp_path / "group.yaml"
    values = "{lr: 1e-6, day: 2024-01-01, port: 22:22, y: y, large: 123456789012345678901, 1: a}"
    path.write_text(f"apiVersion: v1\nkind: WorkerGroup\nmetadata: {{name: a}}\nspec: {values}", encoding="utf-8")
    found = {"lr": 1e-6, "day": "2024-01-01", "port": "22:22", "true": True, "large": 123456789012345680000.0, "1": "a"}
    assert load(str(path))[0]["spec"] == found


def named(*namespaces):
    return [{"kind": "WorkerGroup", "metadata": {"namespace": each} if each else {}} for each in namespaces]


@pytest.mark.parametrize(
    ("manifests", "asked", "found"),
    [(named(None), None, None), (named(None), "a", "a"), (named("a", None), None, "a"), (named("a"), "a", "a")],
)
def test_the_namespace_is_the_one_that_is_asked_for_or_named(manifests, asked, found):
    assert namespace_of(manifests, asked) == found


@pytest.mark.parametrize(
    ("manifests", "said"), [(named("a", "b"), r"in several namespaces \(a, b\)"), (named("b"), "in namespace b, not a")]
)
def test_another_namespace_is_refused(manifests, said):
    with pytest.raises(ClientError, match=said):
        namespace_of(manifests, "a")
