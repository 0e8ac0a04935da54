"""What rank 0 publishes about its group in Ray's control service (the GCS), under its own actor id.

It publishes the record before its constructor runs: the other ranks learn from it where they meet, and drivers that
attach learn the group's methods, even while every rank is busy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ray import cloudpickle

from workergroups.errors import RendezvousTimeoutError
from workergroups.ray_private import key_value_store
from workergroups.ray_private.cluster_state import actor_state
from workergroups.waiting import poll

from .method_table import Signatures

RECORD_TIMEOUT = 300.0
"""Seconds for which ranks and drivers wait for rank 0's record, and so for its process to start."""

_KV_NAMESPACE = "workergroups"

Places = tuple[tuple[str, int], ...]
"""The placement group's hexadecimal id and the index of the bundle of each rank, in rank order."""


@dataclass(frozen=True)
class GroupRecord:
    """What rank 0 publishes."""

    master_addr: str
    master_port: str
    methods: Mapping[str, bytes]
    """The class's registered methods, as `method_table.pickle_methods` made them."""
    signatures: Signatures
    """The signatures of all methods of the class."""
    places: Places
    """Where the ranks are."""


def publish(rank_zero: str, record: GroupRecord) -> None:
    """Publish the record under rank 0's actor id."""
    key_value_store.put(_KV_NAMESPACE, rank_zero, cloudpickle.dumps(record))


def correct_places(rank_zero: str, places: Places) -> None:
    """Publish where the ranks are now, if rank 0 has published its record, and in it something else."""
    record = lookup(rank_zero)
    if record is not None and record.places != places:
        publish(rank_zero, replace(record, places=places))


def forget(rank_zero: str) -> None:
    """Remove the record of a group that has ended."""
    key_value_store.delete(_KV_NAMESPACE, rank_zero)


def lookup(rank_zero: str) -> GroupRecord | None:
    """Return the record that rank 0 has published, ``None`` if it has not."""
    data = key_value_store.get(_KV_NAMESPACE, rank_zero)
    if data is None:
        return None
    record: GroupRecord = cloudpickle.loads(data)
    return record


def wait_for_record(rank_zero: str, *, timeout: float = RECORD_TIMEOUT) -> GroupRecord:
    """Wait for rank 0's record and return it.

    Raises:
        RendezvousTimeoutError: Rank 0 died, or did not publish its record within ``timeout`` seconds.
    """

    def ask() -> GroupRecord | None:
        record = lookup(rank_zero)
        if record is None:
            state = actor_state(rank_zero)
            if state is not None and state.death is not None:
                cause = state.death.details or state.death.message
                raise RendezvousTimeoutError(f"rank 0 died before it published its address: {cause}")
        return record

    record = poll(ask, timeout=timeout)
    if record is None:
        state = actor_state(rank_zero)
        raise RendezvousTimeoutError(
            f"rank 0 published no address within {timeout:g} s: Ray reports that its actor {rank_zero} is "
            f"{state.state if state else 'unknown'}"
        )
    return record
