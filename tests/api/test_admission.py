"""What the API server refuses, each time naming the field and the way out; and what it takes."""

import asyncio
import copy
import itertools
import json
import time
from contextlib import AsyncExitStack, contextmanager

import pytest

from tests.api.test_namespaces import Kubectl
from tests.simulation import scene as objects
from tests.simulation.api import Api, ApiError, path_of
from tests.unit.chart.helm import CHART, Helm, installed_helm
from workergroups_api.manifest import WORKER_GROUP, kind_of

NAMESPACE = "admission"
NUMBERS = itertools.count(1)


class Cluster:
    """What kubectl asks of the API server: unknown fields are errors."""

    def __init__(self, runner, api):
        self._runner = runner
        self._api = api

    def create(self, manifest):
        path = path_of(kind_of(manifest), NAMESPACE)
        return self._runner.run(self._api.request("POST", path, manifest, fieldValidation="Strict"))

    def grant(self, resource, verbs, user, names=()):
        """Grant rights on a kind in the namespace, or on some objects of it, and wait until they are in force."""
        api_group, _, plural = resource.rpartition("/")
        rbac, name = "rbac.authorization.k8s.io", f"{user}-{plural}"
        rules = [{"apiGroups": [api_group], "resources": [plural], "verbs": verbs, "resourceNames": list(names)}]
        reference = {"apiGroup": rbac, "kind": "Role", "name": name}
        subjects = [{"apiGroup": rbac, "kind": "User", "name": user}]
        self._post(f"{rbac}/v1/namespaces/{NAMESPACE}/roles", {"metadata": {"name": name}, "rules": rules})
        binding = {"metadata": {"name": name}, "roleRef": reference, "subjects": subjects}
        self._post(f"{rbac}/v1/namespaces/{NAMESPACE}/rolebindings", binding)
        asked = {"namespace": NAMESPACE, "verb": verbs[0], "group": api_group, "resource": plural}
        asked |= {"name": names[0]} if names else {}
        self._runner.run(self._api.until_allowed(user, **asked))

    def _post(self, path, body):
        return self._runner.run(self._api.request("POST", f"/apis/{path}", body))

    @contextmanager
    def connected(self, access, user):
        """The same with the rights of a user."""
        stack = AsyncExitStack()
        api = self._runner.run(stack.enter_async_context(Api.connect(access, user)))
        yield Cluster(self._runner, api)
        self._runner.run(stack.aclose())

    def change(self, manifest):
        """Make the existing object like the manifest."""
        kind, name = kind_of(manifest), manifest["metadata"]["name"]
        present = self._runner.run(self._api.get(kind, NAMESPACE, name))
        path = path_of(kind, NAMESPACE, name)
        body = present | {"spec": manifest["spec"]}
        return self._runner.run(self._api.request("PUT", path, body, fieldValidation="Strict"))


@pytest.fixture(scope="module")
def cluster(access):
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        api = runner.run(stack.enter_async_context(Api.connect(access)))
        runner.run(api.create_namespace(NAMESPACE))
        yield Cluster(runner, api)
        runner.run(api.delete_namespace(NAMESPACE))
        runner.run(stack.aclose())


def pool(name="actors", **spec):
    """A pool on GPUs."""
    accelerator = {"vendor": "nvidia", "product": "NVIDIA-A100-SXM4-80GB"}
    return objects.pool(NAMESPACE, name, **{"nodes": 1, "accelerator": accelerator} | spec)


def group(name="trainer", pools=(), **spec):
    """Return a group on these pools, by default on the pool of its own name."""
    refs = [ref if isinstance(ref, dict) else {"name": ref} for ref in pools]
    code = {"configMap": {"name": "accumulator"}}
    return objects.group(NAMESPACE, name, **({"pools": refs} if refs else {}) | {"code": code} | spec)


def changed(manifest, path, value):
    """The manifest with the value at the path; ... removes the existing value."""
    manifest = copy.deepcopy(manifest)
    *parents, last = path.split(".")
    place = manifest
    for key in parents:
        place = place.setdefault(key, {})
    if value is ...:
        place.pop(last, None)
    else:
        place[last] = value
    return manifest


