"""Events about pools and groups, which `kubectl describe` and `kubectl get events` show."""

import asyncio
import logging
import os
import uuid
from datetime import UTC, datetime

from kubernetes.aio.dynamic.exceptions import ConflictError

from workergroups_api.conditions import Explanation
from workergroups_api.manifest import Kind, Manifest
from workergroups_kube import Kube, api_error_message

LOGGER = logging.getLogger(__name__)
CONTROLLER = "workergroups.dev/operator"
# Of one namespace: how many events the operator creates at once, and how many wait at most, these included.
_AT_ONCE = 4
MOST_WAITING = 200


class Events:
    """Creates events beside the reconciles, since admission may delay each by seconds: no status waits for an event."""

    def __init__(self, client: Kube) -> None:
        self._client = client
        # By namespace: its slots, and what waits for one or has one, by the event's name.
        self._namespaces: dict[str, tuple[asyncio.Semaphore, dict[str, asyncio.Task[None]]]] = {}

    def tell(self, told: Manifest) -> None:
        """Create the event soon, unless it waits already, or too many others do."""
        name, namespace = told["metadata"]["name"], told["metadata"]["namespace"]
        slots, tasks = self._namespaces.setdefault(namespace, (asyncio.Semaphore(_AT_ONCE), {}))
        if name in tasks:
            return
        if len(tasks) >= MOST_WAITING:
            LOGGER.warning("no event for %s: %d others wait", told["regarding"]["name"], len(tasks))
            return
        tasks[name] = asyncio.create_task(self._create(slots, told), name=f"event {name}")
        tasks[name].add_done_callback(lambda _: self._ended(namespace, name))

    async def close(self) -> None:
        """Cancel what waits, and wait for the end."""
        tasks = [task for _, of_namespace in self._namespaces.values() for task in of_namespace.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _create(self, slots: asyncio.Semaphore, told: Manifest) -> None:
        async with slots:
            await create_event(self._client, told)

    def _ended(self, namespace: str, name: str) -> None:
        _, tasks = self._namespaces[namespace]
        del tasks[name]
        if not tasks:
            del self._namespaces[namespace]


def object_event(
    kind: Kind, metadata: Manifest, type_: str, why: Explanation, now: datetime, suffix: str | None = None
) -> Manifest:
    """Return an event about an object: Normal or Warning, with a new name unless there is a suffix."""
    suffix = suffix or uuid.uuid4().hex[:16]
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": f"{metadata['name']}.{suffix}", "namespace": metadata["namespace"]},
        "eventTime": now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "type": type_,
        "reason": why.reason,
        "note": why.message[:1024],
        "action": "Reconcile",
        "reportingController": CONTROLLER,
        "reportingInstance": os.environ.get("HOSTNAME", "operator"),
        "regarding": {
            "apiVersion": kind.api_version,
            "kind": kind.kind,
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "uid": metadata["uid"],
        },
    }


async def create_event(client: Kube, told: Manifest) -> None:
    """Create the event. If that fails, nothing else does."""
    try:
        await client.create(told)
    except ConflictError:
        return  # The event exists.
    except Exception as error:
        LOGGER.warning("no event for %s: %s", told["regarding"]["name"], api_error_message(error))
