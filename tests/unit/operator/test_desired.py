"""The full manifests: compared with golden YAML (`UPDATE_GOLDEN=1 pytest` writes it), and what must not be in them."""

import json
import os
from pathlib import Path

import pytest
import yaml

from tests.unit.operator import make
from tests.unit.operator.make import (
    ACCOUNT,
    KEY,
    NODE_GROUP,
    SETTINGS,
    built,
    child,
    decided,
    group,
    observed,
    pod,
    pool,
    wanted,
    workers,
)
from workergroups_api.conditions import Explanation
from workergroups_api.names import DEFAULT_IMAGE_ANNOTATION, HEAD_IMAGE_ANNOTATION, LIBRARY_IMAGE_ANNOTATION
from workergroups_api.vocabulary import Word, is_on
from workergroups_operator.try_pods import trials_of

GOLDEN = Path(__file__).parent / "golden"

OVERLAY = {
    "spec": {
        "containers": [{"name": "ray-worker", "resources": {"limits": {"memory": "64Gi"}}}],
        "volumes": [{"name": "data", "emptyDir": {}}],
    }
}
SITUATIONS = {
    "two-nodes-amd-with-overlay": {
        "pools": (
            pool(
                accelerator={"vendor": "amd", "product": "MI300X", "perProcess": 2},
                topology={"mode": "Spread"},
                nodeSelector={"zone": "a"},
                tolerations=[{"key": "team", "operator": "Exists"}],
                podTemplate=OVERLAY,
                ray={"resources": {"teacher": 2}, "labels": {"zone": "a"}},
                head={"spareCpus": 1},
            ),
        )
    },
    "two-pools-and-variables-from-a-secret": {
        "pools": (pool(nodes=1, processes=1), pool("critics", 1, 1, clusterName="actors")),
        "groups": (
            group("both", ["actors", "critics"], code={"configMap": {"name": "code"}}),
            group("lost", ["nowhere"]),
            group(envFrom=[{"secretRef": {"name": "keys"}}]),
        ),
        "environments": {"trainer": {"KEY": "value"}},
        "children": child("Secret", "actors", data={"auth_token": "dG9rZW4="}),
    },
}


def manifests(refused_pods=None, children=(), **parts):
    seen = observed(children=ACCOUNT | dict(children), **parts)
    return wanted(seen, refused_pods)


def of_kind(kind, **parts):
    return make.of_kind(kind, manifests(**parts))


class _Dumper(yaml.SafeDumper):
    """Writes the words of the API as JSON does."""


_Dumper.add_multi_representer(Word, lambda dumper, word: dumper.represent_str(word.value))


@pytest.mark.parametrize("name", SITUATIONS)
def test_the_manifests_are_the_golden_ones(name):
    text = yaml.dump_all(manifests(**SITUATIONS[name]), Dumper=_Dumper, sort_keys=False, width=110)
    path = GOLDEN / f"{name}.yaml"
    if is_on(os.environ.get("UPDATE_GOLDEN")):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert text == path.read_text()


def test_without_a_pool_nothing_is_desired():
    assert manifests(groups=(group(),)) == []


SETTINGS_OF_PODS = {
    "imagePullSecrets": [{"name": "registry"}],
    "env": [
        {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "wandb"}}},
        {"name": "RAY_health_check_period_ms", "value": "5000"},
    ],
    "envFrom": [{"prefix": "HF_", "secretRef": {"name": "hub"}}],
    "volumes": [{"mountPath": "/checkpoints", "readOnly": False, "persistentVolumeClaim": {"claimName": "ckpt"}}],
    "sharedMemory": "128Gi",
    "resources": {"requests": {"cpu": 28, "memory": "200Gi", "rdma/hca": 1}},
    "head": {
        "resources": {"requests": {"memory": "8Gi"}},
        "nodeSelector": {"role": "cpu"},
        "tolerations": [{"key": "team", "operator": "Exists"}],
        "podTemplate": {"spec": {"priorityClassName": "high"}},
    },
}