GAUDI = {"vendor": "other", "resourceName": "habana.ai/gaudi", "visibleDevicesEnv": "HABANA_VISIBLE_MODULES"}
BAD_POOLS = {
    "spec.processesPerNode: Required value": ("spec.processesPerNode", ...),
    "spec.processesPerNode in body must be of type integer": ("spec.processesPerNode", [4]),
    "spec.processesPerNode in body should be greater than or equal to 1": ("spec.processesPerNode", 0),
    "spec.processesPerNode in body should be less than or equal to 64": ("spec.processesPerNode", 65),
    "spec.nodes in body should be greater than or equal to 1": ("spec.nodes", 0),
    "spec.nodes in body should be less than or equal to 512": ("spec.nodes", 513),
    'spec.accelerator.vendor: Unsupported value: "intel": supported values: "nvidia", "amd", "other", "none"': (
        "spec.accelerator",
        {"vendor": "intel"},
    ),
    "spec.accelerator.product needs an accelerator: set spec.accelerator.vendor": (
        "spec.accelerator",
        {"vendor": "none", "product": "A100"},
    ),
    "spec.accelerator.resourceName needs an accelerator": (
        "spec.accelerator",
        {"vendor": "none", "resourceName": "nvidia.com/gpu"},
    ),
    "spec.accelerator.perProcess needs an accelerator": ("spec.accelerator", {"vendor": "none", "perProcess": 2}),
    "spec.accelerator.product must be a label value: copy it from": (
        "spec.accelerator",
        {"product": "NVIDIA A100"},
    ),
    "spec.accelerator.resourceName must be a qualified name such as nvidia.com/gpu: add the domain": (
        "spec.accelerator",
        {"resourceName": "gpu"},
    ),
    "spec.accelerator.perProcess in body should be greater than or equal to 1": (
        "spec.accelerator",
        {"perProcess": 0},
    ),
    "spec.image must be an image reference without spaces": ("spec.image", "my image"),
    'spec.topology.mode: Unsupported value: "Packed": supported values: "Required", "Preferred", "Spread"': (
        "spec.topology",
        {"mode": "Packed"},
    ),
    "spec.topology.key must be the key of a node label: copy it from": ("spec.topology", {"key": "row 7"}),
    "spec.progressDeadlineSeconds in body should be greater than or equal to 5": ("spec.progressDeadlineSeconds", 0),
    "spec.maxColocateCount in body should be greater than or equal to 1": ("spec.maxColocateCount", 0),
    "spec.clusterName must be lower-case letters": ("spec.clusterName", "Shared_Cluster"),
    "spec.tolerations: operator Exists takes no value": (
        "spec.tolerations",
        [{"key": "gpu", "operator": "Exists", "value": "yes"}],
    ),
    "spec.tolerations: operator Equal needs a key": ("spec.tolerations", [{"value": "yes"}]),
    "spec.tolerations: tolerationSeconds works with effect NoExecute only": (
        "spec.tolerations",
        [{"key": "gpu", "operator": "Exists", "tolerationSeconds": 5}],
    ),
    "spec.nodeSelector must not repeat the product label": (
        "spec.nodeSelector",
        {"nvidia.com/gpu.product": "H100"},
    ),
    "spec.priorityClassName, also of spec.head and spec.agent, must name": (
        "spec.agent",
        {"priorityClassName": "No Class"},
    ),
    "spec.nodeSelector must hold label keys and values": ("spec.nodeSelector", {"rack": "row 7"}),
    "spec.ray.resources cannot set what Ray counts itself: for CPUs, set spec.spareCpus": (
        "spec.ray",
        {"resources": {"CPU": 2}},
    ),
    "for devices, set spec.accelerator; for memory": ("spec.ray", {"resources": {"teacher": 1, "Gpu": 2}}),
    "for memory, set spec.resources; or rename the resource": ("spec.ray", {"resources": {"object_store_memory": 2}}),
    "spec.ray.resources must have names of at most 63 letters": ("spec.ray", {"resources": {"node:10.0.0.1": 1}}),
    "spec.ray.resources.teacher in body must be of type integer": ("spec.ray", {"resources": {"teacher": 0.5}}),
    "spec.ray.resources.teacher in body should be greater than or equal to 1": (
        "spec.ray",
        {"resources": {"teacher": 0}},
    ),
    "spec.ray.labels must hold keys and values of Kubernetes labels": ("spec.ray", {"labels": {"zone": "row 7"}}),
    "spec.ray.labels cannot set labels of Kubernetes, Ray or WorkerGroups": (
        "spec.ray",
        {"labels": {"ray.io/node-group": "other"}},
    ),
    "use a prefix of your own": ("spec.ray", {"labels": {"kueue.x-k8s.io/queue-name": "other"}}),
    "spec.setup.script contains a NUL character, which no process can be given: remove it": (
        "spec.setup",
        {"script": "echo a\0b"},
    ),
    "spec.head.spareCpus in body should be greater than or equal to 0": ("spec.head", {"spareCpus": -1}),
    "spec.env[].name must be letters, digits and '_'": ("spec.env", [{"name": "1ST", "value": ""}]),
    "spec.env[].name is set by WorkerGroups, KubeRay or Ray: remove it": (
        "spec.env",
        [{"name": "CUDA_VISIBLE_DEVICES", "value": "0"}],
    ),
    "spec.env[1]: Duplicate value": ("spec.env", [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]),
    "spec.volumes[].mountPath must be an absolute path without ':': begin it with '/'": (
        "spec.volumes",
        [{"mountPath": "data", "emptyDir": {}}],
    ),
    "spec.volumes[1]: Duplicate value": ("spec.volumes", [{"mountPath": "/data", "emptyDir": {}}] * 2),
    "spec.volumes[0].mountPath: Required value": ("spec.volumes", [{"emptyDir": {}}]),
    "spec.resources.requests.memory in body should match": ("spec.resources", {"requests": {"memory": "lots"}}),
    "spec.resources holds requests and limits: move the amounts into them": ("spec.resources", {"cpu": 28}),
    "spec.head.resources holds requests and limits": ("spec.head", {"resources": {"memory": "16Gi"}}),
    "spec.agent.resources holds requests and limits": (
        "spec.agent",
        {"resources": {"requests": {"cpu": 1}, "memory": "1Gi"}},
    ),
    "spec.resources.requests must not exceed spec.resources.limits": (
        "spec.resources",
        {"requests": {"memory": "2Gi"}, "limits": {"memory": "2000Mi"}},
    ),
    "spec.head.resources.requests must not exceed spec.head.resources.limits": (
        "spec.head",
        {"resources": {"requests": {"cpu": 2}, "limits": {"cpu": "1500m"}}},
    ),
    "spec.agent.resources.requests must not exceed spec.agent.resources.limits": (
        "spec.agent",
        {"resources": {"requests": {"cpu": "1500m"}, "limits": {"cpu": 1}}},
    ),
    'spec.volumes[0].pods: Unsupported value: "Agent": supported values: "All", "Nodes", "Head"': (
        "spec.volumes",
        [{"mountPath": "/data", "emptyDir": {}, "pods": "Agent"}],
    ),
    "spec.accelerator.vendor other needs the names of a resource and of a variable": (
        "spec.accelerator",
        {"vendor": "other", "resourceName": "habana.ai/gaudi"},
    ),
    "spec.accelerator.product selects nodes by a label of NVIDIA or AMD": (
        "spec.accelerator",
        GAUDI | {"product": "HL-225"},
    ),
    "spec.accelerator.visibleDevicesEnv is for vendor other": (
        "spec.accelerator",
        {"visibleDevicesEnv": "HABANA_VISIBLE_MODULES"},
    ),
    "spec.accelerator.visibleDevicesEnv is a variable of NVIDIA or AMD": (
        "spec.accelerator",
        GAUDI | {"visibleDevicesEnv": "CUDA_VISIBLE_DEVICES"},
    ),
    "spec.accelerator.visibleDevicesEnv must be the name of an environment variable": (
        "spec.accelerator",
        GAUDI | {"visibleDevicesEnv": "visible devices"},
    ),
    "spec.sharedMemory in body should match": ("spec.sharedMemory", "-1Gi"),
    "spec.head.resources.limits.cpu in body should match": ("spec.head", {"resources": {"limits": {"cpu": "two"}}}),
    'unknown field "spec.head.replicas"': ("spec.head", {"replicas": 2}),
    "spec.imagePullSecrets[0].name: Required value": ("spec.imagePullSecrets", [{}]),
    'unknown field "spec.proceses"': ("spec.proceses", 4),
    'unknown field "spec.podTemplate.containers"': ("spec.podTemplate", {"containers": []}),
    "spec.podTemplate.spec.containers in body must be of type array": (
        "spec.podTemplate",
        {"spec": {"containers": "ray-worker"}},
    ),
    "spec.podTemplate.spec.containers[0].name: Required value": (
        "spec.podTemplate",
        {"spec": {"containers": [{"image": "example.test/ray:1"}]}},
    ),
    "spec.podTemplate.spec.volumes in body must be of type array": (
        "spec.podTemplate",
        {"spec": {"volumes": "data"}},
    ),
    "metadata.name of a ResourcePool must be at most 40 lower-case letters": ("metadata.name", "a" * 41),
    "metadata.name of a ResourcePool must be": ("metadata.name", "4gpus"),
}

