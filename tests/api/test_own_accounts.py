"""What operator and agents may not write, though RBAC would let them: the chart's policies for our own accounts."""

import asyncio
from contextlib import AsyncExitStack

import pytest

from tests.simulation.api import APPLY, MERGE, Api, ApiError, path_of
from tests.simulation.scene import group, pool
from workergroups_api import manifest as kinds
from workergroups_api.manifest import RESOURCE_POOL, WORKER_GROUP, kind_of

NAMESPACE = "own-accounts"
AGENT = f"system:serviceaccount:{NAMESPACE}:p-agent"
REPORTED = {
    RESOURCE_POOL: {"reservation": {"session": "s", "joinedNodes": 1}},
    WORKER_GROUP: {"ranks": {"session": "s", "incarnation": 1, "state": "Launched"}},
}
NOW = "2026-11-28T00:00:00Z"
CONDITION = {"type": "Ready", "status": "False", "reason": "Because", "message": "", "lastTransitionTime": NOW}
RBAC = "rbac.authorization.k8s.io"
LEASES = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["patch"]}
SUBJECT = {"kind": "ServiceAccount", "name": "p-agent", "namespace": NAMESPACE}


class Users:
    """Connections with the rights of several users."""

    def __init__(self, runner, access, stack):
        self._runner, self._access, self._stack = runner, access, stack
        self._apis = {}

    def ask(self, user, method, path, body, content_type="application/json", **query):
        if user not in self._apis:
            connection = Api.connect(self._access, user)
            self._apis[user] = self._runner.run(self._stack.enter_async_context(connection))
        return self._runner.run(self._apis[user].request(method, path, body, content_type, **query))

    def create(self, user, manifest, **query):
        return self.ask(user, "POST", path_of(kind_of(manifest), NAMESPACE), manifest, **query)

    def report(self, user, kind, status):
        body = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "p"}, "status": status}
        path = path_of(kind, NAMESPACE, "p", "status")
        return self.ask(user, "PATCH", path, body, APPLY, fieldManager=user.rpartition(":")[2], force="true")


@pytest.fixture(scope="module")
def users(access):
    """A pool and a group with a condition each, and an agent that may patch their statuses."""
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        users = Users(runner, access, stack)
        admin = runner.run(stack.enter_async_context(Api.connect(access)))
        runner.run(admin.create_namespace(NAMESPACE))
        for each in (pool(NAMESPACE, "p"), group(NAMESPACE, "p")):
            users.create(None, each)
            users.report("operator", kind_of(each), {"conditions": [CONDITION], "observedGeneration": 1})
        resources = [f"{kind.plural}/status" for kind in REPORTED]
        rule = {"apiGroups": [RESOURCE_POOL.group], "resources": resources, "resourceNames": ["p"], "verbs": ["patch"]}
        users.create(None, role("p-agent", rule))
        users.create(None, binding("p-agent"))
        asked = {"group": RESOURCE_POOL.group, "resource": RESOURCE_POOL.plural, "subresource": "status", "name": "p"}
        runner.run(admin.until_allowed(AGENT, namespace=NAMESPACE, verb="patch", **asked))
        yield users
        runner.run(admin.delete_namespace(NAMESPACE))
        runner.run(stack.aclose())


def role(name, *rules):
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "Role",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "rules": list(rules),
    }


def binding(name, role_kind="Role", to=None, subject=SUBJECT):
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "roleRef": {"apiGroup": RBAC, "kind": role_kind, "name": to or name},
        "subjects": [subject],
    }


FORGED = {
    "a condition": {"conditions": [CONDITION | {"status": "True"}]},
    "another condition": {"conditions": [CONDITION, CONDITION | {"type": "Forged"}]},
    "no conditions": {"conditions": None},
    "another field": {"observedGeneration": 7},
    "a new field": {"deadline": NOW},
    "no other field": {"observedGeneration": None},
}


@pytest.mark.parametrize("kind", REPORTED, ids=lambda kind: kind.kind)
def test_an_agent_writes_its_report(users, kind):
    ((field, report),) = REPORTED[kind].items()
    assert users.report(AGENT, kind, REPORTED[kind])["status"][field].items() >= report.items()


@pytest.mark.parametrize("forged", FORGED.values(), ids=FORGED)
@pytest.mark.parametrize("kind", REPORTED, ids=lambda kind: kind.kind)
def test_an_agent_changes_nothing_else_of_a_status(users, kind, forged):
    with pytest.raises(ApiError, match=f"403.*an agent writes status.{next(iter(REPORTED[kind]))} only"):
        users.ask(AGENT, "PATCH", path_of(kind, NAMESPACE, "p", "status"), {"status": forged}, MERGE)


