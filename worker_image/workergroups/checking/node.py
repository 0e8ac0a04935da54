"""Find out what the node has on which this runs."""

from __future__ import annotations

import glob
import importlib.util
import os
import platform
import re
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

import ray

from workergroups_api.vocabulary import Vendor

from .answers import Adapter, NodeAnswer, Question

_NCCL_FILE = Path("/etc/nccl.conf")
_COMMAND_SECONDS = 20
_WRITE_SECONDS = 15
_AMD_DRIVER = Path("/sys/module/amdgpu/version")
_EMPTY_GID = re.compile("[0:]*")


def look(name: str, question: Question) -> NodeAnswer:
    """Return everything that can be found out without another node."""
    versions = {"Ray": ray.__version__, "Python": platform.python_version()}
    troubles: dict[str, str] = {}
    memory = os.statvfs("/dev/shm")
    return NodeAnswer(
        node=name,
        devices=_devices(question["vendor"], versions, troubles),
        versions=_with_torch(versions, troubles),
        shared_memory=memory.f_blocks * memory.f_frsize,
        unwritable=unwritable(question["writable"]),
        unreachable={},
        adapters=adapters() if question["fabric"] else [],
        settings=nccl_settings(os.environ),
        troubles=troubles,
    )


def nvidia_devices(listed: str) -> list[str]:
    """Return the models of the devices that ``nvidia-smi -L`` prints; for partitioned devices, those of the parts."""
    whole = re.findall(r"(?m)^GPU \d+: (.+?) \(UUID", listed)
    parts = re.findall(r"(?m)^\s+(MIG \S+)\s+Device", listed)
    return parts or whole


def nvidia_drivers(printed: str) -> list[str]:
    """Return the driver versions that ``nvidia-smi`` prints, without the warnings that it prints as well."""
    return re.findall(r"(?m)^\s*(\d+(?:\.\d+)+)\s*$", printed)


def unwritable(directories: Iterable[str]) -> dict[str, str]:
    """Return the directories in which no file can be written, with the reasons; a file system may also hang."""
    found = dict.fromkeys(directories, f"no answer within {_WRITE_SECONDS} s")

    def attempt(directory: str) -> None:
        try:
            with tempfile.TemporaryFile(dir=directory) as file:
                file.write(b"x")
                file.flush()
                os.fsync(file.fileno())  # a quota or a remote server may refuse only now
        except OSError as error:
            found[directory] = error.strerror or str(error)
        else:
            del found[directory]

    # Threads that wait for a server cannot be ended, so these are daemons.
    threads = [threading.Thread(target=attempt, args=(directory,), daemon=True) for directory in list(found)]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + _WRITE_SECONDS
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    return dict(found)


def adapters(root: Path = Path("/")) -> list[Adapter]:
    """Return each port of each InfiniBand or RoCE adapter, as the kernel lists them, in the order of their names."""
    ports = (root / "sys/class/infiniband").glob("*/ports/*")
    return [_adapter(root, port) for port in sorted(ports)]


def nccl_settings(variables: Mapping[str, str], of_node: Path = _NCCL_FILE) -> dict[str, str]:
    """Return NCCL's settings in the order in which NCCL looks: variables, the user's file, the node's file."""
    # Not Path's expanduser, which raises an error if there is no home.
    of_user = Path(variables.get("NCCL_CONF_FILE") or os.path.expanduser("~/.nccl.conf"))
    return {**_settings_of(of_node), **_settings_of(of_user), **{k: v for k, v in variables.items() if _is_nccl(k)}}


def _settings_of(file: Path) -> dict[str, str]:
    pairs = (line.partition("=") for line in _text_of(file).splitlines() if not line.startswith("#"))
    return {name.strip(): value.strip() for name, is_set, value in pairs if is_set and _is_nccl(name.strip())}


def _is_nccl(name: str) -> bool:
    return name.startswith("NCCL_")


def _adapter(root: Path, port: Path) -> Adapter:
    device = port.parent.parent
    return Adapter(
        name=device.name,
        port=int(port.name),
        interface=_text_of(port / "gid_attrs/ndevs/0"),
        state=_text_of(port / "state").partition(": ")[2],
        link=_text_of(port / "link_layer"),
        rate=_text_of(port / "rate"),
        is_usable=any(
            (root / "dev/infiniband" / verbs.name).exists() for verbs in device.glob("device/infiniband_verbs/*")
        ),
        gids={
            gid.name: _text_of(port / "gid_attrs/types" / gid.name)
            for gid in sorted((port / "gids").glob("*"), key=lambda gid: int(gid.name))
            if not _EMPTY_GID.fullmatch(_text_of(gid))
        },
    )


def _text_of(file: Path) -> str:
    try:
        return file.read_text(errors="replace").strip()
    except OSError:  # the kernel has no type for an index without an address
        return ""


def _devices(vendor: str, versions: dict[str, str], troubles: dict[str, str]) -> int | None:
    """Return the number of devices; add their models and drivers to the versions."""
    if vendor == Vendor.NVIDIA:
        return _nvidia(versions, troubles)
    if vendor == Vendor.AMD:
        if _AMD_DRIVER.exists():
            versions["driver"] = _AMD_DRIVER.read_text().strip()
        return len(glob.glob("/dev/dri/renderD*"))
    return None if vendor == Vendor.OTHER else 0


def _nvidia(versions: dict[str, str], troubles: dict[str, str]) -> int | None:
    try:
        models = nvidia_devices(_printed("nvidia-smi", "-L"))
        drivers = nvidia_drivers(_printed("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"))
    except FileNotFoundError:
        troubles["devices"] = "there is no nvidia-smi in the pod: NVIDIA's container runtime should provide it"
        return None
    except subprocess.TimeoutExpired:
        troubles["devices"] = f"nvidia-smi has not ended within {_COMMAND_SECONDS} s"
        return None
    except (OSError, subprocess.CalledProcessError) as error:
        said = str(getattr(error, "output", None) or error).strip().splitlines()
        troubles["devices"] = f"nvidia-smi: {said[-1] if said else error}"
        return None
    versions.update({name: ", ".join(sorted(set(all_))) for name, all_ in (("device", models), ("driver", drivers))})
    return len(models)


def _printed(*command: str) -> str:
    return subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True, timeout=_COMMAND_SECONDS
    ).stdout


def _with_torch(versions: dict[str, str], troubles: dict[str, str]) -> dict[str, str]:
    """Return the versions with torch's and those of what it was built with, if torch is installed."""
    if importlib.util.find_spec("torch") is None:
        return versions
    try:
        import torch
    except Exception as error:  # a library that is missing shows in many ways
        troubles["torch"] = f"it cannot be imported: {error}"
        return versions
    found = {"torch": torch.__version__, "CUDA": torch.version.cuda, "ROCm": getattr(torch.version, "hip", None)}
    if torch.distributed.is_available() and torch.distributed.is_nccl_available():
        found["NCCL"] = ".".join(map(str, torch.cuda.nccl.version()))
    return versions | {name: str(version) for name, version in found.items() if version}
