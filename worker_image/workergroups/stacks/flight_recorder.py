"""Which collectives a rank has joined, by torch's flight recorder.

Torch records those of NCCL unless the user disables it, and those of gloo only if the user asks for it.

A rank answers from a thread of its own, which sleeps until another process of the node asks: the thread of the method
waits in the collective, without Python's lock. A rank that holds the lock, or is frozen, does not answer.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from io import FileIO
from typing import Any

from workergroups.node.own_processes import open_files

VARIABLES = ("TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE")
MAX_PROCESS_GROUPS = 64
MAX_NAME = 100
MAX_MEMBERS = 10_000
_FILE_NAME = "workergroups-flight-"
_ANSWER_SECONDS = 2.0
_POLL_SECONDS = 0.05
_MOST_BYTES = 1024 * 1024

_file: int | None = None


@dataclass(frozen=True)
class Joined:
    """The collectives of one process group that a rank has joined."""

    last: int
    """The number of the last one that the rank has joined, from 1; 0 for none."""
    completed: int
    """The number of the last one that has ended on the rank."""
    name: str
    """What the last one is, such as ``gloo:all_reduce``."""
    members: tuple[int, ...] = ()
    """The members of the process group, as torch numbers ranks; empty if torch does not say."""


@dataclass(frozen=True)
class Flight:
    """What the flight recorder of one rank says."""

    rank: int
    """The rank as torch numbers it."""
    joined: Mapping[str, Joined] = field(default_factory=dict)
    """By the name of the process group."""


def enable(actor_id: str) -> None:
    """Let other processes of this node ask for this actor's flight recorder, unless its variables disable it."""
    global _file
    if _file is not None or not hasattr(os, "memfd_create") or not _records():
        return
    wake, _never_closed = os.pipe()
    _file = os.memfd_create(f"{_FILE_NAME}{actor_id}:{wake}")
    threading.Thread(target=_answer, args=(wake, _file), name="workergroups-flight", daemon=True).start()


def ask(actor_ids: Collection[str]) -> dict[str, dict[str, Any]]:
    """Return what the flight recorders of these actors say that run on this node, as JSON; see `read`."""
    asked = {}
    for pid, path, name in open_files(_FILE_NAME):
        actor_id, _, wake = name.partition(":")
        if actor_id in actor_ids:
            try:
                file = FileIO(path, "r+")
                file.truncate(0)
                pipe = os.open(f"/proc/{pid}/fd/{int(wake)}", os.O_WRONLY | os.O_NONBLOCK)
                os.write(pipe, b"\n")
                os.close(pipe)
            except (OSError, ValueError):  # it ended, or does not read
                continue
            asked[actor_id] = file
    deadline = time.monotonic() + _ANSWER_SECONDS
    answers = {actor_id: _wait_for(file, deadline) for actor_id, file in asked.items()}
    return {actor_id: answer for actor_id, answer in answers.items() if answer is not None}


def read(answer: Any) -> Flight | None:
    """Return what a rank has answered; ``None`` if no rank of ours can have answered that."""
    try:
        return Flight(
            _number(answer["rank"]),
            {
                str(name)[:MAX_NAME]: Joined(
                    _number(joined["last"]),
                    _number(joined["completed"]),
                    str(joined["name"])[:MAX_NAME],
                    tuple(map(_number, joined["members"][:MAX_MEMBERS])),
                )
                for name, joined in list(answer["joined"].items())[:MAX_PROCESS_GROUPS]
            },
        )
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def _records() -> bool:
    """Return whether torch may record: it takes the first of the variables that is set."""
    value = next((os.environ[variable].strip() for variable in VARIABLES if variable in os.environ), None)
    return value is None or (value.isdecimal() and int(value[:9]) > 0)


def _answer(wake: int, file: int) -> None:
    """Answer each request."""
    while os.read(wake, 1):
        try:
            said = json.dumps(_recorded())
        except Exception as error:  # of any kind: other versions of torch may lack what we ask for
            said = json.dumps({"error": type(error).__name__})
        os.pwrite(file, said.encode("ascii") + b"\n", 0)


def _recorded() -> dict[str, Any] | None:
    """Return what this process's flight recorders say; ``None`` if the rank has no process group.

    Torch is not imported here: a rank that uses it has done so.
    """
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_initialized():
        return None
    torch = sys.modules["torch._C._distributed_c10d"]
    members = _members()
    joined: dict[str, dict[str, Any]] = {}
    for dump in ("_dump_fr_trace_json", "_dump_nccl_trace_json"):
        if hasattr(torch, dump):
            _add(json.loads(getattr(torch, dump)(True, False)), members, joined)
    waiting_first = sorted(joined.items(), key=lambda item: item[1]["completed"] >= item[1]["last"])
    return {"rank": distributed.get_rank(), "joined": dict(waiting_first[:MAX_PROCESS_GROUPS])}


def _add(trace: dict[str, Any], members: Mapping[str, list[int]], joined: dict[str, dict[str, Any]]) -> None:
    """Add what one recorder says: the number and the name of the last collective of each process group."""
    for entry in trace.get("entries", ()):
        number, description = map(str, entry["process_group"])
        status = trace.get("pg_status", {}).get(str(entry["pg_id"]), {})
        known = joined.setdefault(
            f"{number}:{description}",
            {
                "last": 0,
                "completed": int(status.get("last_completed_collective", 0)),
                "name": "",
                "members": members.get(number, []),
            },
        )
        if not entry["is_p2p"] and entry["collective_seq_id"] >= known["last"]:
            known |= {"last": entry["collective_seq_id"], "name": entry["profiling_name"][:MAX_NAME]}
    for known in joined.values():
        if known["completed"] >= known["last"]:
            known["members"] = []  # only who waits needs to say for whom, and there may be many


def _members() -> dict[str, list[int]]:
    """Return the members of each process group by its name, as far as this version of torch says."""
    world = getattr(sys.modules.get("torch.distributed.distributed_c10d"), "_world", None)
    names = getattr(world, "pg_names", {})
    return {str(names.get(group)): sorted(ranks) for group, ranks in getattr(world, "pg_group_ranks", {}).items()}


def _wait_for(file: FileIO, deadline: float) -> dict[str, Any] | None:
    with file:
        while True:
            text = os.pread(file.fileno(), _MOST_BYTES, 0)
            if text.endswith(b"\n"):
                break
            if time.monotonic() > deadline:
                return None
            time.sleep(_POLL_SECONDS)
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return answer if isinstance(answer, dict) and "rank" in answer else None


def _number(value: Any) -> int:
    if type(value) is not int or not -1 <= value < 1 << 53:
        raise ValueError(value)
    return value
