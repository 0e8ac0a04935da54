"""Results for scripts: always a versioned list, with field names as in the custom resources."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from workergroups_client.jobs.records import JobRecord
    from workergroups_client.objects.status import Status
    from workergroups_client.pods.holders import Holder
    from workergroups_client.ray_cluster.occupants import Occupant

API_VERSION = "cli.workergroups.dev/v1alpha1"
_SERVERS_OWN = "managedFields"


def print_list(kind: str, items: Iterable[Any], **more: Any) -> None:
    """Print a list, also of one object or of none, with what does not belong to one of them."""
    made = {"apiVersion": API_VERSION, "kind": f"{kind}List", "items": list(items), **more}
    print(json.dumps(made, default=_plain, indent=2))


def status_item(status: Status) -> dict[str, Any]:
    """Return a pool or a group as the API server has it, without its spec."""
    manifest = status.manifest
    metadata = {name: value for name, value in manifest["metadata"].items() if name != _SERVERS_OWN}
    return {
        "apiVersion": manifest.get("apiVersion"),
        "kind": manifest.get("kind"),
        "metadata": metadata,
        "status": manifest.get("status") or {},
        "ready": status.is_ready,
    }


def described_item(
    status: Status,
    jobs: Sequence[JobRecord],
    occupants: Sequence[Occupant],
    holders: Sequence[Holder],
    ray: str | None,
) -> dict[str, Any]:
    """Return the item of a pool or group that was asked for by name, with what else is known of it."""
    of_jobs = [job_item(status.name, job) for job in jobs]
    more = {"jobs": of_jobs, "occupants": occupants, "holders": holders} if status.is_pool else {}
    return status_item(status) | more | ({"rayStatus": ray} if ray is not None else {})


def job_item(pool: str, record: JobRecord) -> dict[str, Any]:
    """Return a job of a pool."""
    return {
        "id": record.id,
        "pool": pool,
        "state": record.state,
        "entrypoint": record.entrypoint,
        "message": record.message,
        "startTime": _time(record.started),
        "endTime": _time(record.ended),
        "exitCode": record.exit_code,
        "job": record.job,
        "attempt": record.attempt,
    }


def with_api_names(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return a mapping of Python's names with those that the custom resources would have."""
    return {_camel(name): each for name, each in value.items()}


def _plain(value: Any) -> Any:
    if hasattr(value, "to_json"):  # a model of the API, not imported here because --help must not wait for pydantic
        return value.to_json()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return with_api_names({field.name: getattr(value, field.name) for field in dataclasses.fields(value)})
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    raise TypeError(type(value).__name__)


def _time(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, timezone.utc)


def _camel(name: str) -> str:
    return re.sub(r"_([a-z])", lambda found: found[1].upper(), name)
