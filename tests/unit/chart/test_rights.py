"""What the operator may do: what its code calls and what it grants to agents, and nothing else; and what users may."""

import re
from collections.abc import Iterable
from pathlib import Path

import pytest
import yaml

from tests.unit.api.test_crd import FILES, fields, schema
from tests.unit.chart.helm import CHART
from tests.unit.docs.pages import tables
from workergroups_api import manifest
from workergroups_api.children import CHILD_KINDS
from workergroups_api.manifest import Kind

NAME = "workergroups-operator"
READ = {"get", "list", "watch"}
WRITE = {"create", "update", "patch", "delete", "deletecollection"}
USERS_OBJECTS = (manifest.RESOURCE_POOL, manifest.WORKER_GROUP)
# Every manifest that the operator makes, in several situations.
GOLDEN = [
    each
    for file in sorted((Path(__file__).parents[1] / "operator" / "golden").glob("*.yaml"))
    for each in yaml.safe_load_all(file.read_text())
]
AGENTS_ROLES = [each for each in GOLDEN if each["kind"] == "Role"]

Right = tuple[str, str, str]


def rights_of(rules: Iterable[dict]) -> set[Right]:
    """(API group, resource, verb) of each rule."""
    return {
        (group, resource, verb)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def verbs_on(rights: Iterable[Right], kind: Kind, subresource: str = "") -> set[str]:
    return {verb for group, resource, verb in rights if (group, resource) == (kind.group, kind.plural + subresource)}


@pytest.fixture(scope="session")
def rights(find) -> set[Right]:
    return rights_of(find("ClusterRole", NAME)["rules"])


def test_for_some_namespaces_it_has_the_same_rights_there_but_on_nodes_and_none_elsewhere(helm, rights):
    manifests = helm.render('--set-json=namespaces=["a", "b"]')
    of_operator = [each for each in manifests if each["metadata"]["name"] == NAME]
    roles = [each for each in of_operator if each["kind"] == "Role"]
    assert [each["metadata"]["namespace"] for each in roles] == ["a", "b"]
    elsewhere = {
        ("", "nodes", "get"),
        *(("apiextensions.k8s.io", "customresourcedefinitions", verb) for verb in ("list", "watch")),
    }
    assert all(rights_of(role["rules"]) == rights - elsewhere for role in roles)
    bindings = [each for each in of_operator if each["kind"] == "RoleBinding"]
    assert [each["metadata"]["namespace"] for each in bindings] == ["a", "b"]
    assert all(each["roleRef"]["name"] == NAME and each["subjects"][0]["name"] == NAME for each in bindings)
    granted = {each["metadata"]["name"] for each in manifests if each["kind"] == "ClusterRoleBinding"}
    assert granted == set()


def test_of_leases_in_its_own_namespace_it_gets_and_changes_its_own_one(find):
    role = find("Role", f"{NAME}-lease")
    assert role["metadata"]["namespace"] == "somewhere"
    by_name = [rule["verbs"] for rule in role["rules"] if rule.get("resourceNames") == [NAME]]
    assert (by_name, verbs_on(rights_of(role["rules"]), manifest.LEASE)) == (
        [["get", "patch"]],
        {"get", "patch", "create"},
    )


def test_the_charts_readme_lists_each_right_with_its_reason(rights):
    page = (CHART / "README.md").read_text()
    (rows,) = [rows for header, rows in tables(page) if header[:2] == ["API group", "resources"]]
    cells = [[cell.strip("`").split(", ") for cell in row[:3]] for row in rows]
    listed = {
        ("" if group == "core" else group, resource, verb)
        for (group,), resources, verbs in cells
        for resource in resources
        for verb in verbs
    }
    assert listed == rights
    assert all(row[3] for row in rows)


def test_no_wildcards(rights):
    assert not [right for right in rights if "*" in right]


def test_no_right_to_hand_out_more_than_it_has(rights):
    assert not {"escalate", "bind", "impersonate"} & {verb for _, _, verb in rights}


def test_it_deletes_clusters_and_heads_that_it_restarts_idle_pools_finished_groups_and_nothing_else(rights):
    deleted = {right[:2] for right in rights if right[2].startswith("delete")}
    ours = {("workergroups.dev", "resourcepools"), ("workergroups.dev", "workergroups")}
    assert deleted == {("ray.io", "rayclusters"), ("", "pods"), *ours}


def test_nothing_is_written_but_by_apply(rights):
    assert {verb for _, _, verb in rights} == READ | {"create", "patch", "delete"}


@pytest.mark.parametrize("kind", CHILD_KINDS, ids=lambda kind: kind.kind)
def test_it_can_watch_and_apply_each_object_of_a_cluster(rights, kind):
    assert verbs_on(rights, kind) - {"delete"} == READ | {"create", "patch"}


def test_it_makes_nothing_else():
    made = {manifest.kind_of(each) for each in GOLDEN}
    assert made
    assert made <= set(CHILD_KINDS)


@pytest.mark.parametrize("kind", USERS_OBJECTS, ids=lambda kind: kind.kind)
def test_of_the_users_objects_it_writes_the_status_only(rights, kind):
    assert verbs_on(rights, kind) - {"delete"} == READ
    assert verbs_on(rights, kind, "/status") == {"patch"}


def test_of_pods_it_changes_none(rights):
    assert verbs_on(rights, manifest.POD) == {"list", "watch", "create", "delete"}
    assert {resource for _, resource, _ in rights if resource.startswith("pods/")} == set()


@pytest.mark.parametrize(
    "kind", [manifest.NAMESPACE, manifest.NODE, manifest.REPLICA_SET, manifest.SERVICE], ids=lambda kind: kind.kind
)
def test_some_objects_are_looked_at_by_name(rights, kind):
    assert verbs_on(rights, kind) == {"get"}


def test_it_reads_kuberays_events_and_writes_its_own(rights):
    assert {right for right in rights if right[1] == "events"} == {
        ("", "events", "list"),
        ("events.k8s.io", "events", "create"),
    }


def test_it_holds_what_an_agent_is_granted(rights):
    granted = rights_of(rule for role in AGENTS_ROLES for rule in role["rules"])
    assert granted
    assert granted <= rights


def test_it_holds_what_an_agent_needs(rights):
    assert verbs_on(rights, manifest.CONFIG_MAP) >= READ
    assert verbs_on(rights, manifest.WORKER_GROUP) >= READ
    assert verbs_on(rights, manifest.LEASE) >= {"get", "patch"}


@pytest.mark.parametrize("role", AGENTS_ROLES, ids=lambda role: role["metadata"]["name"])
def test_an_agent_is_granted_named_objects_only(role):
    assert [rule for rule in role["rules"] if not rule.get("resourceNames")] == []


@pytest.mark.parametrize("role", AGENTS_ROLES, ids=lambda role: role["metadata"]["name"])
def test_an_agent_reads_the_plan_and_its_lease_and_writes_status(role):
    granted = rights_of(role["rules"])
    assert verbs_on(granted, manifest.CONFIG_MAP) == READ
    assert verbs_on(granted, manifest.LEASE) == {"get", "patch"}
    assert verbs_on(granted, manifest.RESOURCE_POOL) == {"get"}
    assert verbs_on(granted, manifest.RESOURCE_POOL, "/status") == {"patch"}
    # Without groups there is nothing to name, and a rule without names would mean all of them.
    of_groups = [verbs_on(granted, manifest.WORKER_GROUP, each) for each in ("", "/status")]
    assert of_groups in ([READ, {"patch"}], [set(), set()])
    assert verbs_on(granted, manifest.SECRET) == set()


def test_the_binding_names_the_deployments_account(find):
    account = find("Deployment", NAME)["spec"]["template"]["spec"]["serviceAccountName"]
    binding = find("ClusterRoleBinding", NAME)
    assert binding["roleRef"]["name"] == NAME
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": account, "namespace": "somewhere"}]


@pytest.mark.parametrize("kind", USERS_OBJECTS, ids=lambda kind: kind.kind)
@pytest.mark.parametrize(("role", "verbs"), [("view", READ), ("edit", READ | WRITE), ("admin", READ | WRITE)])
def test_kubernetes_own_roles_extend_to_pools_and_groups(manifests, kind, role, verbs):
    granted = rights_of(aggregated_rules(manifests, role))
    assert verbs_on(granted, kind) == verbs
    assert verbs_on(granted, kind, "/status") == READ


@pytest.mark.parametrize(("role", "verbs"), [("view", READ), ("edit", READ | {"update", "patch"})])
def test_who_may_change_pools_may_scale_them(manifests, role, verbs):
    granted = rights_of(aggregated_rules(manifests, role))
    assert verbs_on(granted, manifest.RESOURCE_POOL, "/scale") == verbs


def test_what_pools_and_groups_name_is_only_for_users_with_the_right_to_it(find):
    """What it lets through is a test of the API server's."""
    policy = find("ValidatingAdmissionPolicy", "workergroups-named-objects")["spec"]
    (rule,) = policy["matchConstraints"]["resourceRules"]
    kinds = [manifest.RESOURCE_POOL.plural, manifest.WORKER_GROUP.plural]
    assert (rule["resources"], rule["operations"]) == (kinds, ["CREATE", "UPDATE"])
    assert policy["failurePolicy"] == "Fail"
    binding = find("ValidatingAdmissionPolicyBinding", "workergroups-named-objects")["spec"]
    assert binding == {"policyName": "workergroups-named-objects", "validationActions": ["Deny"]}


def test_users_are_warned_of_namespaces_that_are_not_served_if_there_are_any(helm, manifests):
    """Which warning they get is a test of the API server's."""
    name = "workergroups-served-namespaces"
    assert name not in [each["metadata"]["name"] for each in manifests]
    rendered = [each for each in helm.render("--set=namespaces={a}") if each["metadata"]["name"] == name]
    specs = {each["kind"]: each["spec"] for each in rendered}
    (rule,) = specs["ValidatingAdmissionPolicy"]["matchConstraints"]["resourceRules"]
    assert (rule["resources"], rule["operations"]) == ([kind.plural for kind in USERS_OBJECTS], ["CREATE"])
    assert specs["ValidatingAdmissionPolicyBinding"] == {"policyName": name, "validationActions": ["Warn"]}


NO_OBJECTS_OF_OTHERS = {
    ".clusterName": "pools, which have an owner with the same rights",
    ".accelerator.resourceName": "no object",
    ".resources.claims": "claims that a podTemplate has",
    ".priorityClassName": "no object of the namespace: a ResourceQuota can restrict it",
    ".pools[].name": "a pool, whose ranks those make who may create groups",
}


@pytest.mark.parametrize("file", FILES)
def test_the_policy_looks_at_each_field_that_names_an_object(find, file):
    asked = yaml.safe_dump(find("ValidatingAdmissionPolicy", "workergroups-named-objects")["spec"])
    of_objects = re.compile(r"(?i)(\w*name|\w*claims?|\w*secrets?|\w*configMap|\w*(key)?ref|\w*account\w*)$")
    # What env, roles and a podTemplate's lists name are their own entries.
    own = re.compile(r"\.podTemplate\.|\.(env|roles|claims)\[\]\.name$|\.(fieldRef|resourceFieldRef)$")
    named = [path for path, _ in fields(schema(file)["properties"]["spec"]) if of_objects.search(path)]
    assert named
    unseen = [
        path
        for path in named
        if not own.search(path)
        and not path.endswith(tuple(NO_OBJECTS_OF_OTHERS))
        and path.removesuffix(".name").replace("[]", "").rpartition(".")[2] not in asked
    ]
    assert unseen == []


def aggregated_rules(manifests: list[dict], role: str) -> list[dict]:
    """Rules that Kubernetes adds to its own ClusterRole of that name."""
    label = f"rbac.authorization.k8s.io/aggregate-to-{role}"
    roles = [each for each in manifests if each["metadata"].get("labels", {}).get(label) == "true"]
    return [rule for each in roles for rule in each["rules"]]
