"""Step five, the only writer of status: write it only when it changed, and then an event when `Ready` turned."""

import logging
import os
import uuid
from datetime import UTC, datetime

from kubernetes.aio.dynamic.exceptions import DynamicApiError, NotFoundError

from workergroups_api.kube import Kube, Manifest
from workergroups_operator.status import Statement

LOGGER = logging.getLogger(__name__)
CONTROLLER = "workergroups.dev/operator"


async def publish(client: Kube, statement: Statement) -> None:
    """Apply the operator's part of one object's status."""
    if statement.after == statement.before:
        return
    try:
        await client.apply(_identity(statement) | {"status": statement.after.to_json()}, subresource="status")
    except NotFoundError:
        return  # Deleted meanwhile.
    if statement.ready_before is None or statement.ready_before.status != statement.ready.status:
        await _tell(client, statement)


def _identity(statement: Statement) -> Manifest:
    subject = statement.subject
    return {
        "apiVersion": statement.kind.api_version,
        "kind": statement.kind.kind,
        "metadata": {"name": subject.name, "namespace": subject.namespace},
    }


def event(statement: Statement, now: datetime) -> Manifest:
    """The event for `kubectl describe`: `Ready` turned true, or it turned away from it."""
    subject, ready = statement.subject, statement.ready
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": f"{subject.name}.{uuid.uuid4().hex[:16]}", "namespace": subject.namespace},
        "eventTime": now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "type": "Normal" if ready.status == "True" else "Warning",
        "reason": "Ready" if ready.status == "True" else "NotReady",
        "note": f"{ready.reason}: {ready.message}"[:1024],
        "action": "Reconcile",
        "reportingController": CONTROLLER,
        "reportingInstance": os.environ.get("HOSTNAME", "operator"),
        "regarding": {
            "apiVersion": statement.kind.api_version,
            "kind": statement.kind.kind,
            "name": subject.name,
            "namespace": subject.namespace,
            "uid": subject.uid,
        },
    }


async def _tell(client: Kube, statement: Statement) -> None:
    try:
        await client.create(event(statement, datetime.now(UTC)))
    except DynamicApiError as error:
        LOGGER.warning("no event for %s: %s", statement.subject.name, error.reason)