def ray_pods(**spec):
    """The head's pod and the worker's, with Ray's container of each."""
    cluster = of_kind("RayCluster", pools=(pool(nodes=1, processes=2, **spec),))["spec"]
    templates = (cluster["headGroupSpec"]["template"], cluster["workerGroupSpecs"][0]["template"])
    return [(template["spec"], template["spec"]["containers"][0]) for template in templates]


def test_environment_and_volumes_are_in_head_and_nodes_alike():
    for spec, container in ray_pods(**SETTINGS_OF_PODS):
        assert spec["imagePullSecrets"] == [{"name": "registry"}]
        assert {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "wandb"}}} in container["env"]
        assert container["envFrom"] == [{"prefix": "HF_", "secretRef": {"name": "hub", "optional": False}}]
        (claim,) = [volume for volume in spec["volumes"] if "persistentVolumeClaim" in volume]
        assert claim["persistentVolumeClaim"] == {"claimName": "ckpt"}
        assert {"name": claim["name"], "mountPath": "/checkpoints", "readOnly": False} in container["volumeMounts"]
        assert {"name": "shared-memory", "mountPath": "/dev/shm"} in container["volumeMounts"]
        assert {"name": "shared-memory", "emptyDir": {"medium": "Memory", "sizeLimit": "128Gi"}} in spec["volumes"]


def test_a_variable_that_the_pool_sets_is_there_once():
    _, container = ray_pods(**SETTINGS_OF_PODS)[0]
    periods = [variable for variable in container["env"] if variable["name"] == "RAY_health_check_period_ms"]
    assert periods == [{"name": "RAY_health_check_period_ms", "value": "5000"}]


def test_resources_are_requests_and_limits_but_for_cpus():
    (_, head), (_, node) = ray_pods(**SETTINGS_OF_PODS)
    gpus = {"nvidia.com/gpu": "2"}
    assert node["resources"]["requests"] == {"cpu": "28", "memory": "200Gi", "rdma/hca": "1"} | gpus
    assert node["resources"]["limits"] == {"memory": "200Gi", "rdma/hca": "1"} | gpus
    assert head["resources"]["requests"] == {"cpu": "200m", "memory": "8Gi"}
    assert head["resources"]["limits"] == {"cpu": "8", "memory": "8Gi"}


MEMORY = {"medium": "Memory"}


def shared_memory(spec):
    return [volume["emptyDir"] for volume in spec["volumes"] if volume["name"] == "shared-memory"]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, [MEMORY]),
        ({"sharedMemory": "8Gi"}, [MEMORY | {"sizeLimit": "8Gi"}]),
        ({"volumes": [{"mountPath": "/dev/shm", "emptyDir": MEMORY}]}, []),
        ({"volumes": [{"mountPath": "/dev/shm/", "emptyDir": MEMORY}], "sharedMemory": "8Gi"}, []),
    ],
)
def test_shared_memory_is_as_large_as_the_pod_may_be_unless_the_pool_says_otherwise(spec, expected):
    for pod_, container in ray_pods(**spec):
        assert shared_memory(pod_) == expected
        assert len([each for each in container["volumeMounts"] if each["mountPath"].startswith("/dev/shm")]) == 1


@pytest.mark.parametrize(
    ("pods", "in_head", "in_nodes"), [(None, 1, 1), ("All", 1, 1), ("Nodes", 0, 1), ("Head", 1, 0)]
)
def test_a_volume_is_in_the_pods_that_it_names(pods, in_head, in_nodes):
    volume = {"mountPath": "/data", "emptyDir": {}} | ({"pods": pods} if pods else {})
    for (spec, container), expected in zip(ray_pods(volumes=[volume]), (in_head, in_nodes), strict=True):
        mounted = [each for each in container["volumeMounts"] if each["mountPath"] == "/data"]
        named = {each["name"] for each in mounted}
        assert len(mounted) == expected
        assert [each.keys() for each in mounted] == [{"name", "mountPath"}] * expected
        assert [each for each in spec["volumes"] if each["name"] in named] == [
            {"name": name, "emptyDir": {}} for name in named
        ]


