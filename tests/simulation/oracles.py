"""What must hold at the end of a history, after the last fault."""

import json
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from tests.simulation.api import Api
from tests.simulation.monitor import Monitor
from tests.simulation.scene import Scene
from tests.simulation.story import BROKEN, SHAPED_ENV, Story
from tests.simulation.truth import condition_of, contradiction, is_complete, misjudged, old_pods, outdated, says_true
from tests.simulation.world import is_foreign
from workergroups_api import manifest as kinds
from workergroups_api.children import CHILD_KINDS
from workergroups_api.manifest import POD, RESOURCE_POOL, WORKER_GROUP, Kind, Manifest
from workergroups_api.names import (
    CLUSTER_LABEL,
    DOUBTS_ANNOTATION,
    HEAD_ANNOTATION,
    HEAD_IMAGE_ANNOTATION,
    MANIFEST_ANNOTATION,
    REPLACED_HEAD_ANNOTATION,
    ROLL_ANNOTATION,
    SESSION_ANNOTATION,
    TOKEN_ANNOTATION,
    node_group,
)
from workergroups_api.resource_pool import ResourcePool
from workergroups_api.vocabulary import Component, ConditionType, Reason, Resize, Restart
from workergroups_api.worker_group import WorkerGroup
from workergroups_common.ranges import ranges

CODE_IS_MISSING = "its code is missing"


async def unsettled(scene: Scene, monitor: Monitor, story: Story) -> list[str]:
    """Return what is not yet as it must be; nothing once the history has converged."""
    listed = [ResourcePool.model_validate(body) for body in await scene.api.list(RESOURCE_POOL, scene.namespace)]
    groups = [WorkerGroup.model_validate(body) for body in await scene.api.list(WORKER_GROUP, scene.namespace)]
    pools = {pool.name: pool for pool in listed}
    wrong = [f"pools are {sorted(pools)}, not {sorted(story.pools)}"] if pools.keys() != story.pools.keys() else []
    for pool in listed:
        wrong += _unsettled_pool(scene, monitor, story, pool)
    for group in groups:
        wrong += _unsettled_group(scene, monitor, story, group, pools)
    subjects: list[ResourcePool | WorkerGroup] = [*listed, *groups]
    return wrong + [f"{subject.name}: {why}" for subject in subjects if (why := misjudged(subject))]


def _unsettled_pool(scene: Scene, monitor: Monitor, story: Story, pool: ResourcePool) -> list[str]:
    if story.pools[pool.name].is_suspended:
        return _unsuspended(pool, _pods_left(scene, story, pool))
    broken = story.pools[pool.name].broken
    ready, up_to_date = condition_of(pool), condition_of(pool, ConditionType.UP_TO_DATE)
    says = f"pool {pool.name} ({broken or 'healthy'}) says {ready}"
    if ready is None or ready.observed_generation != pool.generation:
        return [f"{says}, not of generation {pool.generation}"]
    if ready.status == "True":
        untrue = contradiction(scene.world, pool, monitor.cluster_of(pool)) or old_pods(scene.world, pool)
        untrue = untrue or _misses_drivers(scene, pool, monitor.cluster_of(pool))
        is_held_up = up_to_date is not None and up_to_date.reason == Reason.SHRINKING
        if broken is None and not is_held_up and (up_to_date is None or up_to_date.status != "True"):
            return [f"{says}, and after a restart {up_to_date}"]
        stale = broken and (up_to_date is None or up_to_date.status != "False")
        return [f"{says}: {untrue}"] if untrue else [f"{says}, {up_to_date}"] if stale else _of_other_size(scene, pool)
    if broken is None:
        return [says]
    word = BROKEN[broken][1]
    is_leaving = any("deletionTimestamp" in pod["metadata"] for pod in _worker_pods(scene, pool))
    return [] if word in ready.message or is_leaving else [f"{says}, without a word of {word!r}"]


def _of_other_size(scene: Scene, pool: ResourcePool) -> list[str]:
    """Return why a pool that is ready has not the size that it must have now."""
    size, pods = pool.status.nodes, len(_worker_pods(scene, pool))
    if size == pods == pool.spec.nodes or (size == pods and pool.status.victims):
        return []
    return [f"pool {pool.name} has {pods} pods and status.nodes {size}, not {pool.spec.nodes}: {condition_of(pool)}"]


def _misses_drivers(scene: Scene, pool: ResourcePool, cluster: str | None) -> str | None:
    """Return why what a ready pool says of its drivers is wrong; None if it is right."""
    gcs = scene.world.gcs.get(cluster) if cluster else None
    connected = tuple(sorted(gcs.drivers)) if gcs else ()
    said = pool.status.drivers
    if said is None or (said.running, said.jobs) != (len(connected), connected):
        return f"its drivers are {connected}, and it says {said}"
    has_had_one = connected or (gcs is not None and gcs.last_driver_end is not None)
    return "a driver has connected, and it misses one" if has_had_one and said.lost else None


