"""Records of Ray's GCS with fuzzed fields: actors, placement groups, nodes and keys, whose names users choose."""

import json
import random
import tempfile
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from time import process_time
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from ray.core.generated import gcs_pb2

from tests.fuzz import files
from tests.fuzz.case import Wrong
from tests.fuzz.files import LAUNCH, MEMORY, SESSION
from tests.fuzz.values import DATES, NUMBERS, any_json, as_json, text
from workergroups.announcements.runs import KV_NAMESPACE as RUNS
from workergroups.announcements.told_ends import KV_NAMESPACE as TOLD_ENDS
from workergroups.debugger.announced import KV_NAMESPACE as PAUSES
from workergroups.naming import NAMESPACE, NODE_GROUP_LABEL
from workergroups.node.memory_kills import KV_NAMESPACE as MEMORY_KILLS
from workergroups.ray_private.calls_in_flight import CallInFlight, Reading
from workergroups_agent.account import AccountReader
from workergroups_agent.executor.decide import decide
from workergroups_agent.hang_records import HANGS, STACKS, HangRecords
from workergroups_agent.launch_state import Launches
from workergroups_agent.observer.hangs import HangWatch
from workergroups_agent.observer.keep_previous_logs import PreviousLogKeeper
from workergroups_agent.observer.printed_lines import Tails
from workergroups_agent.observer.report import report
from workergroups_agent.observer.silent_ends import MemoryKills, ToldEnds
from workergroups_agent.orders import OrderReader
from workergroups_agent.preflight_records import NAMESPACE as PREFLIGHTS
from workergroups_agent.previous_logs import PreviousLogs
from workergroups_agent.read_ray import RayReader
from workergroups_api.plan import MAX_POOL_NODES, PlannedPreflight
from workergroups_api.run import RunStatus
from workergroups_api.vocabulary import Preflight, PreflightState
from workergroups_common.ranges import numbers, ranges

POOL = files.POOL.model_copy(update={"preflight": PlannedPreflight(level=Preflight.BASIC)})
GROUP = files.GROUP.model_copy(update={"hang_seconds": 10, "run": RunStatus(revision="r")})
PLAN = files.PLAN.model_copy(update={"pools": (POOL,), "groups": (GROUP,)})
# An id that actors, workers and nodes may have.
ACTOR = "aa"
LOOK_SECONDS = 3.0
# The reports must stay a file that the reporter reads, and statuses that etcd accepts.
MAX_REPORT_BYTES = 1_000_000
# Where a report names ranks or nodes, how many there can be.
_COUNTS = {
    "ready": GROUP.world_size,
    "failed": GROUP.world_size,
    "paused": GROUP.world_size,
    "ranks": GROUP.world_size,
    "suspects": GROUP.world_size,
    "reserved": POOL.nodes,
    "passed": POOL.nodes,
    "leaving": MAX_POOL_NODES,
}
RECORDS = (0, 1, 3, 20)
_NAMES: tuple[Callable[[random.Random], str], ...] = (
    lambda _: f"{GROUP.name}/{GROUP.uid}/1/0-of-1",
    lambda choices: f"{GROUP.name}/{GROUP.uid}/{_number(choices)}/{_number(choices)}-of-{_number(choices)}",
    lambda choices: f"{text(choices)}/{GROUP.uid}/1/0-of-1",
    lambda choices: f"{POOL.name}/{POOL.uid}/{_number(choices)}/{choices.choice(('aa', text(choices)))}",
    lambda choices: text(choices, 5000),
    lambda choices: "/".join(text(choices) for _ in range(choices.randint(2, 2000))),
    lambda choices: "-of-" * choices.choice((1, 2, 100_000)),
)


