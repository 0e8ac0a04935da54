"""Which weights each rank holds, as it records in Ray's control service (the GCS) under its actor id."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from threading import Lock

from workergroups.announcements import store as announcements
from workergroups.ray_private import key_value_store

KV_NAMESPACE = "workergroups-weights"
"""The namespace of the key-value store."""
MAX_MODELS = 8
"""Models of one rank that are recorded."""
MAX_MODEL = 63
"""Characters of a model's name."""
MAX_BYTES = 4 * 1024
"""The largest record."""
_LARGEST = 2**64


@dataclass(frozen=True)
class Offer:
    """Where a rank tells how its weights are read: bytes at this address, see `transfers.tcp_reads`."""

    host: str
    port: int
    lease: str
    size: int


@dataclass(frozen=True)
class HeldWeights:
    """The weights of a model that a rank holds; see `workergroups.weights.Passport`."""

    version: int
    layout: int
    digest: int
    offer: Offer | None = None


_own: dict[str, HeldWeights] = {}
"""What this process has recorded, by model."""
_writing = Lock()


def record(actor_id: str, model: str, held: HeldWeights) -> None:
    """Record which weights of a model this rank holds now."""
    with _writing:
        if model in _own or len(_own) < MAX_MODELS:
            _own[model] = held
        data = json.dumps({name: asdict(each) for name, each in _own.items()}).encode("ascii")
        key_value_store.put(KV_NAMESPACE, actor_id, data)


def forget(actor_id: str) -> None:
    """Remove what a rank has recorded."""
    key_value_store.delete(KV_NAMESPACE, actor_id)


def majority(digests: Iterable[int]) -> tuple[int, bool]:
    """Return which digest most replicas have, and whether no other one is as frequent."""
    (usual, count), *others = Counter(digests).most_common(2)
    return usual, not others or others[0][1] < count


def read(data: bytes) -> Mapping[str, HeldWeights]:
    """Return a record, by model, without what no rank of ours can have written."""
    written = announcements.read(data) if len(data) <= MAX_BYTES else None
    found = {}
    for model, each in list((written or {}).items())[:MAX_MODELS]:
        match each:
            case {"version": version, "layout": layout, "digest": digest} if len(model) <= MAX_MODEL and all(
                type(number) is int and 0 <= number < _LARGEST for number in (version, layout, digest)
            ):
                found[model] = HeldWeights(version, layout, digest, _offer(each.get("offer")))
    return found


def held(actor_id: str, model: str) -> HeldWeights | None:
    """Return which weights of a model a rank has recorded."""
    return read(key_value_store.get(KV_NAMESPACE, actor_id) or b"{}").get(model)


def _offer(written: object) -> Offer | None:
    match written:
        case {"host": str(host), "port": int(port), "lease": str(lease), "size": int(size)}:
            return Offer(host, port, lease, size)
    return None
