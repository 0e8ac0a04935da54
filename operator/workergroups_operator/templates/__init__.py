"""Step two: build the pod templates of a cluster, once in a reconcile; the later steps only read them. Pure.

Running pods get a change of their pool's spec only at a restart. Until then the RayCluster keeps the template that they
were created from, so that a pod that is lost comes back as the others are: ranks never run in mixed images. Pools that
are suspended have nothing to restart: they start again with their present spec.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

from workergroups_api.bounded_text import MAX_TERM
from workergroups_api.conditions import Explanation
from workergroups_api.launch import digest
from workergroups_api.manifest import RESOURCE_POOL, Manifest
from workergroups_api.names import ROLL_ANNOTATION
from workergroups_api.resource_pool import ResourcePool
from workergroups_api.roll_names import asked_roll
from workergroups_api.vocabulary import Component
from workergroups_api.worker_group import WorkerGroup
from workergroups_operator.observed import Observed, node_group_of
from workergroups_operator.policy.images import Images, as_asked, as_offered, images_of
from workergroups_operator.policy.queueing import is_held
from workergroups_operator.policy.refused_pools import refused_pools
from workergroups_operator.policy.roll import automatic_roll, following_roll, is_stuck
from workergroups_operator.policy.suspension import suspended_pools, terminating_pools
from workergroups_operator.settings import Settings
from workergroups_operator.templates.live import has_head_run, has_run, last_roll, live_head, live_nodes
from workergroups_operator.templates.pods import head_template, worker_template
from workergroups_operator.templates.stamp import changed_fields, digest_of, note, with_roll


@dataclass(frozen=True)
class Templates:
    """The pod templates of one cluster, and the images in them."""

    images: Images
    # Empty if the cluster has no pool.
    head: Manifest = field(default_factory=dict)
    # By the name of the pool's node group.
    workers: Mapping[str, Manifest] = field(default_factory=dict)
    # Why the RayCluster has no room for a pool, by node group: the operator need not ask the API server about its pods.
    too_large: Mapping[str, Explanation] = field(default_factory=dict)
    # Why rolls cannot begin for that reason, by node group.
    too_large_rolls: Mapping[str, Explanation] = field(default_factory=dict)
    # What the specs ask for now, which the pods get at the next restart.
    asked_head: Manifest = field(default_factory=dict)
    asked_workers: Mapping[str, Manifest] = field(default_factory=dict)
    # Why pools have no pods, by name; without those that are released in this reconcile.
    suspended: Mapping[str, Explanation] = field(default_factory=dict)
    # The node groups whose rolls begin now, and whether the present head must be replaced with one of them.
    beginning: frozenset[str] = frozenset()
    replaces_head: bool = False

    def of(self, pool: ResourcePool) -> Manifest:
        """Return the template of the pool's nodes."""
        return self.workers[node_group_of(pool)]

    def asked_of(self, pool: ResourcePool) -> Manifest:
        """Return the template that the pool's spec asks for."""
        return self.asked_workers[node_group_of(pool)]

    def roll(self, pool: ResourcePool) -> str | None:
        """Return the name of the pool's last roll; None if there was none. Each group's revision repeats it."""
        name = note(self.of(pool), ROLL_ANNOTATION)
        return None if name is None else name[:MAX_TERM]


def templates_of(observed: Observed, settings: Settings, blocked: Set[str] = frozenset()) -> Templates:
    """Return the templates of a cluster; the oldest pool shapes the head.

    `blocked` are node groups whose rolls cannot begin, since the API server refuses their new pods.
    """
    images, pools = images_of(observed, settings), observed.pools
    if not pools:
        return Templates(images)
    asked = {node_group_of(pool): _nodes_of(observed, pool, images) for pool in pools}
    asked_head = _head_of(observed, as_asked(images, pools[0]), pools[0])
    large = refused_pools(observed)
    suspended = suspended_pools(observed)
    running = _running(observed, suspended)
    kept_head, _ = _head(observed, images, as_asked(images, pools[0]), running, is_roll=False)
    is_head_old = digest_of(kept_head) != digest_of(asked_head)
    new_rolls = _new_rolls(observed, asked, asked_head, running, is_head_old=is_head_old)
    rolls = {name: roll for name, roll in new_rolls.items() if name not in blocked and name not in large}
    is_offered = bool(rolls) and _is_whole_cluster(observed)
    new_images = as_offered(images, pools[0]) if is_offered else as_asked(images, pools[0])
    is_roll = node_group_of(pools[0]) in rolls
    head, head_images = _head(observed, images, new_images, running, is_roll=is_roll)
    waiting = new_rolls.keys() - rolls.keys()
    workers = {
        name: _nodes(observed, pool, asked[name], new_images, rolls, waiting, has_run=pool.name in running)
        for pool in pools
        for name in [node_group_of(pool)]
    }
    before = live_head(observed)
    return Templates(
        images=head_images,
        head=head,
        workers=workers,
        too_large={name: why for name, why in large.items() if digest_of(workers[name]) == digest_of(asked[name])},
        too_large_rolls={name: large[name] for name in new_rolls if name in large},
        asked_head=asked_head,
        asked_workers=asked,
        suspended=suspended,
        beginning=frozenset(rolls),
        replaces_head=is_roll and (before is None or digest_of(before) != digest_of(head)),
    )


