"""Events about pools and groups, which `kubectl describe` and `kubectl get events` show."""

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


async def tell(client: Kube, told: Manifest) -> None:
    """Create the event. If that fails, nothing else does."""
    try:
        await client.create(told)
    except ConflictError:
        return  # The event exists.
    except Exception as error:
        LOGGER.warning("no event for %s: %s", told["regarding"]["name"], api_error_message(error))
