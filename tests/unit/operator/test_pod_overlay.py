"""A user's pod template over ours."""

from workergroups_operator.templates.pod_overlay import overlay

BASE = {
    "spec": {
        "containers": [{"name": "ray-worker", "image": "ours", "env": [{"name": "A", "value": "1"}]}],
        "tolerations": [{"key": "gpu"}],
        "nodeSelector": {"zone": "a"},
    }
}


def patched(**spec):
    return overlay(BASE, {"spec": spec})["spec"]


def test_containers_merge_by_name():
    memory = {"limits": {"memory": "8Gi"}}
    patch = [{"name": "ray-worker", "resources": memory, "env": [{"name": "B", "value": "2"}]}, {"name": "sidecar"}]
    worker, sidecar = patched(containers=patch)["containers"]
    assert worker["image"] == "ours"
    assert worker["resources"] == memory
    assert [variable["name"] for variable in worker["env"]] == ["A", "B"]
    assert sidecar == {"name": "sidecar"}


def test_volumes_come_in_where_there_were_none():
    assert patched(volumes=[{"name": "data"}])["volumes"] == [{"name": "data"}]


def test_tolerations_add_up():
    assert patched(tolerations=[{"key": "team"}])["tolerations"] == [{"key": "gpu"}, {"key": "team"}]


def test_null_removes():
    assert "nodeSelector" not in patched(nodeSelector=None)


def test_the_base_stays_as_it_was():
    patched(containers=[{"name": "ray-worker", "image": "theirs"}])
    assert BASE["spec"]["containers"][0]["image"] == "ours"
