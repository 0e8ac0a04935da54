"""A digest of a tensor that its shards have together: their digests add up to that of the whole tensor.

Each element's bits are multiplied by two odd numbers, one for its row and one for its column. The digest is the sum of
these products modulo 2**64. So ranks with different shards can compare what they hold without sending it. A flipped bit
always changes the digest, and elements that change places do so almost certainly. This protects against faults, not
against people.
"""

from __future__ import annotations

from typing import Any

from workergroups.lazy import torch
from workergroups.transfers.memory import as_integers

from .regions import Region, Shape, strides

_CHUNK = 2**24
"""Elements that are worked on at a time: each takes eight bytes of the device's memory meanwhile."""
_MULTIPLIERS = (-7046029254386353131, -4417276706812531889)  # as signed numbers: odd, with about as many ones as zeros


def tensor_digest(local: Any, region: Region, shape: Shape) -> Any:
    """Return the digest of a shard, as a tensor with one int64 on the shard's device, without waiting for the device.

    Args:
        local: The shard, a contiguous tensor of the region's size.
        region: Which part of the whole tensor it is.
        shape: The shape of the whole tensor.
    """
    total = torch.zeros((), dtype=torch.int64, device=local.device)
    if not region.elements:
        return total
    width = region.size[-1] if shape else 1
    bits = as_integers(local).reshape(-1, width)
    rows = _factors(2 * _rows(region, shape, local.device) + 1)
    first = region.start[-1] if shape else 0
    height = max(1, _CHUNK // width)
    for left in range(0, width, _CHUNK):
        right = min(left + _CHUNK, width)
        columns = _factors(2 * torch.arange(first + left, first + right, dtype=torch.int64, device=local.device))
        for top in range(0, len(bits), height):
            sums = (bits[top : top + height, left:right] * columns).sum(dim=1)
            total += (sums * rows[top : top + height]).sum()
    return total


def _rows(region: Region, shape: Shape, device: Any) -> Any:
    """Return the number of each row, which is all dimensions but the last one, in the whole tensor."""
    rows = torch.zeros(1, dtype=torch.int64, device=device)
    steps = strides(shape[:-1])
    for start, size, step in zip(region.start[:-1], region.size[:-1], steps, strict=True):
        rows = rows[..., None] + torch.arange(start, start + size, dtype=torch.int64, device=device) * step
    return rows.reshape(-1)


def _factors(numbers: Any) -> Any:
    """Return an odd number for each number. It changes the tensor."""
    first, second = _MULTIPLIERS
    numbers.add_(1).mul_(first)
    numbers.bitwise_xor_(numbers >> 29)
    return numbers.mul_(second).bitwise_or_(1)
