"""The part of a tensor that this process holds: a plain tensor, a DTensor, or a `WeightShard`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from workergroups.errors import InvalidTypeError, WeightsError
from workergroups.lazy import torch
from workergroups.transfers.memory import INTEGERS

from .digest import tensor_digest
from .planning import Wanted
from .published import HeldShard
from .regions import Region


class WeightShard(NamedTuple):
    """A part of a larger tensor, for models without DTensor, such as Megatron's tensor parallel layers.

    Attributes:
        tensor: The part.
        shape: The shape of the whole tensor.
        start: Where the part begins in it, by dimension.
    """

    tensor: Any
    shape: Sequence[int]
    start: Sequence[int]


class Part(NamedTuple):
    """What this process holds of a tensor."""

    local: Any
    """A plain tensor."""
    wanted: Wanted
    """Which part of which tensor it is."""


def parts_of(named: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> dict[str, Part]:
    """Return the parts of these tensors that are here, by name.

    Raises:
        TypeError: A value is no tensor, or one whose elements are not 1, 2, 4 or 8 bytes of one plain type.
        WeightsError: A part does not fit into its tensor; a name comes twice; or they are on several kinds of devices.
    """
    parts: dict[str, Part] = {}
    for name, value in named.items() if isinstance(named, Mapping) else named:
        if name in parts:
            raise WeightsError(f"{name!r} comes twice")
        parts[name] = _part(name, value)
    kinds = {part.local.device.type: name for name, part in parts.items()}
    if len(kinds) > 1:
        listed = ", ".join(f"{name!r} on {kind}" for kind, name in sorted(kinds.items()))
        raise WeightsError(f"the tensors must all be on one kind of device, not {listed}")
    return parts


def held(parts: Mapping[str, Part]) -> tuple[HeldShard, ...]:
    """Return what the parts are, with the digests of their present bits: it waits for the device."""
    digests = [tensor_digest(part.local.contiguous(), part.wanted.region, part.wanted.shape) for part in parts.values()]
    numbers = torch.stack([digest.to(digests[0].device) for digest in digests]).tolist() if digests else []
    return tuple(HeldShard(*part.wanted, digest % 2**64) for part, digest in zip(parts.values(), numbers, strict=True))


def _part(name: str, value: Any) -> Part:
    local, shape, region = _described(name, value)
    if not isinstance(local, torch.Tensor):
        raise InvalidTypeError(f"{name!r} is a {type(local).__name__}, not a tensor")
    if local.is_meta:
        raise InvalidTypeError(f"{name!r} is on the device meta, so it has no values")
    if local.layout != torch.strided or local.is_quantized or local.element_size() not in INTEGERS:
        raise InvalidTypeError(
            f"{name!r} is a {local.dtype} of layout {local.layout}, which cannot be published as it is"
        )
    if tuple(local.shape) != region.size or not region.within(shape):
        raise WeightsError(
            f"{name!r}: a part of shape {tuple(local.shape)} that begins at {region.start} does not fit into {shape}"
        )
    return Part(local.detach(), Wanted(name, local.dtype, shape, region))


def _described(name: str, value: Any) -> tuple[Any, tuple[int, ...], Region]:
    if isinstance(value, WeightShard):
        return value.tensor, tuple(value.shape), Region(tuple(value.start), tuple(value.tensor.shape))
    # torch's own protocol for checkpoints, which DTensor has: it knows uneven, nested and strided placements.
    chunks = getattr(value, "__create_chunk_list__", None)
    if chunks is None:
        shape = tuple(getattr(value, "shape", ()))
        return value, shape, Region.whole(shape)
    local, (chunk, *others) = value.to_local(), chunks()
    if others:
        raise WeightsError(f"{name!r} is in {len(others) + 1} parts on this rank: publish each as a WeightShard")
    return local, tuple(value.shape), Region(tuple(chunk.offsets), tuple(chunk.sizes))
