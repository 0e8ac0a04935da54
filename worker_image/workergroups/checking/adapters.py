"""The InfiniBand and RoCE adapters of this node, as the kernel lists them."""

from __future__ import annotations

import re
from pathlib import Path

from .answers import Adapter

_EMPTY_GID = re.compile("[0:]*")


def adapters(root: Path = Path("/")) -> list[Adapter]:
    """Return each port of each adapter, in the order of their names."""
    ports = (root / "sys/class/infiniband").glob("*/ports/*")
    return [_adapter(root, port) for port in sorted(ports)]


def _adapter(root: Path, port: Path) -> Adapter:
    device = port.parent.parent
    return Adapter(
        name=device.name,
        port=int(port.name),
        interface=_read(port / "gid_attrs/ndevs/0"),
        state=_read(port / "state").partition(": ")[2],
        link=_read(port / "link_layer"),
        rate=_read(port / "rate"),
        is_usable=any(
            (root / "dev/infiniband" / verbs.name).exists() for verbs in device.glob("device/infiniband_verbs/*")
        ),
        gids={
            gid.name: _read(port / "gid_attrs/types" / gid.name)
            for gid in sorted((port / "gids").glob("*"), key=lambda gid: int(gid.name))
            if not _EMPTY_GID.fullmatch(_read(gid))
        },
    )


def _read(file: Path) -> str:
    try:
        return file.read_text().strip()
    except OSError:  # the kernel has no type for an index without an address
        return ""
