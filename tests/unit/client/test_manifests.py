"""What `up` reads."""

import pytest

from workergroups_client.errors import ClientError
from workergroups_client.manifests import load


def test_what_groups_and_pools_need_comes_before_them(tmp_path):
    for name, kind in (("a", "WorkerGroup"), ("b", "ResourcePool"), ("c", "ConfigMap")):
        (tmp_path / f"{name}.yaml").write_text(f"apiVersion: v1\nkind: {kind}\nmetadata: {{name: {name}}}\n---\n")
    (tmp_path / "driver.py").write_text("no manifest")
    assert [manifest["kind"] for manifest in load(str(tmp_path))] == ["ConfigMap", "ResourcePool", "WorkerGroup"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has no objects"),
        ("kind: Pod", "no Kubernetes object"),
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