BAD_GROUPS = {
    "spec.pools must name a pool: leave it out for the pool of the group's own name": ("spec.pools", []),
    "spec.pools: Too many": ("spec.pools", [{"name": "actors"}] * 17),
    "spec.pools[0].bundles.count: Required value": ("spec.pools", [{"name": "actors", "bundles": {"start": 1}}]),
    "spec.pools[0].bundles.count in body should be greater than or equal to 1": (
        "spec.pools",
        [{"name": "actors", "bundles": {"count": 0}}],
    ),
    "spec.pools[0].bundles.start in body should be greater than or equal to 0": (
        "spec.pools",
        [{"name": "actors", "bundles": {"start": -1, "count": 1}}],
    ),
    "spec.pools[].name must be lower-case letters": ("spec.pools", [{"name": "Actors"}]),
    "spec.worker or spec.roles must say what the ranks are, and not both": ("spec.worker", ...),
    "spec.roles[].class must be an import path: write package.module.Class": ("spec.worker", {"class": "Trainer"}),
    "for several in one process spec.roles": ("spec.roles", [{"name": "actor", "class": "a.B"}]),
    "spec.roles[].name must be lower-case letters": ("spec.roles", [{"name": "the-actor", "class": "a.B"}]),
    "spec.roles[0].class: Required value": ("spec.roles", [{"name": "actor"}]),
    "spec.worker.kwargs in body must be of type object": ("spec.worker", {"class": "a.B", "kwargs": ["x"]}),
    "spec.code.configMap.name must be the name of a ConfigMap": ("spec.code", {"configMap": {"name": "My Code"}}),
    "spec.code must have either configMap or path: set configMap": ("spec.code", {}),
    "or path for a directory that the pool mounts by spec.volumes": (
        "spec.code",
        {"configMap": {"name": "code"}, "path": "/code"},
    ),
    "spec.code.path must be an absolute path": ("spec.code", {"path": "code"}),
    "spec.code.configMap.items[].path must be a relative path such as package/module.py": (
        "spec.code",
        {"configMap": {"name": "code", "items": [{"key": "a", "path": "../a.py"}]}},
    ),
    "spec.code.configMap.items[].key must be a key of a ConfigMap": (
        "spec.code",
        {"configMap": {"name": "code", "items": [{"key": "a/b", "path": "a.py"}]}},
    ),
    "spec.code.configMap.items[1]: Duplicate value": (
        "spec.code",
        {"configMap": {"name": "code", "items": [{"key": key, "path": "a.py"} for key in "ab"]}},
    ),
    "spec.env[].name must be letters, digits and '_'": ("spec.env", [{"name": "1ST", "value": ""}]),
    "spec.env[].name is set by WorkerGroups for each rank: remove it": (
        "spec.env",
        [{"name": "MASTER_ADDR", "value": "localhost"}],
    ),
    "spec.env[].name: no rank starts with PYTHONHOME, RAY_JOB_ID, RAY_RAYLET_PID: remove it": (
        "spec.env",
        [{"name": "PYTHONHOME", "value": "/opt/python"}],
    ),
    "spec.env[1]: Duplicate value": ("spec.env", [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]),
    "spec.env[].valueFrom: fieldRef and resourceFieldRef are about a pod: move the variable to spec.env of the pool": (
        "spec.env",
        [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
    ),
    "spec.env[].valueFrom must have either secretKeyRef or configMapKeyRef": (
        "spec.env",
        [{"name": "A", "valueFrom": {}}],
    ),
    "spec.env[] has both value and valueFrom: remove one": (
        "spec.env",
        [{"name": "A", "value": "1", "valueFrom": {"secretKeyRef": {"name": "a", "key": "k"}}}],
    ),
    "spec.env[].valueFrom must name a Secret or a ConfigMap": (
        "spec.env",
        [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "../a", "key": "k"}}}],
    ),
    "spec.env[].valueFrom must name a key of a Secret or a ConfigMap": (
        "spec.env",
        [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "a", "key": "k/l"}}}],
    ),
    "spec.envFrom[] must have either secretRef or configMapRef": ("spec.envFrom", [{"prefix": "A_"}]),
    "spec.envFrom[] must name a Secret or a ConfigMap": ("spec.envFrom", [{"secretRef": {"name": "A b"}}]),
    "spec.envFrom[].prefix must be letters": ("spec.envFrom", [{"prefix": "1", "secretRef": {"name": "a"}}]),
    'spec.env[0].value: Invalid value: "integer"': ("spec.env", [{"name": "A", "value": 1}]),
    "spec.env may have 98304 characters in all": (
        "spec.env",
        [{"name": f"A{number}", "value": "x" * 32_000} for number in range(4)],
    ),
    "spec.progressDeadlineSeconds in body should be greater than or equal to 5": ("spec.progressDeadlineSeconds", 1),
    'unknown field "spec.role"': ("spec.role", "actor"),
    "metadata.name of a WorkerGroup must be": ("metadata.name", "trainer.v1"),
}


