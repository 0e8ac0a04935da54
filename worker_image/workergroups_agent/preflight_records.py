"""How the checks of pools' nodes went, in the GCS's key-value store: a record for each pool, by the pool's UID.

The executor writes that a check has begun; the task that asks the nodes writes the result. So the result survives
executor and observer, and the next check asks only nodes that have not passed.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Annotated, Any

from pydantic import Field

from workergroups.ray_private.gcs import Gcs
from workergroups_agent import records
from workergroups_api.model import ApiModel
from workergroups_api.vocabulary import Preflight, PreflightState
from workergroups_common.bounded_json import Limits

NAMESPACE = "workergroups-preflights"
MAX_MESSAGE = 1024
# A pool has 512 nodes at most, whose ids have 56 characters.
LIMITS = Limits(size=1024 * 1024, depth=8, values=20_000)


class PreflightRecord(ApiModel):
    """The latest check of a pool's nodes."""

    attempt: Annotated[str, Field(max_length=64)]
    level: Preflight
    # The generation of the spec that the nodes were compared with.
    generation: int | None = None
    state: PreflightState
    message: Annotated[str, Field(max_length=MAX_MESSAGE)] = ""
    # The Ray nodes that were asked.
    asked: tuple[str, ...] = ()
    # All Ray nodes that have passed, in this check or an earlier one.
    passed: tuple[str, ...] = ()
    # The answer of one of them, by its id: nodes that join later must have the same versions.
    like: Mapping[str, Any] = Field(default_factory=dict)

    def passed_at(self, level: Preflight) -> frozenset[str]:
        """Return the nodes that have passed this check, or a stricter one."""
        return frozenset(self.passed if self.level in (level, Preflight.FABRIC) else ())


class PreflightReader:
    """Reads the records; those that have not changed are not parsed again."""

    def __init__(self, gcs: Gcs) -> None:
        self._gcs = gcs
        self._known: dict[str, tuple[bytes, PreflightRecord | None]] = {}

    def read(self, uids: Iterable[str]) -> dict[str, PreflightRecord]:
        """Return the records of these pools."""
        known, self._known = self._known, {}
        for uid, data in sorted(self._gcs.get_many(NAMESPACE, uids).items()):
            before = known.get(uid)
            is_same = before is not None and before[0] == data
            self._known[uid] = before if before and is_same else (data, records.read(PreflightRecord, data, LIMITS))
        return {uid: record for uid, (_, record) in self._known.items() if record is not None}


def write(gcs: Gcs, uid: str, record: PreflightRecord) -> None:
    """Write the record of a pool over the one before."""
    gcs.put(NAMESPACE, uid, records.dump(record))


def remove_but(gcs: Gcs, uids: Collection[str]) -> None:
    """Keep the records of these pools only."""
    for uid in set(gcs.keys(NAMESPACE)).difference(uids):
        gcs.delete(NAMESPACE, uid)
