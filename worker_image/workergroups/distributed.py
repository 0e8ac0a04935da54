"""``init_process_group``: make the ranks of a group a process group of torch.distributed."""

from __future__ import annotations

import os
from datetime import timedelta

from .errors import RendezvousTimeoutError
from .lazy import torch

_COLLECTIVES = {"cuda": "nccl", "npu": "hccl"}
"""By torch's name of the device. AMD devices are ``cuda`` too, and RCCL is ``nccl``."""


def init_process_group(backend: str | None = None, *, timeout: float = 600.0) -> None:
    """Join torch.distributed with the other ranks, at the group's master address. Call it on all ranks.

    Selects the rank's device, or the first of several; a rank sees only its own devices. Does nothing if
    torch.distributed is initialized already.

    Args:
        backend: torch's name of the backend. The default is gloo for tensors in host memory and, if the rank has a
            device, nccl (or hccl) for tensors on it.
        timeout: Seconds within which all ranks must call this; later the limit of each collective operation.

    Raises:
        RendezvousTimeoutError: Some ranks did not call it in time.
        RuntimeError: The process is not a rank.
    """
    if torch.distributed.is_initialized():
        return
    missing = [name for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT") if name not in os.environ]
    if missing:
        raise RuntimeError(f"this process is not a rank of a group: {', '.join(missing)} is not set")
    device = _device()
    if device is not None:
        getattr(torch, device).set_device(int(os.environ.get("LOCAL_RANK", "0")))
    try:
        torch.distributed.init_process_group(backend or _backend(device), timeout=timedelta(seconds=timeout))
    except torch.distributed.DistStoreError as error:
        raise RendezvousTimeoutError(
            f"rank {os.environ['RANK']} of {os.environ['WORLD_SIZE']} did not meet all others at "
            f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']} within {timeout:g} s: call init_process_group on "
            f"all ranks, or raise its timeout ({error})"
        ) from error


def _device() -> str | None:
    """Return torch's name of the kind of device that this rank has; ``None`` without devices."""
    return next((name for name in _COLLECTIVES if hasattr(torch, name) and getattr(torch, name).is_available()), None)


def _backend(device: str | None) -> str:
    return "gloo" if device is None else f"cpu:gloo,{device}:{_COLLECTIVES[device]}"