FROM_A_CONFIG_MAP = [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "a", "key": "k"}}}]


@pytest.mark.parametrize("words", BAD_POOLS)
def test_a_bad_pool_is_refused(cluster, words):
    refuse(cluster.create, changed(pool(), *BAD_POOLS[words]), words)


@pytest.mark.parametrize("words", BAD_GROUPS)
def test_a_bad_group_is_refused(cluster, words):
    refuse(cluster.create, changed(group(), *BAD_GROUPS[words]), words)


def refuse(ask, manifest, words):
    with pytest.raises(ApiError) as refusal:
        ask(manifest)
    assert words in str(refusal.value)


@pytest.fixture(scope="module")
def fixed(cluster):
    """A pool and a group that exist, and hold nothing."""
    placed = pool("fixed", clusterName="fixed", nodeSelector={"no-such-node": "x"})
    grouped = group("fixed", ["fixed"], worker={"class": "a.B", "args": [1], "kwargs": {"x": {"y": 2}}})
    for manifest in (placed, grouped):
        cluster.create(manifest)
    return placed, grouped


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("spec.processesPerNode", 3),
        ("spec.clusterName", "other"),
        ("spec.accelerator", {"vendor": "amd"}),
        ("spec.topology", {"mode": "Spread"}),
        ("spec.maxColocateCount", 3),
        ("spec.spareCpus", 3),
        ("spec.reservation", "None"),
    ],
)
def test_what_a_pool_was_made_with_stays(cluster, fixed, path, value):
    refuse(cluster.change, changed(fixed[0], path, value), f"{path} is immutable: delete the pool and create it again")


