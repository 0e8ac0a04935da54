"""Joining columns of batches of the same rows."""

from __future__ import annotations

from typing import Any

from workergroups.errors import InvalidValueError

from .equality import deep_equal


def union_tensor_dict(tensor_dict1: Any, tensor_dict2: Any) -> Any:
    """Add the columns of the second TensorDict to the first, which is returned.

    Raises:
        ValueError: The batch sizes differ, or a column is in both with different values.
    """
    if tensor_dict1.batch_size != tensor_dict2.batch_size:
        one, two = tuple(tensor_dict1.batch_size), tuple(tensor_dict2.batch_size)
        raise InvalidValueError(f"a union needs equal batch sizes, not {one} and {two}")
    columns = dict(tensor_dict1.items())
    for key, column in tensor_dict2.items():
        if key in columns and not deep_equal(columns[key], column):
            raise _differ("column", key)
    for key, column in tensor_dict2.items():
        if key not in columns:
            tensor_dict1[key] = column
    return tensor_dict1


def union_numpy_dict(tensor_dict1: dict[str, Any], tensor_dict2: dict[str, Any]) -> dict[str, Any]:
    """Add the arrays of the second dictionary to the first, which is returned.

    Raises:
        ValueError: A key is in both with different values. NaN equals NaN.
    """
    return union(tensor_dict1, tensor_dict2, "column")


def union(one: dict[str, Any], two: dict[str, Any], kind: str) -> dict[str, Any]:
    """Add the entries of the second dictionary to the first, which is returned.

    Raises:
        ValueError: A key is in both with different values; the message calls it a ``kind``.
    """
    for key, value in two.items():
        if key in one and not deep_equal(one[key], value):
            raise _differ(kind, key)
    for key, value in two.items():
        one.setdefault(key, value)
    return one


def _differ(kind: str, key: str) -> InvalidValueError:
    verls = f"`{key}` in tensor_dict1 and tensor_dict2 are not the same object."
    message = f"{kind} {key!r} is in both batches with different values; rename or drop one"
    return InvalidValueError(f"{message} (in verl's words: {verls})")
