"""The agent's ServiceAccount, Role and RoleBinding, with no more rights than it needs, on named resources only."""

from collections.abc import Sequence

from workergroups_api.manifest import LEASE, ROLE, ROLE_BINDING, SERVICE_ACCOUNT, Manifest
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
    metadata = {"name": name}
    role = {"apiGroup": ROLE.group, "kind": ROLE.kind, "name": name}
    account = {"kind": SERVICE_ACCOUNT.kind, "name": name, "namespace": key.namespace}
    return [
        SERVICE_ACCOUNT.manifest(metadata, automountServiceAccountToken=False),
        ROLE.manifest(metadata, rules=rules),
        ROLE_BINDING.manifest(metadata, roleRef=role, subjects=[account]),
    ]


def _rule(group: str, resource: str, resource_names: list[str], verbs: list[str]) -> Manifest:
    return {"apiGroups": [group], "resources": [resource], "resourceNames": resource_names, "verbs": verbs}