@pytest.mark.parametrize("value", [[{"name": "another"}], [{"name": "fixed"}, {"name": "fixed"}], ...])
def test_a_groups_pools_stay(cluster, fixed, value):
    moved = changed(fixed[1], "spec.pools", value)
    refuse(cluster.change, moved, "spec.pools is immutable: delete the group and create it again")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("spec.nodes", 2),
        ("spec.podTemplate", {"metadata": {"labels": {"team": "rl"}}, "spec": {"serviceAccountName": "trainer"}}),
        ("spec.progressDeadlineSeconds", 900),
        ("spec.image", "example.test/ray:1"),
        ("spec.imagePullSecrets", [{"name": "registry"}]),
        ("spec.env", [{"name": "A", "value": "1"}]),
        ("spec.envFrom", [{"secretRef": {"name": "a"}}]),
        ("spec.volumes", [{"mountPath": "/data", "emptyDir": {}}]),
        ("spec.resources", {"requests": {"cpu": 2}}),
        ("spec.sharedMemory", "1Gi"),
        ("spec.nodeSelector", {"no-such-node": "y"}),
        ("spec.tolerations", [{"operator": "Exists"}]),
        ("spec.priorityClassName", "other"),
        ("spec.head", {"resources": {"requests": {"cpu": 2}}}),
        ("spec.head", {"spareCpus": 2}),
        ("spec.ray", {"resources": {"teacher": 2, "nvlink_domain_7": 1}, "labels": {"zone": "a", "a.b/rack": "r7"}}),
        ("spec.updateStrategy", {"type": "RollingUpdate"}),
    ],
)
def test_a_pool_can_be_changed_in(cluster, fixed, path, value):
    cluster.change(changed(fixed[0], path, value))
    cluster.change(fixed[0])


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("spec.worker", {"class": "a.C", "args": [2], "kwargs": {"z": [3]}}),
        ("spec.code", {"configMap": {"name": "other"}}),
        ("spec.code", {"configMap": {"name": "other", "items": [{"key": "a.py", "path": "pkg/sub_1/a.py"}]}}),
        ("spec.code", {"path": "/code/src"}),
        ("spec.code", ...),
        ("spec.env", [{"name": "A", "value": "1"}]),
        ("spec.env", [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "a", "key": "k", "optional": True}}}]),
        ("spec.envFrom", [{"prefix": "A_", "secretRef": {"name": "a.b"}}, {"configMapRef": {"name": "a"}}]),
        ("spec.resize", "Follow"),
        ("spec.progressDeadlineSeconds", 900),
        ("spec.run", {"method": "train", "kwargs": {"rate": 0.5}}),
    ],
)
def test_a_group_can_be_changed_in(cluster, fixed, path, value):
    cluster.change(changed(fixed[1], path, value))
    cluster.change(fixed[1])


