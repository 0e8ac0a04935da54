"""Whether two values are equal: NaN equals NaN, and arrays and tensors may be anywhere in them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from workergroups.lazy import np, torch
from workergroups.transfers.memory import as_integers

from .packed_columns import is_plain, pack_whole, ragged_dim

_PLAIN = frozenset({bool, bytes, int, str, type(None)})
"""The types whose values ``==`` compares well."""

_Path = frozenset[tuple[int, int]]
"""The pairs that are being compared, by their ids: to meet one again means that it is on a cycle."""


def deep_equal(one: Any, two: Any) -> bool:
    """Return whether values of one type are equal by ``==``, or consist of equal values.

    NaN equals NaN. Arrays and tensors are equal if their type, shape, layout and elements are.
    """
    return _equal(one, two, frozenset())


def tensors_equal(one: Any, two: Any) -> bool:
    """Return whether the type, shape, layout and elements of two tensors are equal, wherever they are."""
    if (one.dtype, one.layout, one.is_nested) != (two.dtype, two.layout, two.is_nested):
        return False
    if one.is_nested:
        is_alike = one.layout != torch.jagged or ragged_dim(one) == ragged_dim(two)
        rows, others = one.unbind(), two.unbind()
        return is_alike and len(rows) == len(others) and all(map(tensors_equal, rows, others))
    if one.shape != two.shape:
        return False
    if not (is_plain(one) and is_plain(two)):
        return type(one) is type(two) and bool(np.array_equal(pack_whole(one).data, pack_whole(two).data))
    if one.device != two.device:
        one, two = one.cpu(), two.cpu()
    one, two = (tensor.detach().resolve_conj().resolve_neg() for tensor in (one, two))
    return bool(torch.equal(as_integers(one), as_integers(two))) or _elements_equal(one, two)


def _equal(one: Any, two: Any, path: _Path) -> bool:
    kind = type(one)
    pair = (id(one), id(two))
    if one is two or pair in path:
        return True
    if _is_of("torch", "Tensor", one) and _is_of("torch", "Tensor", two):
        return tensors_equal(one, two)
    if kind is not type(two):
        return False
    if kind in _PLAIN:
        return bool(one == two)
    if kind is float:
        return bool(one == two) or (one != one and two != two)
    path = path | {pair}
    if kind is np.ma.MaskedArray:
        return _all_equal([one.data, np.ma.getmaskarray(one)], [two.data, np.ma.getmaskarray(two)], path)
    if kind is np.ndarray or isinstance(one, np.generic):
        return _arrays_equal(np.asarray(one), np.asarray(two), path)
    return _objects_equal(kind, one, two, path)


def _objects_equal(kind: type, one: Any, two: Any, path: _Path) -> bool:
    if kind in (list, tuple):
        is_plain_list = _PLAIN.issuperset(map(type, one))
        return bool(one == two) if is_plain_list else len(one) == len(two) and _all_equal(one, two, path)
    if kind is dict:
        return bool(one.keys() == two.keys()) and all(_equal(value, two[key], path) for key, value in one.items())
    if kind in (set, frozenset):
        mine, theirs = one - two, two - one
        return len(mine) == len(theirs) and all(any(_equal(a, b, path) for b in theirs) for a in mine)
    if _is_of("tensordict", "TensorDictBase", one):
        return bool(one.batch_size == two.batch_size) and _equal(dict(one.items()), dict(two.items()), path)
    return _says_equal(one, two) or _states_equal(one, two, path)


def _is_of(module: str, name: str, value: Any) -> bool:
    # Where there is such a value, its module has been imported; importing it to find out would take seconds.
    return module in sys.modules and isinstance(value, getattr(sys.modules[module], name))


def _arrays_equal(one: Any, two: Any, path: _Path) -> bool:
    if one.dtype != two.dtype or one.shape != two.shape:
        return False
    if one.dtype == object:
        return _all_equal(one.flat, two.flat, path)
    if one.dtype.names:
        return all(_arrays_equal(one[name], two[name], path) for name in one.dtype.names)
    return _elements_equal(one, two)


def _all_equal(one: Any, two: Any, path: _Path) -> bool:
    return all(_equal(a, b, path) for a, b in zip(one, two, strict=True))


def _elements_equal(one: Any, two: Any) -> bool:
    """Return whether arrays or tensors of one shape and type have equal elements; NaN differs from itself."""
    try:
        return bool(((one == two) | ((one != one) & (two != two))).all())
    except NotImplementedError:  # torch compares no elements of this type
        return False


def _says_equal(one: Any, two: Any) -> bool:
    try:
        said = one == two
    except Exception:  # such as that the truth value of an array is ambiguous
        return False
    return isinstance(said, bool) and said


def _states_equal(one: Any, two: Any, path: _Path) -> bool:
    try:
        state, other = _state(one), _state(two)
    except Exception:  # of a type that cannot be pickled
        return False
    return _equal(state, other, path)


def _state(value: Any) -> Any:
    """Return what pickle would make the value of again."""
    cls: Any = type(value)
    reduced = cls.__reduce_ex__(value, 4)
    if isinstance(reduced, str):
        return reduced
    return tuple(list(part) if isinstance(part, Iterator) else part for part in reduced)
