"""Joining columns of batches of the same rows."""

from __future__ import annotations

import math
from typing import Any

from workergroups.errors import InvalidValueError
from workergroups.lazy import np


def union_tensor_dict(tensor_dict1: Any, tensor_dict2: Any) -> Any:
    """Add the columns of the second TensorDict to the first, which is returned.

    Raises:
        ValueError: The batch sizes differ, or a column is in both with different values.
    """
    if tensor_dict1.batch_size != tensor_dict2.batch_size:
        one, two = tuple(tensor_dict1.batch_size), tuple(tensor_dict2.batch_size)
        raise InvalidValueError(f"a union needs equal batch sizes, not {one} and {two}")
    for key, column in tensor_dict2.items():
        if key not in tensor_dict1.keys():  # noqa: SIM118 - a TensorDict refuses `in`
            tensor_dict1[key] = column
        elif not _same_tensor(tensor_dict1[key], column):
            raise _differ("column", key)
    return tensor_dict1


def union_numpy_dict(tensor_dict1: dict[str, Any], tensor_dict2: dict[str, Any]) -> dict[str, Any]:
    """Add the arrays of the second dictionary to the first, which is returned.

    Raises:
        ValueError: A key is in both with different values. NaN equals NaN.
    """
    return union(tensor_dict1, tensor_dict2, "column")


def deep_equal(one: Any, two: Any) -> bool:
    """Return whether values are equal, where NaN equals NaN, and arrays are compared by dtype, shape and elements."""
    return _deep_equal(one, two, set())


def union(one: dict[str, Any], two: dict[str, Any], kind: str) -> dict[str, Any]:
    """Add the entries of the second dictionary to the first, which is returned.

    Raises:
        ValueError: A key is in both with different values; the message calls it a ``kind``.
    """
    for key, value in two.items():
        if key in one and not deep_equal(one[key], value):
            raise _differ(kind, key)
        one.setdefault(key, value)
    return one


def _differ(kind: str, key: str) -> InvalidValueError:
    verls = f"`{key}` in tensor_dict1 and tensor_dict2 are not the same object."
    message = f"{kind} {key!r} is in both batches with different values; rename or drop one"
    return InvalidValueError(f"{message} (in verl's words: {verls})")


def _same_tensor(one: Any, two: Any) -> bool:
    if one.is_nested or two.is_nested:
        return bool(one.is_nested == two.is_nested) and all(
            a.equal(b) for a, b in zip(one.unbind(), two.unbind(), strict=True)
        )
    return bool(one.shape == two.shape and one.dtype == two.dtype and one.equal(two))


def _deep_equal(one: Any, two: Any, on_path: set[int]) -> bool:
    if type(one) is not type(two):
        return False
    if id(one) in on_path:
        return True  # a cycle: what is on it was compared
    on_path = on_path | {id(one)}
    if isinstance(one, float) and math.isnan(one):
        return math.isnan(two)
    if hasattr(one, "dtype") and hasattr(one, "shape"):
        return _arrays_equal(one, two, on_path)
    return bool(one == two)


def _arrays_equal(one: Any, two: Any, on_path: set[int]) -> bool:
    if one.dtype != two.dtype or one.shape != two.shape:
        return False
    if not isinstance(one, np.ndarray):
        return bool((one == two).all())
    if one.dtype == object:
        return all(_deep_equal(a, b, on_path) for a, b in zip(one.flat, two.flat, strict=True))
    return bool(np.array_equal(one, two, equal_nan=one.dtype.kind in "fc"))
