"""The tensors of a Llama, and how training and tensor parallel ranks cut them."""

from __future__ import annotations

from typing import NamedTuple

Shape = tuple[int, ...]


class Sizes(NamedTuple):
    """What a model's shapes follow from."""

    hidden: int
    inner: int
    layers: int
    vocabulary: int


SIZES = {
    "0.02B": Sizes(256, 1024, 8, 32000),
    "1B": Sizes(2048, 8192, 16, 128256),
    "8B": Sizes(4096, 14336, 32, 128256),
}


def shapes(sizes: Sizes) -> dict[str, tuple[Shape, int | None]]:
    """Return each tensor's shape, and the dimension that tensor parallelism shards; ``None`` if none."""
    hidden, inner, layers, vocabulary = sizes
    tensors: dict[str, tuple[Shape, int | None]] = {"embed": ((vocabulary, hidden), 0), "norm": ((hidden,), None)}
    for layer in range(layers):
        tensors |= {
            f"layers.{layer}.q": ((hidden, hidden), 0),
            f"layers.{layer}.k": ((hidden // 4, hidden), 0),
            f"layers.{layer}.v": ((hidden // 4, hidden), 0),
            f"layers.{layer}.o": ((hidden, hidden), 1),
            f"layers.{layer}.gate": ((inner, hidden), 0),
            f"layers.{layer}.up": ((inner, hidden), 0),
            f"layers.{layer}.down": ((hidden, inner), 1),
            f"layers.{layer}.norm": ((hidden,), None),
        }
    return tensors


def cut(shape: Shape, dim: int | None, rank: int, ranks: int) -> tuple[Shape, Shape]:
    """Return the start and the size of a rank's part."""
    if dim is None:
        return (0,) * len(shape), shape
    length = shape[dim] // ranks
    start = tuple(rank * length if at == dim else 0 for at in range(len(shape)))
    return start, tuple(length if at == dim else size for at, size in enumerate(shape))
