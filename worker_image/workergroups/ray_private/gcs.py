"""Ask Ray's control service (the GCS) with deadlines, from a process that has Ray's token and needs no raylet."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import ray
from ray.core.generated import gcs_pb2

from . import records

# The deadline of one question. A healthy GCS answers within milliseconds.
DEADLINE_SECONDS = 2.0
_SESSION_NAMESPACE, _SESSION_NAME = b"session", b"session_name"


class SessionEnded(Exception):
    """Another Ray cluster has replaced the one that this process connected to, or that one no longer knows it."""


class Gcs:
    """The GCS of one life of a Ray cluster."""

    def __init__(self, client: Any, accessor: Any) -> None:
        self._client = client
        self._accessor = accessor
        self.session: str = client.cluster_id.hex()
        self._session_name = self._read_session_name()

    @classmethod
    def connect(cls, address: str) -> Gcs:
        """Connect a process that runs on no Ray node.

        Raises:
            Exception: The GCS refuses the token, or does not answer in time.
        """
        client = ray._raylet.GcsClient(address=address)
        options = ray._raylet.GcsClientOptions.create(
            address, client.cluster_id.hex(), allow_cluster_id_nil=False, fetch_cluster_id_if_nil=False
        )
        accessor = ray._raylet.GlobalStateAccessor(options)
        if not accessor.connect():
            raise ConnectionError(f"the GCS at {address} does not answer")
        return cls(client, accessor)

    @classmethod
    def of_driver(cls) -> Gcs:
        """Return the GCS that this process, a driver, is connected to."""
        return cls(ray._private.worker.global_worker.gcs_client, ray._private.state.state._connect_and_get_accessor())

    @property
    def address(self) -> str:
        """The address at which the GCS listens."""
        return str(self._client.address)

    def check_session(self) -> None:
        """Ask whether it is the same GCS as before.

        Raises:
            SessionEnded: It is another one.
        """
        if self._read_session_name() != self._session_name:
            raise SessionEnded("the GCS is another one")

    def nodes(self) -> list[gcs_pb2.GcsNodeInfo]:
        """Return all Ray nodes, dead ones included."""
        return list(self._client.get_all_node_info(timeout=DEADLINE_SECONDS).values())

    # The accessor takes no deadline: each look first calls `check_session`, which finds out whether the GCS hangs.

    def actors(self, state: str | None = None) -> list[bytes]:
        """Return the records of all actors, or of those in this state."""
        return list(self._accessor.get_actor_table(None, state))

    def actor(self, actor_id: str) -> bytes | None:
        """Return the record of one actor, ``None`` if the GCS does not know it."""
        record: bytes | None = self._accessor.get_actor_info(ray.ActorID.from_hex(actor_id))
        return record

    def placement_groups(self) -> list[bytes]:
        """Return the records of all placement groups."""
        return list(self._accessor.get_placement_group_table())

    def drivers(self) -> list[bytes]:
        """Return the records of all drivers that the GCS remembers, without asking the drivers themselves."""
        return list(self._accessor.get_job_table(skip_submission_job_info_field=True, skip_is_running_tasks_field=True))

    def worker_end(self, worker_id: str) -> float | None:
        """Return when a worker process ended, in seconds since the epoch by the clock of its node.

        Return ``None`` if it has not ended, or if the GCS does not know it.
        """
        raw = self._accessor.get_worker_info(ray.WorkerID.from_hex(worker_id))
        return None if raw is None else records.worker_end(raw)

    def keys(self, namespace: str) -> list[str]:
        """Return all keys of a namespace of the key-value store, but for those that are no text."""
        found = self._client.internal_kv_keys(b"", namespace.encode(), timeout=DEADLINE_SECONDS)
        return [key.decode() for key in found if _is_text(key)]

    def get(self, namespace: str, key: str) -> bytes | None:
        """Return one value, None if there is none."""
        value: bytes | None = self._client.internal_kv_get(key.encode(), namespace.encode(), timeout=DEADLINE_SECONDS)
        return value

    def get_many(self, namespace: str, keys: Iterable[str]) -> dict[str, bytes]:
        """Return the values of those keys that there are."""
        wanted = [key.encode() for key in keys]
        if not wanted:
            return {}
        found = self._client.internal_kv_multi_get(wanted, namespace.encode(), timeout=DEADLINE_SECONDS)
        return {key.decode(): value for key, value in found.items() if _is_text(key)}

    def put(self, namespace: str, key: str, value: bytes) -> None:
        """Write a value over the one before."""
        self._client.internal_kv_put(key.encode(), value, True, namespace.encode(), timeout=DEADLINE_SECONDS)

    def delete(self, namespace: str, key: str) -> None:
        """Remove a value; fine if there is none."""
        self._client.internal_kv_del(key.encode(), False, namespace.encode(), timeout=DEADLINE_SECONDS)

    def _read_session_name(self) -> Any:
        return self._client.internal_kv_get(_SESSION_NAME, _SESSION_NAMESPACE, timeout=DEADLINE_SECONDS)


def address_of_this_node() -> str:
    """Return the address of the GCS of the Ray that runs on this node, or that RAY_ADDRESS names.

    Raises:
        ConnectionError: There is none.
    """
    from ray._private.services import canonicalize_bootstrap_address_or_die

    address: str = canonicalize_bootstrap_address_or_die(None)
    return address


def subscribe_to_logs(address: str) -> Any:
    """Subscribe to what workers print, which Ray's log monitors send to the GCS at that address.

    Return an object with `poll()`, which waits for a batch (a mapping of `ip`, `pid` and `lines`), `last_batch_size`
    and `close()`.
    """
    subscriber = ray._raylet.GcsLogSubscriber(worker_id=os.urandom(28), address=address)  # any id that is unique
    subscriber.subscribe()
    return subscriber


def _is_text(key: bytes) -> bool:
    try:
        return bool(key.decode())
    except UnicodeDecodeError:
        return False
