"""What the operator may do: what its code calls and what it grants to agents, and nothing else."""

import pytest

from workergroups_api import kube
from workergroups_api.resource_pool import ResourcePool
from workergroups_api.worker_group import WorkerGroup
from workergroups_operator.desired.agent import access
from workergroups_operator.membership import ClusterKey
from workergroups_operator.observe import child_names

NAME = "workergroups-operator"
READ = {"get", "list", "watch"}


@pytest.fixture(scope="session")
def rules(find) -> list[dict]:
    return find("ClusterRole", NAME)["rules"]


@pytest.fixture(scope="session")
def rights(rules) -> set[tuple[str, str, str]]:
    return {
        (group, resource, verb)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def test_no_wildcards_and_no_deletion(rights):
    assert not [right for right in rights if "*" in right]
    assert {verb for _, _, verb in rights} == READ | {"create", "patch"}


def test_no_right_to_hand_out_more_than_it_has(rights):
    assert not {"escalate", "bind", "impersonate"} & {verb for _, _, verb in rights}


def test_secrets_cannot_be_listed(rights):
    assert {verb for _, resource, verb in rights if resource == "secrets"} == {"get", "create", "patch"}


@pytest.mark.parametrize("kind", child_names("any"), ids=lambda kind: kind.kind)
def test_it_can_observe_and_apply_each_child(rights, kind):
    group = kind.api_version.rpartition("/")[0]
    assert {(group, kind.plural, verb) for verb in ("get", "create", "patch")} <= rights


@pytest.mark.parametrize("kind", [kube.RESOURCE_POOL, kube.WORKER_GROUP], ids=lambda kind: kind.kind)
def test_of_the_users_objects_it_writes_the_status_only(rights, kind):
    group = kind.api_version.rpartition("/")[0]
    assert {verb for *what, verb in rights if what == [group, kind.plural]} == READ
    assert {verb for *what, verb in rights if what == [group, f"{kind.plural}/status"]} == {"patch"}


def test_it_holds_what_it_grants_to_an_agent(rights, pool_and_group):
    pool, group = pool_and_group
    _, role, _ = access(ClusterKey("somewhere", "cluster"), [pool], [group])
    granted = {
        (api_group, resource, verb)
        for rule in role["rules"]
        for api_group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    assert granted
    assert granted <= rights


def test_the_binding_names_the_deployments_account(find):
    account = find("Deployment", NAME)["spec"]["template"]["spec"]["serviceAccountName"]
    binding = find("ClusterRoleBinding", NAME)
    assert binding["roleRef"]["name"] == NAME
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": account, "namespace": "somewhere"}]


@pytest.fixture
def pool_and_group():
    metadata = {"name": "a", "namespace": "somewhere", "uid": "1", "generation": 1}
    pool = {"processesPerNode": [1]}
    group = {"pools": [{"name": "a"}], "worker": {"class": "m.C"}, "code": {"configMap": {"name": "code"}}}
    return (
        ResourcePool.model_validate({"metadata": metadata, "spec": pool}),
        WorkerGroup.model_validate({"metadata": metadata, "spec": group}),
    )