def test_claims_of_the_template_are_claims_of_the_container():
    claims = [{"name": "gpus", "request": "all"}]
    template = {"spec": {"resourceClaims": [{"name": "gpus", "resourceClaimTemplateName": "gpus"}]}}
    settings = {"resources": {"claims": claims}, "podTemplate": template}
    for spec, container in ray_pods(**settings, head=settings):
        assert container["resources"]["claims"] == claims
        assert spec["resourceClaims"] == template["spec"]["resourceClaims"]


def other(variable, **more):
    return {"vendor": "other", "resourceName": "example.com/npu", "visibleDevicesEnv": variable} | more


@pytest.mark.parametrize(
    ("accelerator", "counted"),
    [
        ({"vendor": "none"}, {"num-gpus": "0"}),
        ({"vendor": "amd", "perProcess": 2}, {"num-gpus": "4"}),
        (other("HABANA_VISIBLE_MODULES"), {"num-gpus": "2"}),
        (other("ASCEND_RT_VISIBLE_DEVICES", perProcess=2), {"num-gpus": "0", "resources": """'{"NPU": 4}'"""}),
    ],
)
def test_ray_counts_the_devices_under_the_name_that_programs_use(accelerator, counted):
    shape = pool(nodes=1, processes=2, accelerator=accelerator)
    (group_,) = of_kind("RayCluster", pools=(shape,))["spec"]["workerGroupSpecs"]
    assert {name: value for name, value in group_["rayStartParams"].items() if name != "num-cpus"} == counted
    plan = json.loads(of_kind("ConfigMap", pools=(shape,))["data"]["plan.json"])
    per_process = accelerator.get("perProcess", 1)
    name = "NPU" if "resources" in counted else "GPU"
    devices = {} if accelerator["vendor"] == "none" else {name: per_process}
    assert plan["pools"][0]["bundle"] == {"CPU": 10} | devices


def test_pods_on_cpus_have_nothing_for_devices():
    for spec, container in ray_pods(accelerator={"vendor": "none"}):
        assert spec.get("tolerations", []) == []
        assert "nvidia.com/gpu" not in json.dumps([spec, container])
    assert "nvidia.com/gpu" in json.dumps(ray_pods())


def test_nodes_of_another_vendor_know_its_variable():
    (_, head), (spec, node) = ray_pods(accelerator=other("HABANA_VISIBLE_MODULES"))
    values = {each["name"]: each.get("value") for each in node["env"]}
    assert values["WORKERGROUPS_ACCELERATOR_VENDOR"] == "other"
    assert values["WORKERGROUPS_VISIBLE_DEVICES_ENV"] == "HABANA_VISIBLE_MODULES"
    assert values["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] == "0"
    assert node["resources"]["limits"] == {"example.com/npu": "2"}
    assert {"key": "example.com/npu", "operator": "Exists", "effect": "NoSchedule"} in spec["tolerations"]
    assert "WORKERGROUPS_VISIBLE_DEVICES_ENV" not in {each["name"] for each in head["env"]}


def test_the_head_has_a_place_and_a_template_of_its_own():
    (head, _), (node, _) = ray_pods(**SETTINGS_OF_PODS)
    assert (head["nodeSelector"], head["priorityClassName"]) == ({"role": "cpu"}, "high")
    assert head["tolerations"] == [{"key": "team", "operator": "Exists"}]
    assert "role" not in node["nodeSelector"]
    assert "priorityClassName" not in node


def deployed(**spec):
    """The agent's pod."""
    return of_kind("Deployment", pools=(pool(**spec),))["spec"]["template"]["spec"]


PLACED = {
    "nodeSelector": {"zone": "a"},
    "tolerations": [{"key": "team", "operator": "Exists"}],
    "priorityClassName": "high",
    "imagePullSecrets": [{"name": "registry"}],
}
FOR_GPUS = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}


def placed(spec):
    return {field: spec.get(field) for field in PLACED}


