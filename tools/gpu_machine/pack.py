"""`python3 -m tools.gpu_machine.pack DIRECTORY`: cut what the GPU machine lacks into pieces that can be carried there.

It runs on a machine that can run the local cluster: it takes binaries and the operator image from its cache, and builds
what is missing.
"""

import re
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tools.console import REPOSITORY, ToolError, run, run_logged, say
from tools.gpu_machine.layout import OPERATOR_ARCHIVE, OPERATOR_NAME
from tools.local_cluster import components, images, oci, packages

# What a call that carries files to the machine takes at most is 64 MiB, with a checkout.
_PIECE_BYTES = 56_000_000
# The machine's Python, and the system that it runs on.
_PYTHON, _PLATFORM = "3.12", "x86_64-manylinux_2_34"
_LOCKS = ("requirements/worker.lock", "requirements/debugger.lock")
# What batches need beside torch, from the lock of this repository's own tests.
_OF_TESTS = ("requirements/dev.lock", ("tensordict", "pyvers", "cloudpickle"))
_UV = REPOSITORY / ".venv/bin/uv"

_DEBIAN_PACKAGES = (
    *("ca-certificates", "conntrack", "containerd", "containernetworking-plugins", "iproute2", "nftables", "openssl"),
    *("procps", "python3-grpcio", "python3-protobuf", "runc"),
)
_STRIPPED = (*(f"usr/share/{name}" for name in ("doc", "info", "locale", "man")), "var/cache/apt", "var/lib/apt/lists")
_CACHE_THERE = "root/.cache/workergroups/local-cluster"
_ZSTD_LIBRARIES = ("libz.so.1", "liblzma.so.5", "liblz4.so.1")


def pack(pieces: Path) -> None:
    """Write all pieces into an empty directory."""
    binaries = components.ensure_built()
    operator = images.build(for_tests=False)["workergroups-operator"]
    pieces.mkdir(parents=True)
    _add_zstd(pieces / "zstd")
    _add_checkout(pieces / "checkout.tar.gz")
    with tempfile.TemporaryDirectory(prefix="workergroups-gpu-") as directory:
        ray, root = Path(directory, "packages"), Path(directory, "root")
        _install_packages(ray)
        _cut(ray, pieces / "packages")
        _debian(root, Path(directory, "debootstrap.log"))
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


def _install_packages(target: Path) -> None:
    """Install what pods of Ray need for the machine's Python. Scripts begin with a path of this machine's."""
    say("installing Ray for the machine's Python")
    where = [f"--target={target}", f"--python-version={_PYTHON}", f"--python-platform={_PLATFORM}"]
    with tempfile.NamedTemporaryFile("w", suffix=".lock") as batches:
        batches.write(_locked(*_OF_TESTS))
        batches.flush()
        locks = [f"--requirements={lock}" for lock in (*_LOCKS, batches.name)]
        run([_UV, "pip", "install", "--quiet", "--no-deps", "--require-hashes", *where, *locks])
    for script in (target / "bin").iterdir():
        first, _, rest = script.read_bytes().partition(b"\n")
        if first.startswith(b"#!") and b"python" in first:
            script.write_bytes(b"#!/usr/bin/env python3\n" + rest)


def _locked(lock: str, names: Sequence[str]) -> str:
    """Return these packages' entries of a lock."""
    text = (REPOSITORY / lock).read_text()
    return "".join(re.findall(rf"(?ms)^(?:{'|'.join(names)})==.*?(?=^\S|\Z)", text))


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
    try:
        pack(Path(sys.argv[1]).resolve())
    except ToolError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
