"""The pods' image, made of what the GPU machine has: its system and its Python with torch; and our Python packages."""

import hashlib
import json
import os
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterable
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

from tools.console import ToolError, say
from tools.gpu_machine.layout import DRIVER, IMAGE_NAME, PACKAGES

# These, what they require, and CUDA's libraries.
_KEPT = ("numpy", "torch", "torchaudio", "torchvision")
_CUDA = "nvidia-"
_TREES = ("usr", "opt", "etc", "bin", "sbin", "lib", "lib64")
# The driver comes with the devices, torch has CUDA's libraries. Triton compiles C, and links with static libraries.
_LEFT_OUT = (
    *(DRIVER.lstrip("/"), "usr/local/cuda*", "opt/nvidia", "usr/lib/llvm*", "usr/lib/jvm", "usr/include/c++"),
    *(f"usr/lib/x86_64-linux-gnu/lib{name}*" for name in ("cudnn", "nccl", "cusparseLt", "nvinfer")),
    *(f"usr/share/{name}" for name in ("doc", "locale", "man", "info")),
    "*/__pycache__",
)
_CHANGED_WHILE_READ = 1  # tar's exit code, if a file of the running system did
_EMPTY = {"tmp": 0o1777, "var/tmp": 0o1777, "root": 0o700, "run": 0o755, "proc": 0o755, "sys": 0o755, "dev": 0o755}
# Multicast over NVLink can put GPUs that machines share out of service.
_NO_MULTICAST = ("NCCL_NVLS_ENABLE=0", "TORCH_SYMM_MEM_DISABLE_MULTICAST=1", "NVSHMEM_DISABLE_NVLS=1")


def write(directory: Path, packages: Path) -> None:
    """Write the image as an OCI layout, with one layer for the machine's files and one for our packages."""
    blobs = directory / "blobs" / "sha256"
    blobs.mkdir(parents=True)
    left_out = [f"--exclude={path}" for path in (*_LEFT_OUT, *_other_packages())]
    trees = [name for name in _TREES if Path("/", name).exists()]
    layers = [
        _layer(blobs, ["--directory=/", *left_out, *trees]),
        _layer(blobs, [f"--directory={packages}", f"--transform=s,^\\.,{PACKAGES},S", "."]),
    ]
    with tempfile.TemporaryDirectory() as empty:
        _make_directories(Path(empty))
        layers.append(_layer(blobs, [f"--directory={empty}", *_EMPTY]))
    config = {
        "architecture": "amd64",
        "os": "linux",
        "config": {"Env": _environment(), "Cmd": ["bash"], "WorkingDir": "/root"},
        "rootfs": {"type": "layers", "diff_ids": [layer["digest"] for layer in layers]},
    }
    kind = "application/vnd.oci.image"
    manifest = {"schemaVersion": 2, "config": _json(blobs, f"{kind}.config.v1+json", config), "layers": layers}
    named = _json(blobs, f"{kind}.manifest.v1+json", {**manifest, "mediaType": f"{kind}.manifest.v1+json"})
    named["annotations"] = {"io.containerd.image.name": IMAGE_NAME}
    (directory / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    (directory / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [named]}))


def _other_packages() -> list[str]:
    """Return what only other packages than torch and its requirements have added to this Python."""
    place = Path(sysconfig.get_path("purelib"))
    by_name = {_normal(each.name): each for each in distributions(path=[str(place)])}
    kept = _closure(by_name)
    of_kept = {name for key in kept for name in _top_names(by_name[key])}
    of_others = {name for key in by_name.keys() - kept for name in _top_names(by_name[key])}
    return [str(place.relative_to("/") / name) for name in sorted(of_others - of_kept)]


def _closure(by_name: dict[str, Distribution]) -> set[str]:
    """Return the names of the packages to keep, among those that exist."""
    kept: set[str] = set()
    waiting = [*_KEPT, *(name for name in by_name if name.startswith(_CUDA))]
    while waiting:
        name = _normal(waiting.pop())
        if name in by_name and name not in kept:
            kept.add(name)
            required = [Requirement(text) for text in by_name[name].requires or ()]
            waiting += [each.name for each in required if "extra" not in str(each.marker)]
    return kept


def _top_names(distribution: Distribution) -> Iterable[str]:
    """Return the first parts of the paths of a package's files."""
    return {path.parts[0] for path in distribution.files or () if path.parts[0] != ".."}


def _normal(name: str) -> str:
    return name.lower().replace("_", "-").replace(".", "-")


def _make_directories(parent: Path) -> None:
    for name, mode in _EMPTY.items():
        (parent / name).mkdir(parents=True)
        (parent / name).chmod(mode)


def _layer(blobs: Path, arguments: list[str]) -> dict[str, Any]:
    archive = blobs / "partial"
    done = subprocess.run(["tar", "--create", f"--file={archive}", "--numeric-owner", *arguments])
    if done.returncode > _CHANGED_WHILE_READ:
        raise ToolError(f"tar exited {done.returncode}; what it said is above")
    with archive.open("rb") as content:
        name = hashlib.file_digest(content, "sha256").hexdigest()
    size = archive.stat().st_size
    archive.rename(blobs / name)
    say(f"a layer of {size / 1e9:.2f} GB")
    return {"mediaType": "application/vnd.oci.image.layer.v1.tar", "digest": f"sha256:{name}", "size": size}


def _json(blobs: Path, media_type: str, content: Any) -> dict[str, Any]:
    data = json.dumps(content).encode()
    name = hashlib.sha256(data).hexdigest()
    (blobs / name).write_bytes(data)
    return {"mediaType": media_type, "digest": f"sha256:{name}", "size": len(data)}


def _environment() -> list[str]:
    """Return the image's variables: our programs first, then this Python's, then the driver's; its compilers."""
    system = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    path = f"/{PACKAGES}/bin:{Path(sys.executable).parent}:{DRIVER}/bin:{system}"
    ours = [f"PATH={path}", f"PYTHONPATH=/{PACKAGES}", f"LD_LIBRARY_PATH={DRIVER}/lib64", "HOME=/root"]
    compilers = [f"{name}={os.environ[name]}" for name in ("CC", "CXX") if name in os.environ]
    return [*ours, *compilers, *_NO_MULTICAST]