def test_head_and_agent_run_where_the_nodes_may_run():
    (head, _), (node, _) = ray_pods(**PLACED, accelerator={"product": "A100"})
    wanted = PLACED | {"tolerations": [*PLACED["tolerations"], FOR_GPUS]}
    assert placed(head) == placed(deployed(**PLACED, accelerator={"product": "A100"})) == wanted
    assert placed(node) == wanted | {"nodeSelector": {"zone": "a", "nvidia.com/gpu.product": "A100"}}


@pytest.mark.parametrize("component", ["head", "agent"])
@pytest.mark.parametrize(
    ("field", "own", "expected"),
    [
        ("nodeSelector", {"role": "cpu"}, {"role": "cpu"}),
        ("nodeSelector", {}, None),
        ("tolerations", [], None),
        ("tolerations", [{"operator": "Exists"}], [{"operator": "Exists"}]),
        ("priorityClassName", "low", "low"),
        ("priorityClassName", "", None),
        ("imagePullSecrets", [{"name": "own"}], [{"name": "own"}]),
        ("imagePullSecrets", [], None),
    ],
)
def test_head_and_agent_have_each_field_of_their_own_if_the_pool_gives_one(component, field, own, expected):
    spec = PLACED | {component: {field: own}}
    (head, _), (node, _) = ray_pods(**spec)
    pods = {"head": head, "agent": deployed(**spec)}
    assert pods.pop(component).get(field) == expected
    (other,) = pods.values()
    assert other[field] == node[field]


def test_head_and_agent_leave_nodes_with_devices_to_the_pools_if_there_are_others():
    (head, _), _ = ray_pods()
    (preferred,) = head["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert preferred["preference"]["matchExpressions"] == [
        {"key": "nvidia.com/gpu.product", "operator": "DoesNotExist"}
    ]
    assert deployed()["affinity"] == head["affinity"]
    assert "affinity" not in deployed(accelerator={"vendor": "none"})


def test_each_container_of_ours_has_requests_and_limits():
    """A quota may want them of every container in the namespace."""
    (head, _), (node, _) = ray_pods()
    agent = deployed()
    ours = [*head["initContainers"], *head["containers"], *node["initContainers"]]
    ours += [*agent["initContainers"], *agent["containers"]]
    for container in ours:
        for part in ("requests", "limits"):
            assert {"cpu", "memory"} <= container["resources"][part].keys(), container["name"]


def test_what_the_pool_asks_for_the_agent_is_request_and_limit_of_each_container():
    for container in deployed(agent={"resources": {"requests": {"memory": "2Gi"}}})["containers"]:
        resources = container["resources"]
        assert (resources["requests"]["memory"], resources["limits"]) == ("2Gi", {"cpu": "1", "memory": "2Gi"})


def head_cpus(**head):
    spec = of_kind("RayCluster", pools=(pool(head=head),))["spec"]["headGroupSpec"]
    resources = spec["template"]["spec"]["containers"][0]["resources"]
    return spec["rayStartParams"].get("num-cpus"), resources["limits"].get("cpu")


def in_template(**resources):
    return {"podTemplate": {"spec": {"containers": [{"name": "ray-head", "resources": resources}]}}}


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ({}, ("0", "8")),
        ({"resources": {"requests": {"cpu": 4}}}, ("0", "8")),
        ({"resources": {"requests": {"cpu": "12"}}}, ("0", "13")),
        ({"resources": {"limits": {"cpu": 4}}}, ("0", "4")),
        ({"resources": {"requests": {"cpu": 2}, "limits": {"cpu": 4}}, "spareCpus": 3}, ("3", "4")),
        (in_template(limits={"cpu": "3"}), ("0", "3")),
        (in_template(requests={"cpu": "30"}), ("0", None)),
    ],
)
def test_the_head_runs_tasks_only_if_it_is_asked_to(head, expected):
    assert head_cpus(**head) == expected


NAMED = {"resources": {"teacher": 2}, "labels": {"zone": "a"}}


def node_group(**inputs):
    (group_,) = of_kind("RayCluster", **inputs)["spec"]["workerGroupSpecs"]
    return group_