def check(choices: random.Random) -> str:
    """Observe a Ray that returns odd records, decide, and report on it, twice."""
    gcs = _OddGcs(choices)
    began = process_time()
    reader, account = RayReader(gcs), AccountReader(gcs)  # type: ignore[arg-type]
    kills, ends = MemoryKills(gcs), ToldEnds(gcs)  # type: ignore[arg-type]
    hangs = HangWatch(HangRecords(gcs), gcs)  # type: ignore[arg-type]
    with tempfile.TemporaryDirectory(prefix="fuzz-names-", dir=MEMORY) as name:
        keeper = PreviousLogKeeper(PreviousLogs(Path(name)), Tails())
        for _ in range(2):
            state = kills.explained(ends.explained(reader.look(checked=PLAN.checked_pools)))
            keeper.look(state)
            launches = Launches(prepared={GROUP.uid: LAUNCH})
            decide(PLAN, state, launches)
            heard, hung = account.look().about(PLAN), hangs.look(PLAN, state)
            reports = report(PLAN, state, {GROUP.uid: LAUNCH}, heard, keeper.last_words(), hung, hangs.oldest)
            _check_reports(reports.to_json())
            if reports.pools.keys() | reports.groups.keys() != {POOL.name, GROUP.name}:
                raise Wrong(f"reports on {sorted(reports.pools)} and {sorted(reports.groups)}")
    orders = OrderReader(gcs)  # type: ignore[arg-type]
    orders.plan()
    orders.launches([GROUP])
    if (took := process_time() - began) > LOOK_SECONDS:
        raise Wrong(f"two looks take {took:.1f} s")
    return "looked at a hang" if hung else "looked"


def _check_reports(said: Any) -> None:
    """Raise Wrong if a report is large, or names what cannot exist, or has what no status can hold."""
    if (size := len(json.dumps(said).encode("ascii"))) > MAX_REPORT_BYTES:
        raise Wrong(f"the reports have {size} bytes")
    for key, value in _values(said):
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise Wrong(f"{key} is {value}")
        if isinstance(value, str) and any(unicodedata.category(each) in ("Cc", "Cs") for each in value):
            raise Wrong(f"{key} is {str(value)[:100]!r}")
        if key in _COUNTS and value != ranges(numbers(value, _COUNTS[key])):
            raise Wrong(f"{key} is {str(value)[:100]!r}")
        if key == "rank" and not 0 <= value < GROUP.world_size:
            raise Wrong(f"there is no rank {value}")