@pytest.mark.parametrize(
    ("requests", "limits"),
    [
        ({"cpu": "1500m"}, {"cpu": "1.5"}),
        ({"cpu": 1}, {"cpu": "1"}),
        ({"cpu": "2"}, {"cpu": 2}),
        ({"cpu": 2}, {"cpu": 3, "memory": "1Gi"}),
        ({"memory": "1000Mi"}, {"memory": "1Gi"}),
        ({}, {}),
    ],
)
def test_requests_within_their_limits_are_taken(cluster, requests, limits):
    resources = {"requests": requests, "limits": limits}
    agent = {"resources": resources}
    head = {"resources": resources}
    name = f"within-{next(NUMBERS)}"
    cluster.create(pool(name, nodeSelector={"no-such-node": "x"}, resources=resources, head=head, agent=agent))


def test_a_variable_that_selects_devices_is_refused_whatever_its_name(cluster):
    chosen = [{"name": "HABANA_VISIBLE_MODULES", "value": "0"}]
    elsewhere = {"accelerator": {**GAUDI, "visibleDevicesEnv": "TPU_VISIBLE_CHIPS"}, "env": chosen}
    words = "spec.env[].name is spec.accelerator.visibleDevicesEnv, which WorkerGroups sets for each rank: remove it"
    refuse(cluster.create, pool("chosen", accelerator=GAUDI, env=chosen), words)
    cluster.create(pool("elsewhere", nodeSelector={"no-such-node": "x"}, **elsewhere))


def test_a_group_whose_size_cannot_change_cannot_follow(cluster):
    parts = [{"name": "actors", "bundles": {"count": 1}}]
    words = "spec.resize: Follow needs an entry of spec.pools without bundles, whose size can change: leave out resize"
    refuse(cluster.create, group("stiff", parts, resize="Follow"), words)
    cluster.create(group("partly-stiff", [*parts, "critics"], resize="Follow"))
    cluster.create(group("stiff", parts, resize="Never"))
    refuse(cluster.create, group("odd", resize="Grow"), 'supported values: "Never", "Follow"')


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"run": {"method": "train()"}}, "spec.run.method must be the name of a public method"),
        ({"run": {"method": "_train"}}, "spec.run.method must be the name of a public method"),
        ({"run": {}}, "spec.run.method: Required value"),
        ({"activeDeadlineSeconds": 60}, "spec.activeDeadlineSeconds needs spec.run"),
        ({"ttlSecondsAfterFinished": 0}, "spec.ttlSecondsAfterFinished needs spec.run"),
        ({"run": {"method": "train"}, "activeDeadlineSeconds": 0}, "should be greater than or equal to 1"),
        (
            {"run": {"method": "train"}, "worker": None, "roles": [{"name": "actor", "class": "a.B"}]},
            "spec.run needs spec.worker, whose class has the method: with spec.roles, call the methods from a driver",
        ),
        (
            {"run": {"method": "train"}, "failurePolicy": {"restart": "Rank"}},
            "spec.run cannot be used with spec.failurePolicy.restart: Rank, since the ranks of a run begin and end "
            "together: set restart to Group or Never",
        ),
    ],
)
def test_a_run_that_cannot_be_is_refused(cluster, spec, words):
    wrong = group("wrong", **spec)
    wrong["spec"] = {name: value for name, value in wrong["spec"].items() if value is not None}
    refuse(cluster.create, wrong, words)


@pytest.fixture(scope="module")
def tenant(cluster, access):
    """A user who has rights on pools and groups, on some Secrets, on one ConfigMap, and no others."""
    for kind in ("resourcepools", "workergroups"):
        cluster.grant(f"workergroups.dev/{kind}", ["create", "get", "update"], "tenant")
    cluster.grant("secrets", ["get"], "tenant", names=["own", *(f"own-{number}" for number in range(9))])
    cluster.grant("configmaps", ["get"], "tenant", names=["accumulator"])
    with cluster.connected(access, "tenant") as connected:
        yield connected


