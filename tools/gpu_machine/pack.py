"""`python3 -m tools.gpu_machine.pack DIRECTORY`: cut what the GPU machine lacks into pieces that can be carried there.

It runs on a machine that can run the local cluster: it takes binaries and the operator image from its cache, and builds
what is missing.
"""

import argparse
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from tools.console import REPOSITORY, ToolError, run, run_logged, say
from tools.gpu_machine.layout import CLI_PACKAGES, OPERATOR_ARCHIVE, OPERATOR_NAME
from tools.local_cluster import components, images, oci, packages

# What a call that carries files to the machine takes at most is 64 MiB, with a checkout.
_PIECE_BYTES = 56_000_000
# The machine's Python, and the system that it runs on.
_PYTHON, _PLATFORM = "3.12", "x86_64-manylinux_2_34"
_LOCKS = ("requirements/worker.lock", "requirements/debugger.lock")
# What batches need beside torch, from the lock of this repository's own tests.
_OF_TESTS = ("requirements/dev.lock", ("tensordict", "pyvers", "cloudpickle"))
# verl and vLLM with all that they require, Ray included, instead of the others. The machine has torch and CUDA's
# libraries; the rest is large, and a training does not use it.
_VERL_LOCK = "requirements/verl.lock"
_NOT_OF_VERL = (
    *("av", "cuda-tile", "cuda-toolkit", "flashinfer-cubin", "tilelang", "tokenspeed-triton", "z3-solver"),
    *("torch", "torchaudio", "torchvision", "triton", "nvidia-(?!ml-py).*"),
)
_CLI_LOCK = "requirements/cli.lock"
_UV = REPOSITORY / ".venv/bin/uv"

_DEBIAN_PACKAGES = (
    *("ca-certificates", "conntrack", "containerd", "containernetworking-plugins", "iproute2", "nftables", "openssl"),
    *("procps", "python3-grpcio", "python3-protobuf", "runc"),
)
_STRIPPED = (*(f"usr/share/{name}" for name in ("doc", "info", "locale", "man")), "var/cache/apt", "var/lib/apt/lists")
_CACHE_THERE = "root/.cache/workergroups/local-cluster"
_ZSTD_LIBRARIES = ("libz.so.1", "liblzma.so.5", "liblz4.so.1")


def pack(pieces: Path, with_verl: bool) -> None:
    """Write all pieces into an empty directory."""
    binaries = components.ensure_built()
    operator = images.build(for_tests=False)["workergroups-operator"]
    pieces.mkdir(parents=True)
    _add_zstd(pieces / "zstd")
    _add_checkout(pieces / "checkout.tar.gz")
    with tempfile.TemporaryDirectory(prefix="workergroups-gpu-") as directory:
        ours, root = Path(directory, "packages"), Path(directory, "root")
        _install_packages(ours, with_verl)
        _cut(ours, pieces / "packages")
        _debian(root, Path(directory, "debootstrap.log"))
        _install(root / CLI_PACKAGES.lstrip("/"), [_CLI_LOCK])
        shutil.copytree(binaries, root / _CACHE_THERE / "bin" / binaries.name)
        oci.write_archive(operator, OPERATOR_NAME, root / OPERATOR_ARCHIVE.lstrip("/"))
        _cut(root, pieces / "root")
    say(f"{sum(1 for _ in pieces.iterdir())} pieces are in {pieces}")


def _add_zstd(directory: Path) -> None:
    """Add this machine's zstd with its libraries."""
    directory.mkdir()
    shutil.copy(shutil.which("zstd") or "zstd", directory)
    for library in _ZSTD_LIBRARIES:
        shutil.copy(Path("/lib/x86_64-linux-gnu", library), directory)


def _add_checkout(archive: Path) -> None:
    """Add the files of this checkout that git does not ignore, as they are now."""
    listed = run(["git", "ls-files", "--cached", "--others", "--exclude-standard"])
    existing = "\n".join(path for path in listed.splitlines() if (REPOSITORY / path).exists())
    run(["tar", "--create", "--gzip", f"--file={archive.resolve()}", "--files-from=-"], stdin=existing)


def _install_packages(target: Path, with_verl: bool) -> None:
    """Install what pods of Ray need for the machine's Python. Scripts begin with a path of this machine's."""
    say("installing Ray for the machine's Python")
    text = _locked_but(_VERL_LOCK, _NOT_OF_VERL) if with_verl else _locked(*_OF_TESTS)
    with tempfile.NamedTemporaryFile("w", suffix=".lock") as file:
        file.write(text)
        file.flush()
        where = [f"--python-version={_PYTHON}", f"--python-platform={_PLATFORM}"]
        _install(target, [file.name] if with_verl else [*_LOCKS, file.name], *where)
    for script in (target / "bin").iterdir():
        first, _, rest = script.read_bytes().partition(b"\n")
        if first.startswith(b"#!") and b"python" in first:
            script.write_bytes(b"#!/usr/bin/env python3\n" + rest)


def _install(target: Path, locks: Iterable[str], *where: str) -> None:
    options = ("--quiet", "--no-deps", "--require-hashes", f"--target={target}")
    run([_UV, "pip", "install", *options, *where, *(f"--requirements={lock}" for lock in locks)])


def _locked(lock: str, names: Sequence[str]) -> str:
    """Return these packages' entries of a lock."""
    return "".join(entry for name, entry in _entries(lock) if name in names)


def _locked_but(lock: str, patterns: Sequence[str]) -> str:
    """Return the entries of a lock without the packages whose names are like that."""
    left_out = re.compile("|".join(patterns))
    return "".join(entry for name, entry in _entries(lock) if not left_out.fullmatch(name))


def _entries(lock: str) -> Iterator[tuple[str, str]]:
    """Return each package's name and entry."""
    text = (REPOSITORY / lock).read_text()
    return ((found[1], found[0]) for found in re.finditer(r"(?ms)^([\w.-]+)==.*?(?=^\S|\Z)", text))


def _debian(root: Path, log: Path) -> None:
    """Make the Debian in which the cluster will run: as on this machine, but without what only builds need."""
    packages.install_for_images()
    say(f"making a Debian with the cluster's packages (log: {log})")
    private = ["unshare", "--mount", "--propagation", "private"]
    include = f"--include={','.join(_DEBIAN_PACKAGES)}"
    run_logged([*private, "debootstrap", "--variant=minbase", include, "bookworm", root], log)
    for path in _STRIPPED:
        shutil.rmtree(root / path, ignore_errors=True)


def _cut(directory: Path, pieces: Path) -> None:
    """Write a directory as pieces of a compressed archive: PIECES.00, PIECES.01, ..."""
    say(f"compressing {pieces.name}")
    left_out = "--exclude=__pycache__ --exclude=./proc/* --exclude=./sys/*"
    tar = f"tar --create --numeric-owner --directory={directory} {left_out} ."
    split = f"split --bytes={_PIECE_BYTES} --numeric-suffixes - {pieces}."
    run(["bash", "-o", "pipefail", "-c", f"{tar} | zstd -6 | {split}"])


def main() -> int:
    """Pack; print a failure as one message."""
    parser = argparse.ArgumentParser(prog="python3 -m tools.gpu_machine.pack")
    parser.add_argument("pieces", type=Path, help="an empty directory")
    parser.add_argument("--verl", action="store_true", help="also verl and vLLM, which the check `verl` needs")
    arguments = parser.parse_args()
    try:
        pack(arguments.pieces.resolve(), arguments.verl)
    except ToolError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