def test_nodes_have_the_resources_and_labels_that_the_pool_names():
    npu = other("ASCEND_RT_VISIBLE_DEVICES")
    for accelerator, resources in (({}, {"teacher": 2}), (npu, {"teacher": 2, "NPU": 2})):
        found = node_group(pools=(pool(ray=NAMED, accelerator=accelerator),))
        assert json.loads(found["rayStartParams"]["resources"].strip("'")) == resources
        assert found["labels"] == {"zone": "a"}
    plain = node_group(pools=(pool(),))
    assert "labels" not in plain
    assert "resources" not in plain["rayStartParams"]


@pytest.mark.parametrize("text", ["{", "[]", '{"resources": 3}', '{"spareCpus": "many"}'])
def test_an_annotation_of_the_users_in_place_of_ours_counts_for_nothing(text):
    template = {"metadata": {"annotations": {"workergroups.dev/ray-start": text}}}
    spec = of_kind("RayCluster", pools=(pool(podTemplate=template, head={"podTemplate": template}),))["spec"]
    assert spec["headGroupSpec"]["rayStartParams"]["num-cpus"] == "0"
    assert "resources" not in spec["workerGroupSpecs"][0]["rayStartParams"]


@pytest.mark.parametrize(
    ("spec", "policy"),
    [
        ({"hostNetwork": True}, "ClusterFirstWithHostNet"),
        ({"hostNetwork": True, "dnsPolicy": "Default"}, "Default"),
        ({"hostNetwork": False}, None),
        ({"hostNetwork": "odd"}, None),
        ({}, None),
    ],
)
def test_pods_in_the_network_of_their_node_find_the_services_of_the_cluster(spec, policy):
    for pod_, _ in ray_pods(podTemplate={"spec": spec}, head={"podTemplate": {"spec": spec}}):
        assert pod_.get("dnsPolicy") == policy


@pytest.mark.parametrize(
    ("cpu", "set_", "spare"),
    [
        (None, None, 24),
        ("28", None, 28),
        (28, None, 28),
        ("1.5", None, 24),
        ("500m", None, 24),
        ("28000m", None, 28),
        ("2k", None, 2000),
        (None, 0, 0),
        ("28", 3, 3),
    ],
)
def test_nodes_have_cpus_for_plain_tasks_next_to_those_of_the_ranks(cpu, set_, spare):
    asked = {} if cpu is None else {"resources": {"requests": {"cpu": cpu}}}
    asked |= {} if set_ is None else {"spareCpus": set_}
    (group_,) = of_kind("RayCluster", pools=(pool(nodes=1, processes=2, **asked),))["spec"]["workerGroupSpecs"]
    assert group_["rayStartParams"]["num-cpus"] == str(2 * 10 + spare)


def test_pull_secrets_of_pool_and_template_serve_the_agent():
    template = {"spec": {"imagePullSecrets": [{"name": "other"}]}}
    named = pool(imagePullSecrets=[{"name": "registry"}], podTemplate=template)
    spec = of_kind("Deployment", pools=(named,))["spec"]["template"]["spec"]
    assert spec["imagePullSecrets"] == [{"name": "registry"}, {"name": "other"}]
    bare = pool(imagePullSecrets=[{"name": "registry"}], podTemplate={"spec": {"priorityClassName": "x"}})
    spec = of_kind("Deployment", pools=(bare,))["spec"]["template"]["spec"]
    assert spec["imagePullSecrets"] == [{"name": "registry"}]


def test_an_agent_of_another_service_account_restarts():
    def template(account):
        return of_kind("Deployment", pools=(pool(),), children=account)["spec"]["template"]

    anew = child("ServiceAccount", "actors-agent", metadata={"uid": "another"})
    assert template(ACCOUNT) != template(anew)


def test_there_is_no_agent_before_its_service_account():
    seen = observed(pools=(pool(),))
    kinds = [manifest["kind"] for manifest in wanted(seen)]
    assert ("ServiceAccount" in kinds, "Deployment" in kinds) == (True, False)


