"""The key-value store of Ray's control service (the GCS), from a process that is connected to Ray."""

from __future__ import annotations

from ray.experimental import internal_kv


def put(namespace: str, key: str, value: bytes) -> None:
    """Write a value over the one before."""
    internal_kv._internal_kv_put(key, value, overwrite=True, namespace=namespace)


def put_if_absent(namespace: str, key: str, value: bytes) -> bool:
    """Write a value unless the key has one; return whether it was written."""
    return not internal_kv._internal_kv_put(key, value, overwrite=False, namespace=namespace)


def get(namespace: str, key: str) -> bytes | None:
    """Return the value, ``None`` if there is none."""
    value: bytes | None = internal_kv._internal_kv_get(key, namespace=namespace)
    return value


def get_within(seconds: float, namespace: str, key: str) -> bytes | None:
    """Return the value, ``None`` if there is none.

    Raises:
        RayError: The GCS does not answer in time.
    """
    client = internal_kv.internal_kv_get_gcs_client()
    value: bytes | None = client.internal_kv_get(key.encode(), namespace.encode(), timeout=seconds)
    return value


def delete(namespace: str, key: str) -> None:
    """Remove the value; fine if there is none."""
    internal_kv._internal_kv_del(key, namespace=namespace)


def keys(namespace: str) -> list[str]:
    """Return all keys of a namespace; what is not UTF-8 in them is replaced."""
    return [key.decode(errors="replace") for key in internal_kv._internal_kv_list(b"", namespace=namespace)]
