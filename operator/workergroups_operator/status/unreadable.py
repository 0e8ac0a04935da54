"""The status of an object that the operator cannot read: it has failed, and nothing else is known."""

from datetime import datetime
from typing import Any

from pydantic import ValidationError

from workergroups_api.conditions import Condition, Finding, find, merge
from workergroups_api.group_status import WorkerGroupStatus
from workergroups_api.manifest import RESOURCE_POOL
from workergroups_api.pool_status import ResourcePoolStatus
from workergroups_api.vocabulary import ConditionType
from workergroups_operator.observed import UnreadableObject
from workergroups_operator.status.conclusion import StatusUpdate
from workergroups_operator.status.failed import failed
from workergroups_operator.status.progressing import progressing


def unreadable(odd: UnreadableObject, now: datetime) -> StatusUpdate:
    """Return the status that explains why the object cannot be read."""
    raw = odd.body.get("status")
    previous = _conditions(raw)
    metadata, why = odd.body["metadata"], odd.explanation
    ready = Finding(type=ConditionType.READY, status="False", reason=why.reason, message=why.message, final=True)
    findings = (ready, progressing(ready, None, now), *failed(ready))
    conditions = merge(previous, findings, int(metadata.get("generation", 0)), now)
    model = ResourcePoolStatus if odd.kind is RESOURCE_POOL else WorkerGroupStatus
    before = model(conditions=previous, observed_generation=(raw or {}).get("observedGeneration"))
    after = model(conditions=conditions, observed_generation=metadata.get("generation"))
    ready_before = find(previous, ConditionType.READY)
    return StatusUpdate(odd.kind, metadata, before, after, ready_before, conditions[0], is_readable=False)


def _conditions(raw: Any) -> tuple[Condition, ...]:
    """Return the conditions of a status, as far as they can be read."""
    found = []
    for body in (raw or {}).get("conditions") or () if isinstance(raw, dict) else ():
        try:
            found.append(Condition.model_validate(body))
        except ValidationError:
            continue
    return tuple(found)