def test_a_token_that_exists_is_kept():
    existing = child("Secret", "actors", data={"auth_token": "b2xk"})
    assert of_kind("Secret", pools=(pool(),), children=existing)["data"] == {"auth_token": "b2xk"}


def test_a_role_never_names_no_resource_since_that_would_mean_all():
    for inputs in SITUATIONS.values():
        assert all(rule["resourceNames"] for rule in of_kind("Role", **inputs)["rules"])


def test_the_agent_may_read_the_groups_that_have_bundles_and_no_others():
    code = {"configMap": {"name": "secret-code"}}
    groups = (group("placed"), group("lost", pools=("gone",), code=code))
    assert "placed" in str(role := of_kind("Role", pools=(pool(),), groups=groups)["rules"])
    assert "lost" not in str(role)
    assert "secret-code" not in str(role)


def test_only_the_reporter_has_a_kubernetes_token():
    parts = SITUATIONS["two-pools-and-variables-from-a-secret"]
    cluster = of_kind("RayCluster", **parts)["spec"]
    templates = [cluster["headGroupSpec"]["template"], cluster["workerGroupSpecs"][0]["template"]]
    agent = of_kind("Deployment", **parts)["spec"]["template"]
    assert all(template["spec"]["automountServiceAccountToken"] is False for template in [*templates, agent])
    mounts = {
        container["name"]: [mount["name"] for mount in container["volumeMounts"]]
        for container in agent["spec"]["containers"]
    }
    assert [name for name, volumes in mounts.items() if "token" in volumes] == ["reporter"]


def test_no_note_on_a_ray_cluster_chooses_the_image_of_a_container_with_a_token():
    """A tenant may edit the RayCluster, and so what it notes of images."""
    noted = (HEAD_IMAGE_ANNOTATION, DEFAULT_IMAGE_ANNOTATION, LIBRARY_IMAGE_ANNOTATION)
    live = ray_cluster(metadata={"annotations": dict.fromkeys(noted, "evil")})
    agent = of_kind("Deployment", pools=(pool(),), children=live)["spec"]["template"]["spec"]
    containers = [*agent["containers"], *agent["initContainers"]]
    with_token = [each for each in containers if "token" in [mount["name"] for mount in each.get("volumeMounts", ())]]
    assert [each["image"] for each in with_token] == [SETTINGS.operator_image]
    assert "evil" in {each["image"] for each in containers}


def test_a_note_of_an_image_that_is_none_is_not_repeated_in_each_pod():
    live = ray_cluster(metadata={"annotations": {LIBRARY_IMAGE_ANNOTATION: "x" * 200_000}})
    assert "x" * 1000 not in json.dumps(manifests(pools=(pool(),), children=live))


@pytest.mark.parametrize("name", SITUATIONS)
def test_every_object_is_written_in_the_clusters_namespace(name):
    written = manifests(**SITUATIONS[name])
    assert {manifest["metadata"]["namespace"] for manifest in written} == {KEY.namespace}
    subjects = [subject for manifest in written for subject in manifest.get("subjects", ())]
    assert {subject["namespace"] for subject in subjects} == {KEY.namespace}


def ray_cluster(*groups, metadata=None, **spec):
    head = {"template": {"spec": {"containers": [{"name": "ray-head", "image": "old"}]}}}
    whole = {"rayVersion": "2.60.0", "headGroupSpec": head, "workerGroupSpecs": list(groups)} | spec
    return child("RayCluster", "actors", spec=whole, metadata=metadata or {})


def worker_group(name, replicas):
    return {"groupName": name, "replicas": replicas, "minReplicas": replicas, "maxReplicas": 1, "template": {}}


def replicas_with(live, *pods, **more):
    cluster = of_kind("RayCluster", pools=(pool(),), children=ray_cluster(live), pods=pods, **more)
    return {group["groupName"]: group["replicas"] for group in cluster["spec"]["workerGroupSpecs"]}