def _pods_left(scene: Scene, story: Story, pool: ResourcePool) -> list[str]:
    """Return the pods that a suspended pool still has; also head and agent, if no pool of its cluster needs them."""
    cluster = [name for name in story.pools if story.clusters[name] == pool.cluster]
    pods = _worker_pods(scene, pool)
    if all(story.pools[name].is_suspended for name in cluster):
        pods = [pod for each in Component for pod in scene.world.pods(pool.cluster, each)]
    return [pod["metadata"]["name"] for pod in pods]


def _unsuspended(subject: ResourcePool | WorkerGroup, left: Collection[object]) -> list[str]:
    """Return what a suspended object still has, or does not say."""
    ready, suspended = condition_of(subject), condition_of(subject, ConditionType.SUSPENDED)
    says = f"{subject.name} is suspended and says {ready}, {suspended}"
    # A run that has ended stays Complete, as a Job does.
    expected = Reason.COMPLETE if isinstance(subject, WorkerGroup) and is_complete(subject) else Reason.SUSPENDED
    if ready is None or (ready.reason, ready.observed_generation) != (expected, subject.generation):
        return [says]
    is_said = suspended is not None and suspended.status == "True"
    return [f"{says}, and has {left}"] if left or not is_said else []


def _worker_pods(scene: Scene, pool: ResourcePool) -> list[Manifest]:
    name = node_group(pool.name, pool.uid)
    return [
        pod
        for pod in scene.world.machines.pods.values()
        if pod["metadata"].get("labels", {}).get("ray.io/group") == name and not is_foreign(pod)
    ]


def _unsettled_group(
    scene: Scene, monitor: Monitor, story: Story, group: WorkerGroup, pools: Mapping[str, ResourcePool]
) -> list[str]:
    ready, cluster, status = condition_of(group), monitor.cluster_of(group), group.status
    says = f"group {group.name} says {ready}"
    if story.groups[group.name].is_suspended:
        untrue = contradiction(scene.world, group, cluster) if is_complete(group) else None
        return [f"{says}, but {untrue}"] if untrue else _unsuspended(group, _live_ranks(scene, group, cluster))
    if ready is None or ready.observed_generation != group.generation:
        return [f"{says}, not of generation {group.generation}"]
    if is_complete(group):
        untrue = contradiction(scene.world, group, cluster)
        left = _live_ranks(scene, group, cluster)
        return [f"{says}, but {untrue or left}"] if untrue or left else []
    why_not = _why_not_ready(scene, story, group, pools, cluster)
    if ready.status != "True":
        return [] if why_not else [says]
    up_to_date = condition_of(group, ConditionType.UP_TO_DATE)
    if why_not == CODE_IS_MISSING and up_to_date is not None and up_to_date.reason == Reason.CODE_MISSING:
        untrue = contradiction(scene.world, group, cluster)  # the ranks that ran before keep running
        return [f"{says}: {untrue}"] if untrue else []
    has_all_pools = all(pool in pools and says_true(pools[pool]) for pool in story.groups[group.name].pools)
    if why_not and has_all_pools:
        return [f"{says}, but {why_not}"]
    untrue = contradiction(scene.world, group, cluster) or outdated(scene.world, group, cluster, monitor.code_of(group))
    if untrue:
        return [f"{says}: {untrue}"]
    paused = _paused(scene, group, cluster)
    if status.ranks is None or status.ranks.paused != paused:
        return [f"{says}, but ranks {paused!r} are paused: {status.ranks}"]
    # Users restart such groups at the end. A pool that is not ready may still be growing.
    is_kept = up_to_date is not None and up_to_date.reason == Reason.OLD_SIZE
    may_be_kept = not has_all_pools or group.spec.resize is Resize.NEVER
    is_up_to_date = says_true(group, ConditionType.UP_TO_DATE) or (is_kept and may_be_kept)
    is_whole = status.ready_ranks == status.world_size and is_up_to_date
    return [] if is_whole else [f"{says}, but its status is {status.to_json()}"]


def _live_ranks(scene: Scene, group: WorkerGroup, cluster: str | None) -> list[str]:
    """Return the ranks of the group that live, of any incarnation."""
    gcs = scene.world.gcs.get(cluster) if cluster else None
    return [str(rank.name) for rank in gcs.ranks_of(group.uid).values() if rank.is_alive] if gcs else []


def _paused(scene: Scene, group: WorkerGroup, cluster: str | None) -> str:
    """Return the ranks that wait for a debugger, as a status lists them."""
    gcs = scene.world.gcs.get(cluster) if cluster else None
    ranks = gcs.ranks_of(group.uid, group.status.incarnation) if gcs else {}
    return ranges(number for number, rank in ranks.items() if gcs and rank.is_alive and str(rank.name) in gcs.pauses)


