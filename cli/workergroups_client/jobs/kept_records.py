"""Records of jobs that outlive Ray's head, which forgets its jobs when it ends.

They are in one ConfigMap for each Ray cluster, with an entry for each attempt of a job. The pools of the cluster own
it, so that Kubernetes removes it with them. Only the command line reads and writes it: without it, a job runs as well.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timezone
from hashlib import sha256
from typing import TYPE_CHECKING

from workergroups_api.heads import running_heads
from workergroups_api.manifest import CONFIG_MAP, RESOURCE_POOL, Manifest
from workergroups_api.names import JOB_RECORDS_LABEL, job_records_name
from workergroups_api.vocabulary import Component
from workergroups_common.bounded_json import Limits, RefusedJson, parse

from ..api_server.cluster import Cluster
from ..errors import ClientError, UnreachableError
from ..objects import names
from .records import LOST, UNKNOWN, JobRecord

if TYPE_CHECKING:
    from workergroups_api.job_record import KeptJobRecord

MOST = 50
"""Records of a Ray cluster; when there are more, the oldest give way."""
_LIMITS = Limits(size=8192, depth=3, values=64)


class KeptRecords:
    """The kept records of one Ray cluster's jobs.

    Args:
        cluster: The Kubernetes cluster.
        ray_cluster: The name of the RayCluster.
    """

    def __init__(self, cluster: Cluster, ray_cluster: str) -> None:
        self._cluster, self._ray_cluster = cluster, ray_cluster
        self._name = job_records_name(ray_cluster)
        # What this process has written, or could not write.
        self._own: dict[str, KeptJobRecord] = {}

    def all(self) -> list[KeptJobRecord]:
        """Return the records that can be read, the latest first."""
        found = self._config_map()
        return _latest_first(_readable(found).values()) if found else []

    def get(self, job_id: str) -> KeptJobRecord | None:
        """Return the record of an attempt by its submission id; ``None`` if there is none."""
        return next((record for record in self.all() if record.id == job_id), None)

    def put(self, record: KeptJobRecord) -> None:
        """Write a record. If there are too many, remove the oldest.

        Raises:
            ClientError: It cannot be written, such as without the right to.
        """
        self._own[record.id] = record
        found, owners = self._config_map(), self._owners()
        if found is None or not _has_owners(found, owners):
            found = self._cluster.apply(self._without_records(owners))
        surplus = _surplus(found, but=_key(record.id))
        text = json.dumps(record.to_json(), ensure_ascii=False)
        self._cluster.merge(CONFIG_MAP, self._name, {"data": {**dict.fromkeys(surplus), _key(record.id): text}})

    def note_end(self, record: JobRecord) -> None:
        """Note how a job ended, if it has a record, and this is news."""
        kept = self.get(record.id)
        if kept is not None and kept.ended is None:
            self.put(_ended(kept, record))

    def note_stop(self, job_id: str) -> None:
        """Note that a job was stopped, if it has a record: no other attempt begins."""
        kept = self.get(job_id)
        if kept is not None:
            self.put(kept.model_copy(update={"stop": True}))

    def heads(self) -> set[str]:
        """Return what identifies the containers in which a head of the Ray cluster runs, also while it is leaving."""
        return set(running_heads(names.all_pods(self._cluster, self._ray_cluster, Component.HEAD)))

    def of_absent(self, job_id: str, *, has_answered: bool) -> JobRecord | None:
        """Return the record of a job that Ray does not know, or cannot be asked for; ``None`` if none was kept."""
        kept = self._latest(job_id)
        return None if kept is None else absent(kept, self.heads(), has_answered=has_answered)

    def _latest(self, job_id: str) -> KeptJobRecord | None:
        """Return the record of an attempt: others may have noted how it ended since this process wrote it."""
        own = self._own.get(job_id)
        if own is not None and own.ended is not None:
            return own
        try:
            return self.get(job_id) or own
        except UnreachableError:
            raise
        except ClientError:  # such as without the right to read records
            if own is None:
                raise
            return own

    def _config_map(self) -> Manifest | None:
        found = self._cluster.get(CONFIG_MAP, self._name)
        if found is not None and JOB_RECORDS_LABEL not in (found["metadata"].get("labels") or {}):
            raise ClientError(
                f"ConfigMap {self._name} in namespace {self._cluster.namespace} lacks the label {JOB_RECORDS_LABEL}, "
                f"so it is not the one for the records of jobs: give it another name"
            )
        return found

    def _owners(self) -> list[Manifest]:
        return [
            RESOURCE_POOL.reference(pool.name, pool.uid)
            for pool in names.list_all(self._cluster, names.POOL)
            if names.ray_cluster(self._cluster, pool) == self._ray_cluster
        ]

    def _without_records(self, owners: list[Manifest]) -> Manifest:
        labels = {JOB_RECORDS_LABEL: self._ray_cluster}
        return CONFIG_MAP.manifest({"name": self._name, "labels": labels, "ownerReferences": owners})


def merged(asked: Iterable[JobRecord] | None, kept: Iterable[KeptJobRecord], heads: set[str]) -> list[JobRecord]:
    """Return Ray's records, and the kept ones of jobs that Ray does not know, the latest first.

    Args:
        asked: Ray's records; ``None`` if Ray cannot be asked.
        kept: The kept records of the same Ray cluster.
        heads: What identifies the heads that run.
    """
    records = list(asked or ())
    known = {record.id for record in records}
    others = (absent(each, heads, has_answered=asked is not None) for each in kept if each.id not in known)
    return sorted([*records, *others], key=lambda record: -(record.started or 0))


def absent(kept: KeptJobRecord, heads: set[str], *, has_answered: bool) -> JobRecord:
    """Return the record of a job that Ray does not know, or cannot be asked for."""
    record = JobRecord(
        id=kept.id,
        state=kept.state,
        entrypoint=kept.entrypoint,
        message=kept.message,
        started=kept.started.timestamp(),
        ended=kept.ended.timestamp() if kept.ended else None,
        driver_exit_code=kept.driver_exit_code,
        job=kept.job,
        attempt=kept.attempt,
        is_kept=True,
    )
    if record.has_ended:
        return record
    # If it ran in one of several heads, the one that answers knows it if it was that one.
    is_elsewhere = has_answered and len(kept.heads) > 1
    if kept.on_node and not has_answered:
        return replace(record, state=UNKNOWN, message="Ray does not answer, but a driver on a node may run without it")
    if heads.intersection(kept.heads) and not is_elsewhere:
        why = "Ray no longer knows the job" if has_answered else "Ray does not answer"
        return replace(record, state=UNKNOWN, message=f"{why}, but the head in which it ran still runs")
    was = f"the job, which was {kept.state} when it was last seen"
    return replace(record, state=LOST, message=f"Ray's head is gone, and with it {was}, and its output")


def _ended(kept: KeptJobRecord, record: JobRecord) -> KeptJobRecord:
    from workergroups_api.job_record import MAX_MESSAGE
    from workergroups_common.text import plain

    ended = datetime.fromtimestamp(record.ended, timezone.utc) if record.ended else datetime.now(timezone.utc)
    return kept.model_copy(
        update={
            "state": record.state,
            "message": plain(record.message, MAX_MESSAGE),
            "ended": ended,
            "driver_exit_code": record.driver_exit_code,
        }
    )


def _readable(config_map: Manifest) -> dict[str, KeptJobRecord]:
    """Return the records by key. Users can write anything: what cannot be read is left out."""
    data: Mapping[str, str] = config_map.get("data") or {}
    found = {key: _read(text) for key, text in data.items()}
    return {key: record for key, record in found.items() if record is not None and key == _key(record.id)}


def _read(text: str) -> KeptJobRecord | None:
    from pydantic import ValidationError

    from workergroups_api.job_record import KeptJobRecord

    try:
        return KeptJobRecord.model_validate(parse(text.encode(errors="surrogatepass"), _LIMITS))
    except (RefusedJson, ValidationError):
        return None


def _surplus(config_map: Manifest, but: str) -> list[str]:
    """Return the keys that must go so that there is room for one more: those that cannot be read, then the oldest."""
    readable = _readable(config_map)
    kept = [_key(record.id) for record in _latest_first(readable.values()) if _key(record.id) != but][: MOST - 1]
    return sorted((config_map.get("data") or {}).keys() - {*kept, but})


def _latest_first(records: Iterable[KeptJobRecord]) -> list[KeptJobRecord]:
    return sorted(records, key=lambda record: record.started, reverse=True)


def _has_owners(config_map: Manifest, owners: list[Manifest]) -> bool:
    present = {owner["uid"] for owner in config_map["metadata"].get("ownerReferences") or ()}
    return {owner["uid"] for owner in owners} <= present


def _key(job_id: str) -> str:
    """Return the key of a job's record; the id itself may have characters that a key may not have."""
    return sha256(job_id.encode(errors="surrogatepass")).hexdigest()[:32]
