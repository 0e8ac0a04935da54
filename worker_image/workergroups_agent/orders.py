"""Orders from the observer to the executor: the plan, and what each group is launched from, in the GCS's store."""

import uuid
from collections.abc import Collection, Iterable, Mapping

from workergroups.ray_private.gcs import Gcs
from workergroups_agent import records
from workergroups_agent.exchange import PreparedLaunch
from workergroups_api.plan import ClusterPlan, PlannedGroup
from workergroups_common.bounded_json import Limits

NAMESPACE = "workergroups-orders"
# A plan fits into a ConfigMap. A launch holds a WorkerGroup and its ConfigMap, whose characters JSON may escape.
PLAN_LIMITS = Limits(size=4 * 1024 * 1024, depth=16, values=400_000)
LAUNCH_LIMITS = Limits(size=16 * 1024 * 1024, depth=400, values=1_000_000)

_STAMP, _PLAN, _LAUNCH = "stamp", "plan", "launch/"


class OrderSender:
    """Writes the orders; the observer's side."""

    def __init__(self, gcs: Gcs) -> None:
        self._gcs = gcs
        # The UIDs whose launches are in the store, those of earlier observers included.
        self._sent = {name.removeprefix(_LAUNCH) for name in gcs.keys(NAMESPACE) if name.startswith(_LAUNCH)}

    def send_launch(self, launch: PreparedLaunch) -> None:
        """Write what a group is launched from; call this before `send_plan`."""
        self._gcs.put(NAMESPACE, _LAUNCH + launch.uid, records.dump(launch))
        self._sent.add(launch.uid)

    def send_plan(self, plan: ClusterPlan) -> str:
        """Write what should exist; return the stamp of these orders."""
        stamp = uuid.uuid4().hex
        self._gcs.put(NAMESPACE, _PLAN, records.dump(plan))
        self._gcs.put(NAMESPACE, _STAMP, stamp.encode())
        return stamp

    def remove_launches_but(self, uids: Collection[str]) -> None:
        """Keep the launches of these groups only."""
        for uid in self._sent.difference(uids):
            self._gcs.delete(NAMESPACE, _LAUNCH + uid)
        self._sent.intersection_update(uids)


class OrderReader:
    """Reads the orders again when their stamp has changed; the executor's side."""

    def __init__(self, gcs: Gcs) -> None:
        self._gcs = gcs
        self.stamp: str | None = None
        self._plan: ClusterPlan | None = None
        self._launches: dict[str, PreparedLaunch | None] = {}

    def has_news(self) -> bool:
        """Return whether there are unread orders."""
        return self._latest_stamp() not in (None, self.stamp)

    def plan(self) -> ClusterPlan | None:
        """Return what should exist, None before the first order. An unreadable plan is ignored."""
        stamp = self._latest_stamp()
        if stamp is not None and stamp != self.stamp:
            self._plan = records.read(ClusterPlan, self._gcs.get(NAMESPACE, _PLAN), PLAN_LIMITS) or self._plan
            self._launches = {uid: launch for uid, launch in self._launches.items() if launch is not None}
            self.stamp = stamp
        return self._plan

    def launches(self, groups: Iterable[PlannedGroup]) -> Mapping[str, PreparedLaunch]:
        """Return what these groups are launched from, by UID; drop all others from memory."""
        self._launches = {group.uid: self._launch(group) for group in groups}
        return {uid: launch for uid, launch in self._launches.items() if launch is not None}

    def _launch(self, group: PlannedGroup) -> PreparedLaunch | None:
        known = self._launches.get(group.uid)
        if group.uid in self._launches and (known is None or known.revision == group.launch_revision):
            return known
        found = records.read(PreparedLaunch, self._gcs.get(NAMESPACE, _LAUNCH + group.uid), LAUNCH_LIMITS)
        return found if found is not None and found.uid == group.uid else None

    def _latest_stamp(self) -> str | None:
        data = self._gcs.get(NAMESPACE, _STAMP)
        return None if data is None else data[:64].decode(errors="replace")