def _why_not_ready(
    scene: Scene, story: Story, group: WorkerGroup, pools: Mapping[str, ResourcePool], cluster: str | None
) -> str | None:
    """Return why a group is not ready, if it cannot be."""
    for pool in story.groups[group.name].pools:
        if pool not in pools or not says_true(pools[pool]):
            return f"its pool {pool} is not ready"
    pools_reason = condition_of(group, ConditionType.POOLS_READY)
    if pools_reason is not None and pools_reason.reason == Reason.BUNDLES_OUTSIDE_POOL:
        ends = [ref.bundles.start + ref.bundles.count for ref in group.pools if ref.bundles]
        return "its pool is too small" if max(ends, default=0) > pools[group.pools[0].name].world_size else None
    if failing := story.groups[group.name].failing:
        return f"its class is {failing}"
    written = story.groups[group.name].spec
    if written.get("code") and written["code"]["configMap"]["name"] not in story.code:
        return CODE_IS_MISSING
    gcs = scene.world.gcs.get(cluster) if cluster else None
    ranks = gcs.ranks_of(group.uid, group.status.incarnation) if gcs else {}
    dead = sorted(number for number, rank in ranks.items() if gcs and (not rank.is_alive or gcs.has_raised(rank)))
    return f"its ranks {dead} are dead" if dead and _is_given_up(group) else None


def _is_given_up(group: WorkerGroup) -> bool:
    """Return whether the group's policy leaves failed ranks as they are."""
    policy, history = group.spec.failure_policy, group.status.restarts
    spent = len(history.recent) if history else 0
    return policy.restart is Restart.NEVER or spent >= policy.max_restarts


async def stuck_groups(api: Api, namespace: str) -> set[str]:
    """Return the groups that have other bundles than new ones would have.

    Their pools are not ready, or their code is missing, so that they keep an earlier size; or they are complete.
    """
    pools = {body["metadata"]["name"]: body for body in await api.list(RESOURCE_POOL, namespace)}
    ready = {name for name, body in pools.items() if says_true(ResourcePool.model_validate(body))}
    groups = [WorkerGroup.model_validate(body) for body in await api.list(WORKER_GROUP, namespace)]
    return {
        group.name
        for group in groups
        if not {ref.name for ref in group.pools} <= ready
        or condition_of(group, ConditionType.UP_TO_DATE) is None
        or not says_true(group, ConditionType.UP_TO_DATE)
        or is_complete(group)
    }


async def children(
    api: Api, namespace: str, broken: Collection[str] = (), stuck: Collection[str] = ()
) -> dict[str, Any]:
    """Return what the operator created, without what differs between two lives of the same object.

    Pools with a broken template keep their earlier pods, so their worker groups are not compared; nor are the bundles
    of groups that are stuck on an earlier size of a pool.
    """
    pools = await api.list(RESOURCE_POOL, namespace)
    groups = await api.list(WORKER_GROUP, namespace)
    found = {}
    for kind in CHILD_KINDS:
        for body in await api.list(kind, namespace, labelSelector=CLUSTER_LABEL):
            # A pool that was created as suspended has never had an agent.
            if not (kind is kinds.DEPLOYMENT and body["spec"]["replicas"] == 0):
                found[f"{kind.kind}/{body['metadata']['name']}"] = _plain(kind, body, broken, stuck)
    text = json.dumps(found, sort_keys=True).replace(namespace, "NAMESPACE")
    for body in [*pools, *groups]:
        metadata = body["metadata"]
        text = text.replace(metadata["uid"], f"UID-{metadata['name']}")
        text = text.replace(f"{metadata['name']}-{metadata['uid'][:8]}", f"{metadata['name']}-UID")
    result: dict[str, Any] = json.loads(text)
    return result


# The head's image is that of the pool that was the oldest when the head was last restarted. The doubts are those of an
# agent, which may have been stopped since, with all pools suspended.
_LIVES = {
    DOUBTS_ANNOTATION,
    MANIFEST_ANNOTATION,
    TOKEN_ANNOTATION,
    HEAD_ANNOTATION,
    HEAD_IMAGE_ANNOTATION,
    REPLACED_HEAD_ANNOTATION,
    ROLL_ANNOTATION,
    SESSION_ANNOTATION,
    "deployment.kubernetes.io/revision",
}