def from_secret(name):
    return [{"name": "KEY", "valueFrom": {"secretKeyRef": {"name": name, "key": "key"}}}]


def mounted(**source):
    return {"volumes": [{"mountPath": "/data"} | source]}


NAMED_BY_A_POOL = {
    "a Secret in env": (
        {"env": from_secret("a")},
        "spec names a, one of the secrets: only users who may get it, or create pods",
    ),
    "a Secret in envFrom": ({"envFrom": [{"secretRef": {"name": "a"}}]}, "spec names a, one of the secrets"),
    "a Secret in a volume": (mounted(secret={"secretName": "a"}), "spec names a, one of the secrets"),
    "a pull secret": ({"imagePullSecrets": [{"name": "own"}, {"name": "a"}]}, "spec names a, one of the secrets"),
    "a pull secret of the head": ({"head": {"imagePullSecrets": [{"name": "a"}]}}, "spec names a, one of the secrets"),
    "a pull secret of the agent": (
        {"agent": {"imagePullSecrets": [{"name": "a"}]}},
        "spec names a, one of the secrets",
    ),
    "a ConfigMap in env": ({"env": FROM_A_CONFIG_MAP}, "one of the configmaps: only users"),
    "a ConfigMap in envFrom": ({"envFrom": [{"configMapRef": {"name": "a"}}]}, "spec names a, one of the configmaps"),
    "a ConfigMap in a volume": (mounted(configMap={"name": "a"}), "spec names a, one of the configmaps"),
    "many Secrets": (
        {"envFrom": [{"secretRef": {"name": f"own-{number}"}} for number in range(9)]},
        "spec names more than 8 secrets: only users who may get all",
    ),
    "a file's variable": (
        {"env": [{"name": "A", "valueFrom": {"fileKeyRef": {"volumeName": "a", "path": "a", "key": "a"}}}]},
        "spec.env[].valueFrom: only users who may create pods",
    ),
    "a claim": (mounted(persistentVolumeClaim={"claimName": "a"}), "spec.volumes: only users who may create pods"),
    "a claim of the head": (
        {"head": {"gcsStorage": {"claimName": "a"}}},
        "spec.head.gcsStorage.claimName: only users who may create pods",
    ),
    "a token": (mounted(projected={"sources": [{"secret": {"name": "a"}}]}), "spec.volumes: only users who may"),
    "a path of the machine": (mounted(hostPath={"path": "/"}), "spec.volumes: only users who may create pods"),
    "a ServiceAccount": (
        {"podTemplate": {"spec": {"serviceAccountName": "a"}}},
        "spec.podTemplate, also of spec.head, can make any pod: only users who may create pods",
    ),
    "a ServiceAccount of the head": (
        {"head": {"podTemplate": {"spec": {"automountServiceAccountToken": True}}}},
        "spec.podTemplate, also of spec.head",
    ),
}
NAMED_BY_A_GROUP = {
    "a Secret in env": ({"env": from_secret("a")}, "spec names a, one of the secrets"),
    "a Secret in envFrom": ({"envFrom": [{"secretRef": {"name": "a"}}]}, "spec names a, one of the secrets"),
    "a ConfigMap in env": ({"env": FROM_A_CONFIG_MAP}, "one of the configmaps: only users"),
    "code": ({"code": {"configMap": {"name": "of-others"}}}, "spec names of-others, one of the configmaps"),
}


@pytest.mark.parametrize(("spec", "words"), NAMED_BY_A_POOL.values(), ids=NAMED_BY_A_POOL)
def test_who_names_an_object_in_a_pool_needs_the_right_to_it(tenant, spec, words):
    refuse(tenant.create, pool("tenants-no", **spec), words)


@pytest.mark.parametrize(("spec", "words"), NAMED_BY_A_GROUP.values(), ids=NAMED_BY_A_GROUP)
def test_who_names_an_object_in_a_group_needs_the_right_to_it(tenant, spec, words):
    refuse(tenant.create, group("tenants-no", **spec), words)


