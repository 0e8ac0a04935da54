"""What observer and executor tell each other about calls that hang, in the GCS's key-value store.

The observer writes a record when a call has been in flight for too long. The executor then has the stacks of all ranks
of the group written: one record for each node. The observer concludes from these who is suspect.
"""

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import AwareDatetime, Field

from workergroups.ray_private import key_value_store
from workergroups.ray_private.gcs import Gcs
from workergroups.stacks import flight_recorder
from workergroups.stacks.flight_recorder import Flight
from workergroups.stacks.rank_stack import MAX_FRAMES, MAX_TEXT, Doing, Frame, RankStack
from workergroups_agent import records
from workergroups_agent.launch_state import GroupKey
from workergroups_api.model import ApiModel
from workergroups_api.report import HangReport
from workergroups_common.bounded_json import Limits

HANGS, STACKS = "workergroups-hangs", "workergroups-stacks"
MAX_ID = 64
HANG_LIMITS = Limits(size=4 * 1024 * 1024, depth=4, values=50_000)
# A node may have dozens of ranks, of MAX_FRAMES frames each, and process groups may have thousands of members.
STACKS_LIMITS = Limits(size=4 * 1024 * 1024, depth=8, values=400_000)

_Text = Annotated[str, Field(max_length=MAX_TEXT)]


class Hang(ApiModel):
    """A call that hangs."""

    method: _Text
    since: AwareDatetime
    # The rank of each call that hangs, by Ray's id of the call.
    calls: Mapping[str, int]
    # The latest restart of single ranks when it was found; 0 if there was none.
    birth: int = 0
    # What is reported of it; None until the stacks are known.
    report: HangReport | None = None


@dataclass(frozen=True)
class HangName:
    """The name of a hang's record: its group and incarnation, and an id."""

    key: GroupKey
    id: str

    def __str__(self) -> str:
        return f"{self.key[0]}/{self.key[1]}/{self.id}"

    @classmethod
    def parse(cls, text: str) -> "HangName | None":
        """Return the name; None if it is not of a hang."""
        uid, _, rest = text.partition("/")
        number, _, id_ = rest.partition("/")
        if not (number.isascii() and number.isdecimal() and len(number) < 10) or not 0 < len(id_) <= MAX_ID:
            return None
        return cls((uid, int(number)), id_)


class _StackRecord(ApiModel):
    doing: Doing
    frames: Annotated[tuple[tuple[_Text, int, _Text], ...], Field(max_length=MAX_FRAMES)] = ()
    methods: int = 0
    note: _Text = ""


class _NodeStacks(ApiModel):
    """What the ranks of a group do on one node, and what their flight recorders say, by actor id."""

    # When that was, in seconds since the epoch by the clock of the node.
    taken: float
    ranks: Mapping[str, _StackRecord]
    flights: Mapping[str, Any] = Field(default_factory=dict)


@dataclass(frozen=True)
class OnNode:
    """What ranks do, and what their flight recorders say if they have one, by actor id."""

    # When that was, in seconds since the epoch by the clock of the node.
    taken: float
    stacks: Mapping[str, RankStack]
    flights: Mapping[str, Flight]


class HangRecords:
    """The records, as observer and executor use them."""

    def __init__(self, gcs: Gcs) -> None:
        self._gcs = gcs

    def hangs(self, keys: Collection[GroupKey]) -> Iterator[HangName]:
        """Yield the hangs of these groups."""
        names = map(HangName.parse, self._gcs.keys(HANGS))
        return (name for name in names if name is not None and name.key in keys)

    def read(self, name: HangName) -> Hang | None:
        """Return a hang, None if there is none that can be read."""
        return records.read(Hang, self._gcs.get(HANGS, str(name)), HANG_LIMITS)

    def write(self, name: HangName, hang: Hang) -> None:
        """Write a hang, over what the name had before."""
        self._gcs.put(HANGS, str(name), records.dump(hang))

    def on_nodes(self, name: HangName, node_ids: Collection[str]) -> Mapping[str, "OnNode"]:
        """Return what the ranks do on those of these nodes that have answered."""
        found = self._gcs.get_many(STACKS, [f"{name.id}/{node_id}" for node_id in node_ids])
        known = {key.partition("/")[2]: records.read(_NodeStacks, data, STACKS_LIMITS) for key, data in found.items()}
        return {node_id: _on_node(record) for node_id, record in known.items() if record is not None}

    def remove_but(self, kept: Collection[HangName]) -> None:
        """Remove all hangs and stacks but those of these hangs, those of earlier observers included."""
        names = {str(name) for name in kept}
        ids = {name.id for name in kept}
        for found in self._gcs.keys(HANGS):
            if found not in names:
                self._gcs.delete(HANGS, found)
        for found in self._gcs.keys(STACKS):
            if found.partition("/")[0] not in ids:
                self._gcs.delete(STACKS, found)


def _on_node(record: _NodeStacks) -> OnNode:
    stacks = {
        actor_id: RankStack(stack.doing, tuple(Frame(*frame) for frame in stack.frames), stack.methods, stack.note)
        for actor_id, stack in record.ranks.items()
    }
    flights = {actor_id: flight_recorder.read(answer) for actor_id, answer in record.flights.items()}
    return OnNode(
        record.taken, stacks, {actor_id: flight for actor_id, flight in flights.items() if flight is not None}
    )


def write_stacks(
    id_: str, node_id: str, taken: float, stacks: Mapping[str, RankStack], flights: Mapping[str, Any]
) -> None:
    """Write what the ranks on this node did at that time, and the answers of flight recorders; called by a task."""
    ranks = {
        actor_id: {
            "doing": stack.doing,
            "frames": [(frame.file, frame.line, frame.function) for frame in stack.frames],
            "methods": stack.methods,
            "note": stack.note,
        }
        for actor_id, stack in stacks.items()
    }
    record = {"taken": taken, "ranks": ranks, "flights": flights}
    key_value_store.put(STACKS, f"{id_}/{node_id}", json.dumps(record).encode("ascii"))