def alone(templates: Templates, observed: Observed, pool: ResourcePool) -> Templates:
    """Return the templates of the same cluster if it had no other pool."""
    return replace(
        templates,
        head=_head_of(observed, templates.images, pool),
        workers={node_group_of(pool): templates.of(pool)},
        too_large={},
    )


def _running(observed: Observed, suspended: Mapping[str, Explanation]) -> frozenset[str]:
    """Return the pools of which pods have run, and are not about to end because they are suspended."""
    resting = terminating_pools(observed, suspended)
    return frozenset(pool.name for pool in observed.pools if pool.name not in resting and has_run(observed, pool))


def _new_rolls(
    observed: Observed, asked: Mapping[str, Manifest], asked_head: Manifest, running: Set[str], *, is_head_old: bool
) -> dict[str, str]:
    """Return the names of the rolls that should begin now, by node group.

    A pool of which no pod runs has nothing to restart except the head, if it shapes that. No roll begins while a queue
    runs the RayCluster as it was admitted, since the operator may not write it.
    """
    found: dict[str, str] = {}
    if is_held(observed):
        return found
    for pool in observed.pools:
        last = last_roll(observed, pool)
        changed = _changed_spec(observed, pool, asked[node_group_of(pool)], asked_head)
        roll = asked_roll(pool.metadata, last)
        if roll is None and changed is not None and pool.name in running:
            roll = automatic_roll(pool, last, changed, _interrupted(observed, pool))
            if roll is None and _is_stuck(observed, pool, last):
                roll = following_roll(last, changed)
        is_due = pool.name in running or (is_head_old and pool is observed.pools[0])
        if roll is not None and is_due:
            found[node_group_of(pool)] = roll
    return found


def _is_stuck(observed: Observed, pool: ResourcePool, last: str | None) -> bool:
    heads = observed.pods_of(Component.HEAD) if pool is observed.pools[0] else []
    return is_stuck(observed.pods_of(Component.WORKER, node_group_of(pool)), heads, last)


def _changed_spec(observed: Observed, pool: ResourcePool, asked: Manifest, asked_head: Manifest) -> str | None:
    """Return a digest of the templates that a pool asks for; None if no field of its spec has changed them."""
    pairs = [(live_nodes(observed, pool), asked)]
    if pool is observed.pools[0]:
        pairs.append((live_head(observed), asked_head))
    is_changed = any(live and digest_of(live) != digest_of(new) and changed_fields(live, new) for live, new in pairs)
    return digest([digest_of(new) for _, new in pairs]) if is_changed else None


def _interrupted(observed: Observed, pool: ResourcePool) -> Sequence[WorkerGroup]:
    """Return the groups that a roll of the pool may interrupt: if it shapes the head, those of the whole cluster."""
    is_oldest = pool is observed.pools[0]
    return observed.groups if is_oldest else observed.groups_on.get(pool.name, ())


def _nodes(
    observed: Observed,
    pool: ResourcePool,
    asked: Manifest,
    new_images: Images,
    rolls: Mapping[str, str],
    waiting: Set[str],
    *,
    has_run: bool,
) -> Manifest:
    """Return the template of a pool's nodes: what the spec asks for, or what the running pods were created from.

    `rolls` begin now, and `waiting` are the node groups whose rolls cannot begin yet.
    """
    name, last, live = node_group_of(pool), last_roll(observed, pool), live_nodes(observed, pool)
    if name in rolls:
        return with_roll(_nodes_of(observed, pool, new_images), rolls[name])
    if not has_run and not is_held(observed):
        is_done = name not in waiting
        return with_roll(asked, (asked_roll(pool.metadata, last) if is_done else None) or last)
    # Without a live template, it was changed: all that is known is what the spec asks for.
    return with_roll(asked, last) if live is None or digest_of(live) == digest_of(asked) else live


def _head(
    observed: Observed, images: Images, new_images: Images, running: Set[str], *, is_roll: bool
) -> tuple[Manifest, Images]:
    """Return the head's template and its images: what the oldest pool asks for, or what the running head has."""
    oldest, live = observed.pools[0], live_head(observed)
    if is_roll or not (running or has_head_run(observed)):
        return _head_of(observed, new_images, oldest), new_images
    kept = _head_of(observed, images, oldest)
    # As for nodes; a head that an earlier version of the operator created has no digest.
    return (kept if live is None or digest_of(live) == digest_of(kept) else live), images


def _nodes_of(observed: Observed, pool: ResourcePool, images: Images) -> Manifest:
    """Return what a pool asks for its nodes, on this cluster."""
    return worker_template(observed.key, pool, images, observed.restricted, observed.uses_tls)


def _head_of(observed: Observed, images: Images, oldest: ResourcePool) -> Manifest:
    """Return what the oldest pool asks for the head, on this cluster."""
    return head_template(observed.key, images, oldest, observed.restricted, observed.uses_tls)


def _is_whole_cluster(observed: Observed) -> bool:
    """Return whether the cluster has one pool, so that a restart of the pool may change what all pods share."""
    return len(observed.pools) == 1 and not any(odd.kind is RESOURCE_POOL for odd in observed.unreadable)
