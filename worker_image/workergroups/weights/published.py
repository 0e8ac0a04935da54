"""What ranks tell about weights: which they hold, and how to read them. The driver passes on these few kilobytes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from .regions import Region, Shape

_ALL = 2**64


class HeldShard(NamedTuple):
    """A part of a tensor that a rank holds, or all of it."""

    name: str
    """The tensor's name in the model."""
    dtype: Any
    shape: Shape
    """The shape of the whole tensor."""
    region: Region
    """Which part of it is held."""
    digest: int
    """Of the part's bits, see `digest.tensor_digest`."""


@dataclass(frozen=True)
class Passport:
    """Which weights a rank holds.

    Attributes:
        rank: The rank, for messages: ``rank 3 of rollout``.
        group: The name of its group; empty if it is in none.
        version: The version of the weights, which the ranks that published them gave it.
        layout: A number for the names, types and parts that it holds: replicas of a rank have the same one.
        shards: What it holds.
    """

    rank: str
    group: str
    version: int
    layout: int
    shards: tuple[HeldShard, ...] = field(repr=False)

    @classmethod
    def of(cls, rank: str, group: str, version: int, shards: tuple[HeldShard, ...]) -> Passport:
        """Return the passport of a rank that holds these shards."""
        layout = _number((shard.name, str(shard.dtype), shard.shape, shard.region) for shard in shards)
        return cls(rank, group, version, layout, shards)

    @property
    def digest(self) -> int:
        """A number for all bits: replicas have the same one."""
        return sum(_number([shard.name]) * shard.digest for shard in self.shards) % _ALL

    @property
    def nbytes(self) -> int:
        """The size of all shards."""
        return sum(shard.region.elements * int(shard.dtype.itemsize) for shard in self.shards)


@dataclass(frozen=True)
class PublishedWeights:
    """The weights of one rank, which can be read until the rank publishes again or ends.

    Attributes:
        passport: Which weights they are.
        node: The node of the rank's process.
        address: How to read them; see `transports`.
    """

    passport: Passport
    node: str
    address: Any = field(repr=False)


def _number(values: Iterable[object]) -> int:
    """Return an odd number of 64 bits for these values, the same in each process."""
    return int.from_bytes(hashlib.blake2b(repr(list(values)).encode(), digest_size=8).digest(), "little") | 1