def _plain(kind: Kind, body: Manifest, broken: Collection[str], stuck: Collection[str]) -> Any:
    metadata = body["metadata"]
    result: dict[str, Any] = {
        "labels": metadata.get("labels"),
        "annotations": {key: value for key, value in metadata.get("annotations", {}).items() if key not in _LIVES},
        "owners": sorted(owner["name"] for owner in metadata.get("ownerReferences", ())),
    }
    match kind:
        case kinds.SECRET:
            result["keys"] = sorted(body.get("data", {}))
        case kinds.CONFIG_MAP:
            result["plan"] = _plain_plan(json.loads(body["data"]["plan.json"]), broken, stuck)
        case kinds.ROLE:
            result["rules"] = [rule | {"resourceNames": sorted(rule["resourceNames"])} for rule in body["rules"]]
        case kinds.ROLE_BINDING:
            result["subjects"] = [body["roleRef"], body["subjects"]]
        case kinds.NETWORK_POLICY:
            result["spec"] = body["spec"]
        case kinds.DEPLOYMENT:
            template = body["spec"]["template"]
            result["spec"] = _without_shape(template["spec"])
        case kinds.RAY_CLUSTER:
            spec = body["spec"]
            result["head"] = _without_shape(spec["headGroupSpec"])
            groups = {_pool_of(each): _without_lives(each) for each in spec.get("workerGroupSpecs") or ()}
            result["workers"] = {pool: each for pool, each in groups.items() if pool not in broken}
            result["rest"] = {k: v for k, v in spec.items() if k not in ("headGroupSpec", "workerGroupSpecs")}
    return result


def _pool_of(worker_group: Manifest) -> str:
    return re.sub("-[0-9a-f]{8}$", "", worker_group["groupName"])


def _plain_plan(plan: Any, broken: Collection[str], stuck: Collection[str]) -> Any:
    """Remove what depends on the agent (session, revision) or on the past (numbers).

    While the restart of a pool with a broken template stands still, nothing is checked on its nodes.
    """
    for group in plan.get("groups", ()):
        for key in (
            "incarnation",
            "session",
            "revision",
            "launchRevision",
            "restarts",
            "births",
            "cause",
            "isFinal",
            "run",
        ):
            group.pop(key, None)
        if group["name"] in stuck:
            group.pop("bundles")
    for pool in plan.get("pools", ()):
        for key in ("generation", "settled", "domains", *(["preflight"] if pool["name"] in broken else [])):
            pool.pop(key, None)
    return {key: sorted(value, key=str) if isinstance(value, list) else value for key, value in plan.items()}


def _without_shape(value: Any) -> Any:
    """Remove what the head has of the pool that was the oldest when the head was last restarted."""
    if isinstance(value, dict):
        return {key: _without_shape(item) for key, item in value.items() if key not in ("image", "annotations")}
    if isinstance(value, list):
        return [
            _without_shape(item) for item in value if not (isinstance(item, dict) and item.get("name") == SHAPED_ENV)
        ]
    return value


def _without_lives(worker_group: Manifest) -> Manifest:
    """Remove what differs between two lives of a pool from the template of its nodes.

    A group that only deletes pods has a template without metadata.
    """
    template = worker_group["template"]
    metadata = template.get("metadata", {})
    noted = {key: value for key, value in metadata.get("annotations", {}).items() if key not in _LIVES}
    return worker_group | {"template": template | {"metadata": metadata | {"annotations": noted}}}


def differences(one: Any, other: Any, path: str = "") -> Iterable[str]:
    """Return where two JSON values differ."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted(one.keys() | other.keys()):
            yield from differences(one.get(key), other.get(key), f"{path}/{key}")
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for index, (mine, theirs) in enumerate(zip(one, other, strict=True)):
            yield from differences(mine, theirs, f"{path}/{index}")
    elif one != other:
        yield f"{path}: {json.dumps(one)[:200]} instead of {json.dumps(other)[:200]}"


async def leftovers(scene: Scene) -> list[str]:
    """Return which objects of ours still exist after everything was deleted."""
    found = []
    for kind in (*CHILD_KINDS, POD, kinds.SERVICE):
        for body in await scene.api.list(kind, scene.namespace):
            labels = body["metadata"].get("labels", {})
            is_ours = CLUSTER_LABEL in labels or "ray.io/cluster" in labels
            if is_ours and not (kind is POD and is_foreign(body)):
                found.append(_whose(kind, body["metadata"]))
    return found


def _whose(kind: Kind, metadata: Manifest) -> str:
    """Return the object, its owners, and who wrote it last."""
    owners = [f"{owner['kind']} {owner['name']} {owner['uid'][:8]}" for owner in metadata.get("ownerReferences", ())]
    writers = [f"{field['manager']} at {field.get('time')}" for field in metadata.get("managedFields", ())]
    uid, deleted = metadata["uid"][:8], metadata.get("deletionTimestamp")
    return f"{kind.kind} {metadata['name']} {uid} of {owners} by {writers}, deleted {deleted}"
