"""The full manifests: compared with golden YAML (`UPDATE_GOLDEN=1 pytest` writes it), and what must not be in them."""

import os
from pathlib import Path

import pytest
import yaml
from make import group, observed, pod, pool

from workergroups_operator.desired import desired
from workergroups_operator.observe import child_names
from workergroups_operator.policy.seating import seat
from workergroups_operator.policy.sharing import share
from workergroups_operator.settings import Settings

GOLDEN = Path(__file__).parent / "golden"
SETTINGS = Settings(worker_image="example.test/worker:1", ray_version="2.60.0")

OVERLAY = {
    "spec": {
        "containers": [{"name": "ray-worker", "resources": {"limits": {"memory": "64Gi"}}}],
        "volumes": [{"name": "data", "emptyDir": {}}],
    }
}
SITUATIONS = {
    "one-pool": {"pools": (pool(processes=(4,)),), "groups": (group(),)},
    "uneven-amd-with-overlay": {
        "pools": (
            pool(
                processes=(4, 2, 4),
                accelerator={"vendor": "amd", "product": "MI300X", "countPerProcess": 2},
                placementStrategy="STRICT_SPREAD",
                nodeSelector={"zone": "a"},
                tolerations=[{"key": "team", "operator": "Exists"}],
                podTemplate=OVERLAY,
            ),
        )
    },
    "cpu-only": {"pools": (pool(processes=(2,), accelerator={"vendor": "none"}),)},
    "two-pools-one-cluster": {
        "pools": (pool(processes=(1,)), pool("critics", (1,), cluster="actors")),
        "groups": (
            group("both", ["actors", "critics"], code={"configMap": {"name": "code"}}),
            group("lost", ["nowhere"]),
        ),
    },
}


def manifests(**parts):
    seen = observed(**parts)
    sharing = share(seen.pools, SETTINGS.ray_version)
    seating = seat(seen.groups, sharing.accepted, seen.pools_elsewhere)
    return desired(seen, sharing, seating, SETTINGS, fresh_token="fresh")


def of_kind(kind, **parts):
    (found,) = [manifest for manifest in manifests(**parts) if manifest["kind"] == kind]
    return found


@pytest.mark.parametrize("name", SITUATIONS)
def test_the_manifests_are_the_golden_ones(name):
    text = yaml.safe_dump_all(manifests(**SITUATIONS[name]), sort_keys=False, width=110)
    path = GOLDEN / f"{name}.yaml"
    if os.environ.get("UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert text == path.read_text()


def test_without_a_pool_nothing_is_desired():
    assert manifests(groups=(group(),)) == []


def test_everything_that_is_made_is_also_observed():
    made = {(manifest["kind"], manifest["metadata"]["name"]) for manifest in manifests(**SITUATIONS["one-pool"])}
    assert made == {(kind.kind, name) for kind, name in child_names("actors").items()}


def test_a_token_that_exists_is_kept():
    existing = {("Secret", "actors-token"): {"data": {"auth_token": "b2xk"}}}
    assert of_kind("Secret", pools=(pool(),), children=existing)["data"] == {"auth_token": "b2xk"}


def test_a_role_never_names_no_resource_since_that_would_mean_all():
    for situation in SITUATIONS.values():
        assert all(rule["resourceNames"] for rule in of_kind("Role", **situation)["rules"])


def test_only_the_reporter_has_a_kubernetes_token():
    parts = SITUATIONS["one-pool"]
    cluster = of_kind("RayCluster", **parts)["spec"]
    templates = [cluster["headGroupSpec"]["template"], cluster["workerGroupSpecs"][0]["template"]]
    agent = of_kind("Deployment", **parts)["spec"]["template"]
    assert all(template["spec"]["automountServiceAccountToken"] is False for template in [*templates, agent])
    mounts = {
        container["name"]: [mount["name"] for mount in container["volumeMounts"]]
        for container in agent["spec"]["containers"]
    }
    assert [name for name, volumes in mounts.items() if "token" in volumes] == ["reporter"]


def with_live_group(replicas, *pods):
    live = {"groupName": "gone-x4", "replicas": replicas, "minReplicas": replicas, "maxReplicas": 1, "template": {}}
    children = {("RayCluster", "actors"): {"spec": {"workerGroupSpecs": [live]}}}
    cluster = of_kind("RayCluster", pools=(pool(),), children=children, pods=pods)
    return {group["groupName"]: group["replicas"] for group in cluster["spec"]["workerGroupSpecs"]}


def test_a_pool_that_left_is_scaled_to_nothing_before_its_group_goes():
    worker = pod("worker")
    worker["metadata"]["labels"]["ray.io/group"] = "gone-x4"
    assert with_live_group(1, worker) == {"actors-x2": 2, "gone-x4": 0}
    assert with_live_group(0, worker) == {"actors-x2": 2, "gone-x4": 0}
    assert with_live_group(0) == {"actors-x2": 2}
