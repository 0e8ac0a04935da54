"""What holds the devices of a pool, and whether anybody can use them, for the metrics."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from workergroups_api.resource_pool import ResourcePool
from workergroups_api.vocabulary import ConditionType, LaunchState, Word
from workergroups_operator.observed import has_ended, node_group_of
from workergroups_operator.status import pool as pools
from workergroups_operator.status.conclusion import StatusInputs, unvouched


class DeviceState(Word):
    """What holds a device of a pool. Whether a rank computes on it is not known here."""

    # No pod has it: the pool waits for its node, or is suspended.
    PENDING = "Pending"
    # A pod that is being deleted still has it, and perhaps ranks that save what they have.
    ENDING = "Ending"
    # A pod has it that has not joined Ray, or has no bundles yet.
    STARTING = "Starting"
    # It is reserved, and no group has it. Drivers without groups may use it.
    FREE = "Free"
    # A group has it whose ranks are being created, or are not all there.
    LAUNCHING = LaunchState.LAUNCHING.value
    # A ready group has it.
    READY = ConditionType.READY.value
    # The agent is away.
    UNKNOWN = "Unknown"


def device_states(pool: ResourcePool, inputs: StatusInputs, ready: Iterable[str]) -> Mapping[str, int]:
    """Return how many devices of a pool are in each state, given the names of the groups that are ready."""
    per_node, total = pool.spec.devices_per_node, pools.node_count(pool, inputs)
    if not per_node:
        return {}
    staying, pods = _on_nodes(pool, inputs)
    bundles: Counter[str] = Counter()
    placed: Sequence[int] = ()
    if pool.name in inputs.decisions.suspended_pools:
        nodes = {DeviceState.ENDING: pods}
    elif unvouched(pool, inputs) is not None:
        nodes = {DeviceState.UNKNOWN: staying, DeviceState.ENDING: pods - staying}
    else:
        placed = pools.placed_nodes(pool, inputs)[:total]
        bundles = Counter(_of_bundles(pool, placed, inputs, frozenset(ready)))
        held = max(len(placed), staying)
        nodes = {DeviceState.STARTING: held - len(placed), DeviceState.ENDING: max(0, pods - held)}
    nodes[DeviceState.PENDING] = max(0, total - len(placed) - sum(nodes.values()))
    counts = {state: number * pool.spec.accelerator.per_process for state, number in bundles.items()}
    counts |= {state: number * per_node for state, number in nodes.items()}
    return {state: number for state, number in counts.items() if number}


def _on_nodes(pool: ResourcePool, inputs: StatusInputs) -> tuple[int, int]:
    """Return how many pods of a pool have a node and its devices: those that are to stay, and all."""
    of_pool = inputs.observed.all_pods_of(node_group_of(pool))
    pods = [pod for pod in of_pool if pod["spec"].get("nodeName") and not has_ended(pod)]
    staying = sum("deletionTimestamp" not in pod["metadata"] for pod in pods)
    return min(staying, pools.node_count(pool, inputs)), len(pods)


def _of_bundles(
    pool: ResourcePool, nodes: Iterable[int], inputs: StatusInputs, ready: frozenset[str]
) -> Iterable[DeviceState]:
    """Return the state of each bundle on these nodes. Several groups may have the same one."""
    per_node = pool.spec.processes_per_node
    taken: dict[bool, set[int]] = {True: set(), False: set()}
    for name, incarnation in inputs.decisions.groups.incarnations.items():
        parts = (range(part.start, part.end) for part in incarnation.bundles if part.pool == pool.name)
        taken[name in ready].update(chain.from_iterable(parts))
    for bundle in chain.from_iterable(range(node * per_node, (node + 1) * per_node) for node in nodes):
        if bundle in taken[True]:
            yield DeviceState.READY
        else:
            yield DeviceState.LAUNCHING if bundle in taken[False] else DeviceState.FREE