def test_who_has_the_right_to_an_object_may_name_it(tenant):
    of_pod = {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}
    own = {"env": [*from_secret("own"), of_pod], "imagePullSecrets": [{"name": "own"}]} | mounted(emptyDir={})
    tenant.create(pool("tenants-own", **own, head={"spareCpus": 1}, setup={"script": "env"}))
    tenant.create(group("tenants-own", env=[*from_secret("own"), {"name": "A", "value": "1"}]))
    tenant.create(pool("tenants-image", **mounted(image={"reference": "example.test/code:1"})))
    many = [{"secretRef": {"name": f"own-{number % 8}"}} for number in range(32)]
    tenant.create(pool("tenants-many", envFrom=many))


def test_nobody_adds_what_they_may_not_read_or_changes_what_reads_it(cluster, tenant):
    plain = group("tenants")
    tenant.create(plain)
    refuse(tenant.change, changed(plain, "spec.env", from_secret("a")), "spec names a, one of the secrets")
    for theirs, change in (
        (group("of-an-editor", env=from_secret("a")), {"worker": {"class": "tenants.Code"}}),
        (pool("of-an-editor", env=from_secret("a")), {"setup": {"script": "env; exit 1"}}),
    ):
        cluster.create(theirs)
        refuse(tenant.change, theirs | {"spec": theirs["spec"] | change}, "spec names a, one of the secrets")


def test_who_may_create_pods_may_name_everything(cluster, access):
    cluster.grant("workergroups.dev/resourcepools", ["create"], "editor")
    cluster.grant("pods", ["create"], "editor")
    with cluster.connected(access, "editor") as editor:
        for number, (spec, _) in enumerate(NAMED_BY_A_POOL.values()):
            editor.create(pool(f"editors-{number}", **spec))


WRONG_RULES = {
    "spec.ingress[0].from[0].ipBlock.cidr: Invalid value": {"dashboardFrom": [{"ipBlock": {"cidr": "10.0.0.0"}}]},
    "spec.ingress[0].from[0]: Forbidden: may not specify both ipBlock and another peer": {
        "dashboardFrom": [{"ipBlock": {"cidr": "10.0.0.0/8"}, "podSelector": {}}]
    },
    "spec.egress[0].ports[0].port: Invalid value": {"enabled": False, "egress": [{"ports": [{"port": "443"}]}]},
}


@pytest.mark.parametrize("words", WRONG_RULES)
def test_rules_that_no_cluster_could_have_are_refused_when_helm_installs_them(cluster, words):
    manifests = Helm(installed_helm()).render(f"--set-json=networkPolicy={json.dumps(WRONG_RULES[words])}")
    (rules,) = [each for each in manifests if each["metadata"]["name"] == "workergroups-operator-cluster-rules"]
    rules["metadata"]["namespace"] = NAMESPACE
    refuse(cluster.create, rules, words)


@pytest.fixture
def served(access, tmp_path):
    """kubectl, with a chart that serves one other namespace."""
    kubectl = Kubectl(access, tmp_path)
    only = ("--show-only=templates/admission_namespaces.yaml", "--set=namespaces={default}")
    policy = Helm(installed_helm()).run("template", "release", CHART, *only)
    kubectl("apply", "-f", "-", stdin=policy)
    yield kubectl
    kubectl("delete", "-f", "-", stdin=policy)


def warning(kubectl, manifest):
    """What a user is told who creates it."""
    try:
        kubectl("create", "--dry-run=server", "--warnings-as-errors", "-f", "-", stdin=json.dumps(manifest))
    except AssertionError as told:
        return str(told)
    return ""


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("manifest", [pool("unserved"), group("unserved")], ids=["pool", "group"])
def test_who_creates_something_where_no_operator_serves_is_warned(served, manifest):
    deadline = time.monotonic() + 30
    while not (told := warning(served, manifest)) and time.monotonic() < deadline:
        time.sleep(0.5)
    assert "no operator serves the namespace admission, so nothing will happen: create the object in a" in told
    assert warning(served, changed(manifest, "metadata.namespace", "default")) == ""


def test_a_group_may_take_a_pool_twice_and_needs_to_name_none(cluster):
    halves = [{"name": "actors", "bundles": {"start": start, "count": 1}} for start in (1, 0)]
    cluster.create(group("twice", halves))
    assert "pools" not in cluster.create(group("own"))["spec"]


async def test_nulls_are_values_and_the_status_of_such_a_group_can_be_written(scene):
    worker = {"class": "a.B", "args": [None], "kwargs": {"a": None, "b": {"c": None}}}
    created = await scene.group("nulls", worker=worker)
    assert created["spec"]["worker"] == worker
    await scene.until(WORKER_GROUP, "nulls", "Ready", "False", "PoolNotFound")