def test_a_pool_that_left_is_scaled_to_nothing_before_its_group_goes():
    worker = pod("worker")
    worker["metadata"]["labels"]["ray.io/group"] = "gone"
    assert replicas_with(worker_group("gone", 1), worker) == {NODE_GROUP: 2, "gone": 0}
    assert replicas_with(worker_group("gone", 0), worker) == {NODE_GROUP: 2, "gone": 0}
    assert replicas_with(worker_group("gone", 0)) == {NODE_GROUP: 2}


def of_group(name, belongs_to="actors"):
    worker = pod("worker", f"{name}-worker-x")
    worker["metadata"]["labels"] |= {"ray.io/group": name, "workergroups.dev/pool": belongs_to}
    return worker


@pytest.mark.parametrize(
    ("pools", "pods", "expected"),
    [
        # The pool was deleted, or is suspended, and KubeRay created the pod after its group had left the spec.
        ((pool(),), (of_group("critics-uid-crit", "critics"),), {NODE_GROUP: 2, "critics-uid-crit": 0}),
        ((pool(), pool("critics", suspend=True)), (of_group("critics-uid-crit", "critics"),), {"critics-uid-crit": 0}),
        # Somebody has relabelled the pod, or it is being deleted.
        ((pool(),), (of_group("quarantine"),), {NODE_GROUP: 2}),
        ((pool(),), (of_group("critics-uid-crit", "critics") | {"deleted": True},), {NODE_GROUP: 2}),
    ],
)
def test_pods_that_kuberay_has_forgotten_are_deleted_by_a_group_without_replicas(pools, pods, expected):
    for each in pods:
        if each.pop("deleted", False):
            each["metadata"]["deletionTimestamp"] = "now"
    cluster = of_kind("RayCluster", pools=pools, children=ray_cluster(), pods=(pod("head"), *pods))
    groups = {group["groupName"]: group for group in cluster["spec"]["workerGroupSpecs"]}
    assert expected.items() <= {name: group["replicas"] for name, group in groups.items()}.items()
    assert groups.keys() == {NODE_GROUP, *expected}
    assert all(group["maxReplicas"] == 1 for name, group in groups.items() if name != NODE_GROUP)


def test_pods_of_a_refused_pool_stay_though_the_raycluster_has_no_group_for_them():
    refused = {NODE_GROUP: Explanation("PodsRefused", "quota")}
    cluster = of_kind("RayCluster", pools=(pool(),), children=ray_cluster(), pods=workers("p-0"), refused_pods=refused)
    assert cluster["spec"]["workerGroupSpecs"] == []


def test_a_pool_whose_pods_are_refused_keeps_what_it_has_and_never_holds_the_others_up():
    refused = {NODE_GROUP: Explanation("PodsRefused", "quota")}
    live = worker_group(NODE_GROUP, 2)
    assert replicas_with(live, *workers("p-0"), refused_pods=refused) == {NODE_GROUP: 1}
    assert of_kind("RayCluster", pools=(pool(),), pods=(), refused_pods=refused)["spec"]["workerGroupSpecs"] == []


@pytest.mark.parametrize("reason", ["AdmissionPending", "ApplyFailed"])
def test_pods_of_which_nobody_knows_yet_whether_they_are_accepted_again_are_not_deleted(reason):
    unknown = {NODE_GROUP: Explanation(reason, "no answer yet")}
    assert replicas_with(worker_group(NODE_GROUP, 2), refused_pods=unknown) == {NODE_GROUP: 2}
    assert replicas_with(worker_group(NODE_GROUP, 1), *workers("p-0"), refused_pods=unknown) == {NODE_GROUP: 1}
    assert of_kind("RayCluster", pools=(pool(),), pods=(), refused_pods=unknown)["spec"]["workerGroupSpecs"] == []