def _values(said: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each text and number with the name of its field."""
    if isinstance(said, dict):
        for name, value in said.items():
            yield from _values(value, name)
    elif isinstance(said, list):
        for value in said:
            yield from _values(value, key)
    else:
        yield key, said


class _OddGcs:
    """Answers like a GCS into which users wrote anything."""

    session = SESSION
    address = "127.0.0.1:6379"

    def __init__(self, choices: random.Random) -> None:
        self._choices = choices
        self._records: dict[str, list[bytes]] = {
            "actors": [_actor(choices) for _ in range(choices.choice(RECORDS))],
            "placements": [_placement(choices) for _ in range(choices.choice(RECORDS))],
            "drivers": [_driver(choices) for _ in range(choices.choice(RECORDS))],
        }
        self._nodes = [_node(choices) for _ in range(choices.choice(RECORDS))]

    def check_session(self) -> None:
        """Accept the session, which never changes."""

    def nodes(self) -> list[gcs_pb2.GcsNodeInfo]:
        """Return nodes as Ray's client parses them."""
        return self._nodes

    def actors(self, state: str | None = None) -> list[bytes]:
        """Return records, in an arbitrary order."""
        return self._choices.sample(self._records["actors"], len(self._records["actors"]))

    def placement_groups(self) -> list[bytes]:
        """Return records."""
        return self._records["placements"]

    def drivers(self) -> list[bytes]:
        """Return records."""
        return self._records["drivers"]

    def keys(self, namespace: str) -> list[str]:
        """Return keys, among them those of the actors and of hangs."""
        odd = [_text_of_protobuf(text(self._choices)) for _ in range(self._choices.choice(RECORDS))]
        hangs = [f"{GROUP.uid}/1/{number}" for number in range(self._choices.choice((0, 1, 3)))]
        return [*odd, ACTOR, *(hangs if namespace == HANGS else ())]

    def get(self, namespace: str, key: str) -> bytes | None:
        """Return a value, whatever the key."""
        return _value(self._choices, namespace)

    def get_many(self, namespace: str, keys: Iterable[str]) -> dict[str, bytes]:
        """Return values of these keys."""
        return {key: _value(self._choices, namespace) or b"" for key in keys}

    def put(self, namespace: str, key: str, value: bytes) -> None:
        """Forget the value."""

    def delete(self, namespace: str, key: str) -> None:
        """Keep the value."""

    def worker_end(self, worker_id: str) -> float | None:
        """Return a time."""
        return self._choices.choice((None, 0.0, 1e9, -1e300))

    def begin(self) -> Reading:
        """Return calls in flight, as `CallReader` does, or a reading that never ends."""
        calls = [
            CallInFlight(
                text(self._choices), ACTOR, text(self._choices, 5000), self._choices.choice((0.0, 1e300)), begun
            )
            for begun in (True, False)
            for _ in range(self._choices.choice((0, 1, 3)))
        ]
        return Reading(is_done=self._choices.random() < 0.5, calls=calls)


def _value(choices: random.Random, namespace: str) -> bytes | None:
    chance = choices.random()
    if chance < 0.2:
        return None
    if chance < 0.4:
        return choices.randbytes(choices.choice((0, 1, 100, 20_000)))
    of_namespace: dict[str, Any] = {
        HANGS: _hang(choices),
        STACKS: _stacks(choices),
        PREFLIGHTS: _preflight(choices),
        PAUSES: _pause(choices),
        RUNS: {"step": choices.choice(("Begun", "Returned", "Raised")), "message": text(choices, 5000)},
        MEMORY_KILLS: [choices.choice(NUMBERS) for _ in range(choices.choice(RECORDS))],
        TOLD_ENDS: text(choices, 5000),
    }
    known: list[Any] = [
        PLAN.to_json(),
        LAUNCH.to_json(),
        {"attempt": "a", "state": "Failed", "message": text(choices)},
        {"executor": "e", "looks": choices.choice(NUMBERS), "account": choices.choice(NUMBERS)},
        {"launches": [{"uid": GROUP.uid, "incarnation": 1, "state": "LaunchFailed", "message": text(choices)}]},
    ]
    value = of_namespace.get(namespace, choices.choice(known)) if chance < 0.9 else any_json(choices)
    if isinstance(value, dict) and value and choices.random() < 0.5:
        value[choices.choice(list(value))] = any_json(choices)
    return as_json(value)


def _hang(choices: random.Random) -> dict[str, Any]:
    report = {
        "method": text(choices),
        "since": choices.choice((DATES[0], *DATES)),
        "ranks": _ranges(choices),
        "suspects": _ranges(choices),
        "message": text(choices, 5000),
        "birth": choices.choice((None, *NUMBERS)),
        "pod": text(choices, 5000),
    }
    return {
        "method": text(choices),
        "since": choices.choice((DATES[0], *DATES)),
        "calls": {text(choices): choices.choice((0, 0, 0, *NUMBERS)) for _ in range(choices.choice(RECORDS))},
        "birth": choices.choice((0, 0, 0, *NUMBERS)),
        "report": choices.choice((None, report)),
    }


def _ranges(choices: random.Random) -> str:
    return choices.choice(("0", "0", "0", "", "0-99999," * 1000, "4242-4250", "0,0", "1", text(choices, 5000)))


def _stacks(choices: random.Random) -> dict[str, Any]:
    frame = [text(choices), choices.choice(NUMBERS), text(choices)]
    joined = {"last": 2, "completed": 1, "name": text(choices), "members": [0, 1, choices.choice(NUMBERS)]}
    stack = {"doing": choices.choice(("Method", "Nothing", "?")), "frames": [frame], "methods": choices.choice(NUMBERS)}
    return {
        "taken": choices.choice((0.0, 1e300, -1.0)),
        "ranks": {ACTOR: stack},
        "flights": {ACTOR: {"rank": choices.choice((0, 7)), "joined": {text(choices): joined}}},
    }


def _preflight(choices: random.Random) -> dict[str, Any]:
    return {
        "attempt": "a",
        "level": choices.choice(list(Preflight)),
        "generation": choices.choice((None, *NUMBERS)),
        "state": choices.choice(list(PreflightState)),
        "message": text(choices, 1024),
        "asked": [ACTOR, text(choices)],
        "passed": [ACTOR, text(choices)],
    }


def _pause(choices: random.Random) -> dict[str, Any]:
    fields: dict[str, Any] = {"node_id": ACTOR, "file": text(choices), "line": 1, "function": "f", "directory": ""}
    return fields | {
        "error": "",
        "port": choices.choice((0, 70_000)),
        "since": choices.choice((0.0, 1e300, -1.0)),
        "is_attached": False,
    }


# Records.


def _actor(choices: random.Random) -> bytes:
    record = _filled(gcs_pb2.ActorTableData(), choices)
    record.name = _text_of_protobuf(choices.choice(_NAMES)(choices))
    record.ray_namespace = choices.choice((NAMESPACE, NAMESPACE, NAMESPACE, "x"))
    if choices.random() < 0.5:
        record.actor_id = record.address.node_id = bytes.fromhex(ACTOR)
        record.state, record.repr_name = gcs_pb2.ActorTableData.ALIVE, "rank"
    return _serialized(record, choices)


def _placement(choices: random.Random) -> bytes:
    record = _filled(gcs_pb2.PlacementGroupTableData(), choices)
    record.name = _text_of_protobuf(choices.choice(_NAMES)(choices))
    record.ray_namespace = choices.choice((NAMESPACE, NAMESPACE, NAMESPACE, "x"))
    return _serialized(record, choices)


def _driver(choices: random.Random) -> bytes:
    record = _filled(gcs_pb2.JobTableData(), choices)
    record.is_dead = choices.random() < 0.3
    record.config.ray_namespace = choices.choice((NAMESPACE, "_ray_internal_dashboard", "x"))
    record.config.metadata["job_submission_id"] = _text_of_protobuf(choices.choice(_NAMES)(choices))
    return _serialized(record, choices)


def _node(choices: random.Random) -> gcs_pb2.GcsNodeInfo:
    record = _filled(gcs_pb2.GcsNodeInfo(), choices)
    record.state = gcs_pb2.GcsNodeInfo.ALIVE if choices.random() < 0.7 else gcs_pb2.GcsNodeInfo.DEAD
    record.node_id = choices.choice((record.node_id, bytes.fromhex(ACTOR)))
    record.labels[NODE_GROUP_LABEL] = choices.choice((POOL.node_group, _text_of_protobuf(text(choices))))
    return record


def _serialized(record: Message, choices: random.Random) -> bytes:
    """Return the record, sometimes broken."""
    raw = bytearray(record.SerializeToString())
    if raw and choices.random() < 0.2:
        raw[choices.randrange(len(raw))] ^= 1 << choices.randrange(8)
    return bytes(raw)


def _filled(message: Any, choices: random.Random, depth: int = 3) -> Any:
    """Set fields of a record to odd values of their types."""
    for field in message.DESCRIPTOR.fields:
        if choices.random() < 0.5 or (field.message_type and (not depth or field.message_type.GetOptions().map_entry)):
            continue
        is_many = field.is_repeated
        if field.message_type:
            _filled(getattr(message, field.name).add() if is_many else getattr(message, field.name), choices, depth - 1)
        elif is_many:
            getattr(message, field.name).append(_field_value(field, choices))
        else:
            setattr(message, field.name, _field_value(field, choices))
    return message


def _field_value(field: FieldDescriptor, choices: random.Random) -> Any:
    match field.cpp_type:
        case FieldDescriptor.CPPTYPE_STRING if field.type == FieldDescriptor.TYPE_BYTES:
            return choices.choice((b"", b"\xaa", choices.randbytes(28), choices.randbytes(3000)))
        case FieldDescriptor.CPPTYPE_STRING:
            return _text_of_protobuf(text(choices, 5000))
        case FieldDescriptor.CPPTYPE_BOOL:
            return choices.random() < 0.5
        case FieldDescriptor.CPPTYPE_DOUBLE | FieldDescriptor.CPPTYPE_FLOAT:
            return choices.choice((0.0, -1.0, float("inf"), float("nan"), 1e30))
        case FieldDescriptor.CPPTYPE_ENUM:
            return choices.choice((*(value.number for value in field.enum_type.values), 99))
        case FieldDescriptor.CPPTYPE_INT32:
            return choices.choice((0, 1, -1, 2**31 - 1, -(2**31)))
        case FieldDescriptor.CPPTYPE_UINT32:
            return choices.choice((0, 1, 2**32 - 1))
        case FieldDescriptor.CPPTYPE_UINT64:
            return choices.choice((0, 1, 2**64 - 1))
    return choices.choice((0, 1, -1, 2**63 - 1, -(2**63)))


def _text_of_protobuf(value: str) -> str:
    """Replace half surrogate pairs, which protobuf rejects."""
    return value.encode(errors="replace").decode()


def _number(choices: random.Random) -> str:
    return choices.choice(("0", "1", "01", "-1", "9" * 20, "9" * 5000, "\u0661", "\u00b2", "1e3", "", str(2**63)))
