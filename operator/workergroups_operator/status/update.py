"""What the operator writes into the status of one object."""

from dataclasses import dataclass

from workergroups_api.conditions import Condition, Explanation
from workergroups_api.manifest import Kind, Manifest
from workergroups_api.model import ApiModel


@dataclass(frozen=True)
class StatusUpdate:
    """An object, and the operator's part of its status as it was and as it should be."""

    kind: Kind
    metadata: Manifest
    before: ApiModel | None
    after: ApiModel
    ready_before: Condition | None
    ready: Condition
    # False if the operator cannot read the object: its schema may refuse any status of it.
    is_readable: bool = True
    # What else an event should report; its reason is an `EventReason`.
    news: Explanation | None = None
