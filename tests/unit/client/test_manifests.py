"""What `up` reads."""

import pytest

from workergroups_client.errors import ClientError
from workergroups_client.manifests import load, namespace_of


def test_what_groups_and_pools_need_comes_before_them(tmp_path):
    for name, kind in (("a", "WorkerGroup"), ("b", "ResourcePool"), ("c", "ConfigMap")):
        (tmp_path / f"{name}.yaml").write_text(f"apiVersion: v1\nkind: {kind}\nmetadata: {{name: {name}}}\n---\n")
    (tmp_path / "driver.py").write_text("no manifest")
    assert [manifest["kind"] for manifest in load(str(tmp_path))] == ["ConfigMap", "ResourcePool", "WorkerGroup"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "contains no Kubernetes objects"),
        ("kind: Pod", "contains what is not a Kubernetes object"),
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