CHECK = {"workergroups.dev/component": "image-check"}


def pod(labels, container=None, **spec):
    containers = [{"name": "c", "image": "i", **(container or {})}]
    metadata = {"name": "t", "labels": labels}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": containers, **spec}}


def check(container=None, **spec):
    """A pod that pulls an image and does nothing, with changes."""
    return pod(CHECK, {"command": ["true"]} | (container or {}), **{"automountServiceAccountToken": False} | spec)


PROGRAM = {"exec": {"command": ["sh"]}}
NO_CHECKS = {
    "another command": check({"command": ["sh"]}),
    "arguments": check({"args": ["--help"]}),
    "a variable": check({"env": [{"name": "A", "value": "b"}]}),
    "the variables of a Secret": check({"envFrom": [{"secretRef": {"name": "s"}}]}),
    "a program at its start": check({"lifecycle": {"postStart": PROGRAM}}),
    "a program that tells whether it lives": check({"livenessProbe": PROGRAM}),
    "a program that tells whether it is ready": check({"readinessProbe": PROGRAM}),
    "a program that tells whether it has started": check({"startupProbe": PROGRAM}),
    "privileges": check({"securityContext": {"privileged": True}}),
    "an init container": check(initContainers=[{"name": "i", "image": "i", "command": ["sh"]}]),
    "the processes of the machine": check(hostPID=True),
    "the memory of the machine": check(hostIPC=True),
    "the network of the machine": check(hostNetwork=True),
    "a token": check(automountServiceAccountToken=True),
    "a volume": check(volumes=[{"name": "v", "emptyDir": {}}]),
}


FORBIDDEN = {
    "a token of any ServiceAccount": (
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "t", "annotations": {"kubernetes.io/service-account.name": "default"}},
            "type": "kubernetes.io/service-account-token",
        },
        "Secrets of type Opaque only",
    ),
    "a pod": (pod({}), "pods by dry runs only"),
    "rights on all objects": (role("t-agent", LEASES), "rights on named objects only"),
    "a ClusterRole for an agent": (binding("t-agent", "ClusterRole", "workergroups-operator"), "of the same name"),
    "another Role for an agent": (binding("t-agent", to="p-agent"), "of the same name"),
    "a Role for an account of another namespace": (
        binding("p-agent", subject=SUBJECT | {"namespace": "default"}),
        "of the same name",
    ),
    "a Role for a person": (
        binding("p-agent", subject={"kind": "User", "name": "mallory", "apiGroup": RBAC}),
        "of the same name",
    ),
}


@pytest.mark.parametrize(("manifest", "words"), FORBIDDEN.values(), ids=FORBIDDEN)
def test_the_operators_account_creates_none_of_these(users, manifest, words):
    with pytest.raises(ApiError, match=f"403.*{words}"):
        users.create("operator", manifest)


# Webhooks add such things to pods. If the dry run were accepted, the operator would wait for a pod that cannot exist.
@pytest.mark.parametrize("dry_run", [{}, {"dryRun": "All"}], ids=["created", "dry run"])
@pytest.mark.parametrize("manifest", NO_CHECKS.values(), ids=NO_CHECKS)
def test_a_check_of_images_has_nothing_else_not_even_in_a_dry_run(users, manifest, dry_run):
    with pytest.raises(ApiError, match=r"403.*pods by dry runs only, except those that pull images and do nothing"):
        users.create("operator", manifest, **dry_run)


def test_dry_runs_of_pods_and_checks_of_images_are_what_the_operator_needs(users):
    shown = pod({}, {"command": ["sh"], "securityContext": {"privileged": True}}, hostNetwork=True)
    assert users.create("operator", shown, dryRun="All")["metadata"]["name"] == "t"
    for dry_run in ({"dryRun": "All"}, {}):
        assert users.create("operator", check(), **dry_run)["metadata"]["labels"] == CHECK


def test_what_the_operator_has_made_it_does_not_change_into_one_of_these(users):
    made = role("u-agent", LEASES | {"resourceNames": ["u-agent"]})
    users.create("operator", made)
    path = path_of(kinds.ROLE, NAMESPACE, "u-agent")
    with pytest.raises(ApiError, match=r"403.*rights on named objects only"):
        users.ask("operator", "PATCH", path, role("u-agent", LEASES), APPLY, fieldManager="o", force="true")


def test_others_are_held_back_by_rbac_alone(users):
    assert users.create(None, role("persons", LEASES))["rules"] == [LEASES]