def test_only_pods_that_are_missing_or_new_are_tried():
    def tried(**parts):
        seen = observed(pools=(pool(),), **parts)
        trials = trials_of(seen, built(seen))
        return {name for name, trial in trials.items()}, {name for name, trial in trials.items() if trial.ray_cluster}

    assert tried(pods=()) == ({"head", NODE_GROUP}, {NODE_GROUP})
    made = of_kind("RayCluster", pools=(pool(),), pods=())["spec"]["workerGroupSpecs"][0]
    running = (pod("head"), *workers("p-0", "p-1"))
    assert tried(children=ray_cluster(made), pods=running) == (set(), set())
    assert tried(children=ray_cluster(made), pods=running[:2]) == ({NODE_GROUP}, set())
    assert tried(children=ray_cluster(worker_group(NODE_GROUP, 2)), pods=running) == ({NODE_GROUP}, {NODE_GROUP})


def test_pods_that_the_ray_cluster_has_no_room_for_are_not_tried():
    large = pool("large", 1, 1, podTemplate={"metadata": {"annotations": {"a": 70_000 * "x"}}}, clusterName="actors")
    seen = observed(pools=(pool(), large), pods=())
    assert trials_of(seen, built(seen)).keys() == {"head", NODE_GROUP}
    assert "large-uid-larg" in decided(seen).refused_pods


def test_a_running_cluster_keeps_its_images_when_the_operators_defaults_change():
    noted = {"default-image": "then", "head-image": "old", "library-image": "operator then"}
    annotations = {f"workergroups.dev/{key}": value for key, value in noted.items()}
    live = ray_cluster(metadata={"annotations": annotations}, rayVersion="edited by hand")
    spec = of_kind("RayCluster", pools=(pool(),), children=live)["spec"]
    assert spec["rayVersion"] == "2.52.0"
    assert spec["headGroupSpec"]["template"]["spec"]["initContainers"][0]["image"] == "operator then"
    agent = of_kind("Deployment", pools=(pool(),), children=live)["spec"]["template"]["spec"]
    images = {each["name"]: each["image"] for each in (*agent["initContainers"], *agent["containers"])}
    assert images["reporter"] == SETTINGS.operator_image, "nobody but the operator chooses what has a Kubernetes token"
    assert "operator then" not in images.values()
    assert spec["headGroupSpec"]["template"]["spec"]["containers"][0]["image"] == "old"
    assert spec["workerGroupSpecs"][0]["template"]["spec"]["containers"][0]["image"] == "then"


def test_the_labels_by_which_pods_are_found_cannot_be_overwritten():
    user = {"metadata": {"labels": {"workergroups.dev/pool": "another", "team": "red"}}}
    cluster = of_kind("RayCluster", pools=(pool(podTemplate=user),))
    labels = cluster["spec"]["workerGroupSpecs"][0]["template"]["metadata"]["labels"]
    assert (labels["workergroups.dev/pool"], labels["team"]) == ("actors", "red")


def test_a_template_that_would_leave_the_others_no_room_is_refused():
    large = {"metadata": {"annotations": {"note": "x" * 70_000}}}
    critics = pool("critics", clusterName="actors")
    cluster = of_kind("RayCluster", pools=(pool(podTemplate=large), critics), pods=())
    assert [group["groupName"] for group in cluster["spec"]["workerGroupSpecs"]] == ["critics-uid-crit"]


def test_pods_of_an_older_template_in_which_nothing_runs_make_room():
    pending = pod("worker", "p-0", phase="Pending")
    running = pod("worker", "p-1", containerStatuses=[{"name": "ray-worker", "state": {"running": {}}}])
    (live,) = of_kind("RayCluster", pools=(pool(),), pods=(pending, running))["spec"]["workerGroupSpecs"]
    assert live["scaleStrategy"] == {"workersToDelete": ["p-0"]}
    # As after a webhook that takes annotations away: a pod in its place would be no newer.
    pending["metadata"]["annotations"] = {}
    (live,) = of_kind("RayCluster", pools=(pool(),), pods=(pending, running))["spec"]["workerGroupSpecs"]
    assert "scaleStrategy" not in live
    (live,) = of_kind("RayCluster", pools=(pool(),), pods=(running,))["spec"]["workerGroupSpecs"]
    assert "scaleStrategy" not in live
