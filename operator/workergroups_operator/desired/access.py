"""The agent's ServiceAccount, Role and RoleBinding, with no more rights than it needs, on named resources only."""

from collections.abc import Sequence

from workergroups_api.manifest import LEASE, Manifest
from workergroups_api.names import GROUP, agent_name, plan_name
from workergroups_api.plan import ClusterPlan
from workergroups_api.worker_group import WorkerGroup
from workergroups_operator.membership import ClusterKey

_READ = ["get", "list", "watch"]


def access(key: ClusterKey, plan: ClusterPlan, groups: Sequence[WorkerGroup]) -> list[Manifest]:
    """Return the manifests. The agent has no rights on groups that are not planned."""
    name = agent_name(key.name)
    pools, planned = [pool.name for pool in plan.pools], [group.name for group in plan.groups]
    named = (group.spec.code_config_map for group in groups if group.name in planned)
    code = {name for name in named if name is not None}
    rules = [
        _rule("", "configmaps", [plan_name(key.name), *sorted(code)], _READ),
        _rule(LEASE.group, LEASE.plural, [name], ["get", "patch"]),
        _rule(GROUP, "resourcepools", pools, ["get"]),
        _rule(GROUP, "resourcepools/status", pools, ["patch"]),
    ]
    # A rule without names would cover all groups.
    if planned:
        rules += [
            _rule(GROUP, "workergroups", planned, _READ),
            _rule(GROUP, "workergroups/status", planned, ["patch"]),
        ]
    return [
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": name},
            "automountServiceAccountToken": False,
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "Role",
            "metadata": {"name": name},
            "rules": rules,
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": key.namespace}],
        },
    ]


def _rule(group: str, resource: str, resource_names: list[str], verbs: list[str]) -> Manifest:
    return {"apiGroups": [group], "resources": [resource], "resourceNames": resource_names, "verbs": verbs}
