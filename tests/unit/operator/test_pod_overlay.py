"""A user's pod template over ours."""

import pytest

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


def test_an_affinity_joins_ours():
    together = {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}
    large = {"key": "nvidia.com/gpu.memory", "operator": "Gt", "values": ["80000"]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [large]}]}
    theirs = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    assert overlay({"affinity": together}, {"affinity": theirs}) == {"affinity": together | theirs}


@pytest.mark.parametrize("side", ["podAffinity", "podAntiAffinity"])
@pytest.mark.parametrize("mode", ["required", "preferred"])
def test_terms_of_an_affinity_are_added_to_ours(side, mode):
    ours, theirs = ({side: {f"{mode}DuringSchedulingIgnoredDuringExecution": [{"of": who}]}} for who in ("us", "user"))
    both = [{"of": "us"}, {"of": "user"}]
    assert overlay(ours, theirs) == {side: {f"{mode}DuringSchedulingIgnoredDuringExecution": both}}


def test_a_pod_has_the_users_and_rights_of_the_template():
    user = {"runAsUser": 1000, "runAsGroup": 1000}
    rights = {"capabilities": {"add": ["SYS_PTRACE"]}, "seccompProfile": {"type": "Unconfined"}}
    spec = patched(securityContext=user, containers=[{"name": "ray-worker", "securityContext": rights}])
    assert (spec["securityContext"], spec["containers"][0]["securityContext"]) == (user, rights)


def test_volumes_come_in_where_there_were_none():
    assert patched(volumes=[{"name": "data"}])["volumes"] == [{"name": "data"}]


def test_tolerations_add_up():
    assert patched(tolerations=[{"key": "team"}])["tolerations"] == [{"key": "gpu"}, {"key": "team"}]


def test_null_removes():
    assert "nodeSelector" not in patched(nodeSelector=None)


def test_the_base_stays_as_it_was():
    patched(containers=[{"name": "ray-worker", "image": "theirs"}])
    assert BASE["spec"]["containers"][0]["image"] == "ours"
