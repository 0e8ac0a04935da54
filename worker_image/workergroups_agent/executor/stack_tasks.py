"""The tasks that write the stacks of a group's ranks when one of its calls hangs: one on each node of the group.

The tasks ask from outside of the ranks' processes, which may hold Python's lock or be frozen.
"""

import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from workergroups.node_tasks import start_on_node
from workergroups.processes import stack_dump
from workergroups.stacks import flight_recorder
from workergroups.stacks.rank_stack import parse
from workergroups_agent.hang_records import HangName, HangRecords, write_stacks
from workergroups_agent.launch_state import GroupKey, key_of, ranks_of
from workergroups_agent.ray_state import RayState
from workergroups_api.plan import ClusterPlan, PlannedGroup

# Users can write to the GCS, and each request costs a process on each node.
PAUSE_SECONDS = 5.0


class StackTasks:
    """Starts the tasks, once for each hang that the observer has found."""

    def __init__(self, hang_records: HangRecords) -> None:
        self._records = hang_records
        self._asked: dict[GroupKey, tuple[HangName, float, list[Any]]] = {}

    def look(self, plan: ClusterPlan, state: RayState) -> None:
        """Start the tasks for hangs that are new."""
        groups = {key_of(group): group for group in plan.groups if group.hang_seconds is not None}
        if not groups:
            return
        self._asked = {key: asked for key, asked in self._asked.items() if key in groups}
        for name in self._records.hangs(groups):
            asked = self._asked.get(name.key)
            if asked is None or (asked[0] != name and time.monotonic() - asked[1] > PAUSE_SECONDS):
                self._asked[name.key] = name, time.monotonic(), self._ask(name, groups[name.key], state)

    def _ask(self, name: HangName, group: PlannedGroup, state: RayState) -> list[Any]:
        hang = self._records.read(name)
        if hang is None or hang.report is not None:
            return []
        on_node = defaultdict(list)
        for rank in ranks_of(group, state).values():
            if rank.is_alive and rank.node_id in state.nodes:
                on_node[rank.node_id].append(rank.actor_id)
        return [
            start_on_node(take_stacks, node_id, name.id, node_id, actor_ids, hang.method)
            for node_id, actor_ids in on_node.items()
        ]


def take_stacks(id_: str, node_id: str, actor_ids: list[str], method: str) -> None:
    """Write what these ranks do, which run on this node."""
    taken = time.time()
    with ThreadPoolExecutor() as threads:  # frozen ranks answer neither, so the time limits must not add up
        flights = threads.submit(flight_recorder.ask, actor_ids)
        texts = stack_dump.dump(actor_ids)
    stacks = {actor_id: parse(texts.get(actor_id, "its process is gone"), method) for actor_id in actor_ids}
    write_stacks(id_, node_id, taken, stacks, flights.result())
