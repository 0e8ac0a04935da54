"""Whether ranks hold the same weights, by their passports. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from workergroups.announcements.held_weights import majority
from workergroups.errors import WeightsError

from .published import HeldShard, Passport
from .regions import Region, made_of

_NAMED = 3
"""Tensors that an error names."""


def check_weights(passports: Sequence[Passport | None]) -> None:
    """Raise if ranks hold different versions of a model's weights, or different bits.

    Replicas are compared with each other; groups with other shards by the sums of their digests. So pass the passports
    of all ranks of one group, or of several.

    Args:
        passports: What `Weights.passport` is on each rank. ``None`` is a rank that has not received its weights.

    Raises:
        WeightsError: It names the ranks and the tensors.
    """
    known = [passport for passport in passports if passport is not None]
    if len(known) < len(passports):
        missing = [str(at) for at, passport in enumerate(passports) if passport is None]
        raise WeightsError(
            f"passports {', '.join(missing)} of {len(passports)} are None: these ranks have not received weights"
        )
    found = [*_other_versions(known)] or [*_other_bits(known)] or [*_other_sums(known)]
    if found:
        more = f"; and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
        raise WeightsError("; ".join(found[:_NAMED]) + more)


def _other_versions(passports: Sequence[Passport]) -> Iterator[str]:
    newest = max((passport.version for passport in passports), default=0)
    for passport in passports:
        if passport.version != newest:
            yield f"{passport.rank} has version {passport.version}, and others have version {newest}"


def _other_bits(passports: Sequence[Passport]) -> Iterator[str]:
    """Yield the replicas that differ from most of the others."""
    replicas: dict[object, list[tuple[Passport, HeldShard]]] = {}
    for passport in passports:
        for shard in passport.shards:
            replicas.setdefault(shard._replace(digest=0), []).append((passport, shard))
    for held in replicas.values():
        usual, is_settled = majority(shard.digest for _, shard in held)
        for passport, shard in held:
            if shard.digest != usual:
                rest = ", ".join(other.rank for other, each in held if each.digest == usual)
                whose = "" if is_settled else "(one of the two is wrong)"
                yield f"{shard.name!r} of {passport.rank} has other bits than that of {rest} {whose}".rstrip()


def _other_sums(passports: Sequence[Passport]) -> Iterator[str]:
    """Yield the tensors that are not the same in all groups, where each has all of it."""
    sums: dict[tuple[str, object], dict[int, list[str]]] = {}
    for group in dict.fromkeys(passport.group for passport in passports):
        for key, total in _sums([passport for passport in passports if passport.group == group]):
            sums.setdefault(key, {}).setdefault(total, []).append(group)
    for (name, _), groups in sums.items():
        if len(groups) > 1:
            listed = " than in ".join(", ".join(each) or "no group" for each in groups.values())
            yield f"{name!r} has other bits in {listed}"


def _sums(passports: Sequence[Passport]) -> Iterator[tuple[tuple[str, object], int]]:
    tensors: dict[tuple[str, object, tuple[int, ...]], dict[Region, int]] = {}
    for passport in passports:
        for shard in passport.shards:
            tensors.setdefault((shard.name, shard.dtype, shard.shape), {})[shard.region] = shard.digest
    for (name, dtype, shape), held in tensors.items():
        regions = list(held)
        parts = made_of(Region.whole(shape), regions)
        if parts is not None:
            yield (name, dtype), sum(held[regions[at]] for at in parts) % 2**64
