"""Events about pools and groups, which `kubectl describe` and `kubectl get events` show."""

import asyncio
import logging
import os
import uuid
from collections import Counter
from datetime import UTC, datetime

from kubernetes.aio.dynamic.exceptions import ConflictError

from workergroups_api.conditions import Explanation
from workergroups_api.manifest import EVENT, Kind, Manifest
from workergroups_common.rotation import Rotation
from workergroups_kube import Kube, api_error_message

LOGGER = logging.getLogger(__name__)
CONTROLLER = "workergroups.dev/operator"
# How many events the operator creates at once, and those of one namespace.
_AT_ONCE, _NAMESPACE_AT_ONCE = 32, 4
# How many exist at most, these included; more are dropped, since each takes memory.
_MOST, NAMESPACE_MOST = 1000, 200
# For how long an operator that stops waits for them, in seconds.
_LAST_SECONDS = 1.0


class Events:
    """Creates events apart from reconciles: admission may delay each by seconds, and no status waits for an event."""

    def __init__(self, client: Kube) -> None:
        self._client = client
        self._slots = Rotation(_AT_ONCE, _NAMESPACE_AT_ONCE)
        # By namespace and the event's name.
        self._tasks: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._of_namespace: Counter[str] = Counter()

    def tell(self, told: Manifest) -> None:
        """Create the event soon, unless it waits already, or too many others do."""
        key = namespace, name = told["metadata"]["namespace"], told["metadata"]["name"]
        if key in self._tasks:
            return
        if len(self._tasks) >= _MOST or self._of_namespace[namespace] >= NAMESPACE_MOST:
            LOGGER.warning("no event for %s/%s: too many others wait", namespace, told["regarding"]["name"])
            return
        self._of_namespace[namespace] += 1
        self._tasks[key] = asyncio.create_task(self._create(told), name=f"event {name}")
        self._tasks[key].add_done_callback(lambda _: self._ended(key))

    async def close(self) -> None:
        """Wait for the events for a moment, then cancel those that are left."""
        tasks = list(self._tasks.values())
        if tasks:
            await asyncio.wait(tasks, timeout=_LAST_SECONDS)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _create(self, told: Manifest) -> None:
        async with self._slots.slot(told["metadata"]["namespace"]):
            await create_event(self._client, told)

    def _ended(self, key: tuple[str, str]) -> None:
        namespace, _ = key
        del self._tasks[key]
        self._of_namespace[namespace] -= 1
        if not self._of_namespace[namespace]:
            del self._of_namespace[namespace]


def object_event(
    kind: Kind, metadata: Manifest, type_: str, why: Explanation, now: datetime, suffix: str | None = None
) -> Manifest:
    """Return an event about an object: Normal or Warning, with a new name unless there is a suffix."""
    suffix = suffix or uuid.uuid4().hex[:16]
    name, namespace = metadata["name"], metadata["namespace"]
    return EVENT.manifest(
        {"name": f"{name}.{suffix}", "namespace": namespace},
        eventTime=now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        type=type_,
        reason=why.reason,
        note=why.message[:1024],
        action="Reconcile",
        reportingController=CONTROLLER,
        reportingInstance=os.environ.get("HOSTNAME", "operator"),
        regarding=kind.reference(name, metadata["uid"], namespace=namespace),
    )


async def create_event(client: Kube, told: Manifest) -> None:
    """Create the event. If that fails, nothing else does."""
    try:
        await client.create(told)
    except ConflictError:
        return  # The event exists.
    except Exception as error:
        LOGGER.warning("no event for %s: %s", told["regarding"]["name"], api_error_message(error))
