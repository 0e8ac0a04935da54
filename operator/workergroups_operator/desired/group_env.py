"""The Secret with the variables that groups take from Secrets and ConfigMaps, which the pools' pods mount.

It changes only with the plan: a group's entry holds the values with which the planned incarnation began, also if the
objects that the group names have changed since. So no rank finds others than the rest of its group.
"""

from workergroups_api.manifest import SECRET, Manifest
from workergroups_api.names import group_env_name
from workergroups_api.plan import ClusterPlan, PlannedGroup
from workergroups_operator.decisions import Decisions
from workergroups_operator.observed import Observed
from workergroups_operator.policy.group_env import PresentEnv, entry_of, values_in
from workergroups_operator.policy.token import present_token


def secret(observed: Observed, decisions: Decisions, plan: ClusterPlan) -> Manifest | None:
    """Return the Secret; None if no group needs it and there is none. The operator may not delete Secrets."""
    name = group_env_name(observed.key.name)
    entries = {group.name: _entry(group, observed, decisions) for group in plan.groups if group.environment}
    data = {key: entry for key, entry in entries.items() if entry is not None}
    if not data and observed.child(SECRET, name) is None:
        return None
    return SECRET.manifest({"name": name}, type="Opaque", data=data)


def _entry(group: PlannedGroup, observed: Observed, decisions: Decisions) -> str | None:
    """Return the planned values, from the group's sources or from the live Secret; None if neither has them."""
    assert group.environment is not None
    present = decisions.groups.environments.get(group.name)
    if isinstance(present, PresentEnv) and present.digest == group.environment:
        return entry_of(present.digest, present.values)
    live = observed.child(SECRET, group_env_name(observed.key.name)) or {}
    entry, token = (live.get("data") or {}).get(group.name), present_token(observed)
    if token is None or values_in(entry, group.uid, group.environment, token) is None:
        return None
    return str(entry)
