"""The calls of actors' methods that have not returned, as Ray's control service (the GCS) knows them.

Ray's processes report once a second, from threads that need no lock of Python: a rank that holds the lock in C code is
reported like any other. The caller reports a call that its rank has not begun.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import Any

from ray.core.generated import gcs_service_pb2
from ray.core.generated.common_pb2 import TaskStatus, TaskType

DEADLINE_SECONDS = 10.0
MOST_CALLS = 10_000
_ENDED = (TaskStatus.FINISHED, TaskStatus.FAILED)
_NOT_SENT = (
    TaskStatus.PENDING_ARGS_AVAIL,
    TaskStatus.PENDING_NODE_ASSIGNMENT,
    TaskStatus.PENDING_OBJ_STORE_MEM_AVAIL,
    TaskStatus.PENDING_ARGS_FETCH,
    *_ENDED,
)
_SENT = (
    TaskStatus.SUBMITTED_TO_WORKER,
    TaskStatus.PENDING_ACTOR_TASK_ARGS_FETCH,
    TaskStatus.PENDING_ACTOR_TASK_ORDERING_OR_CONCURRENCY,
    TaskStatus.GETTING_AND_PINNING_ARGS,
)


@dataclass(frozen=True)
class CallInFlight:
    """A call of an actor's method that has not returned."""

    task_id: str
    actor_id: str
    method: str
    since: float
    """When it began, or was sent if it has not begun, in seconds since the epoch by the clock of the node there."""
    has_begun: bool


@dataclass
class Reading:
    """One reading of the calls in flight."""

    is_done: bool = False
    calls: list[CallInFlight] = field(default_factory=list)
    error: Exception | None = None
    seconds: float = 0.0
    """How long it took."""


class CallReader:
    """Reads the calls from one GCS, in a process that needs no raylet.

    The GCS goes through all events that it keeps, 100,000 by default, which takes up to a second. A separate
    thread waits for that, and the caller comes back for the result.
    """

    def __init__(self, address: str) -> None:
        self._address = address
        self._service: Any = None

    def begin(self) -> Reading:
        """Begin a reading. The caller begins no other one until it is done."""
        reading = Reading()
        threading.Thread(target=self._run, args=(reading,), name="calls", daemon=True).start()
        return reading

    def read(self) -> list[CallInFlight]:
        """Return the calls in flight. If very many have not begun, these are left out.

        Raises:
            Exception: The GCS does not answer in time.
        """
        events = self._ask(_NOT_SENT)
        if len(events) == MOST_CALLS:
            events = self._ask(_NOT_SENT + _SENT)
        return [_call(event) for event in events if event.task_info.type == TaskType.ACTOR_TASK]

    def events(self) -> list[Any]:
        """Return Ray's events of all tasks that have not ended, with those that are not sent yet.

        Raises:
            Exception: The GCS does not answer in time.
        """
        return [event for event in self._ask(_ENDED) if event.state_updates.state_ts_ns]

    def _run(self, reading: Reading) -> None:
        began = time.monotonic()
        try:
            reading.calls = self.read()
        except Exception as error:
            reading.error = error
        reading.seconds = time.monotonic() - began
        reading.is_done = True

    def _ask(self, excluded: tuple[int, ...]) -> list[Any]:
        """Return the events of tasks that are in none of these states."""
        filters = gcs_service_pb2.GetTaskEventsRequest.Filters
        differs = gcs_service_pb2.FilterPredicate.NOT_EQUAL
        states = [filters.StateFilter(state=TaskStatus.Name(state), predicate=differs) for state in excluded]
        request = gcs_service_pb2.GetTaskEventsRequest(limit=MOST_CALLS, filters=filters(state_filters=states))
        return list(self._connected().GetTaskEvents(request, timeout=DEADLINE_SECONDS).events_by_task)

    def _connected(self) -> Any:
        if self._service is None:
            # These take 8 MiB, which only processes that look at calls need.
            from ray._private.grpc_utils import init_grpc_channel
            from ray.core.generated.gcs_service_pb2_grpc import TaskInfoGcsServiceStub

            self._service = TaskInfoGcsServiceStub(init_grpc_channel(self._address))
        return self._service


def _call(event: Any) -> CallInFlight:
    reached = event.state_updates.state_ts_ns
    has_begun = TaskStatus.RUNNING in reached
    began = reached.get(TaskStatus.RUNNING if has_begun else TaskStatus.SUBMITTED_TO_WORKER, 0)
    return CallInFlight(
        task_id=event.task_id.hex(),
        actor_id=event.task_info.actor_id.hex(),
        method=event.task_info.name.rpartition(".")[2],
        since=began / 1e9,
        has_begun=has_begun,
    )
