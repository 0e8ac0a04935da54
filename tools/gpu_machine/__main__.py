"""What runs on the GPU machine: `python3 -m tools.gpu_machine <command>`, in the checkout that was carried there."""

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tools.console import REPOSITORY, ToolError, run, say
from tools.gpu_machine import image
from tools.gpu_machine.layout import CHECKOUT, DRIVER, IMAGE, RESULTS, ROOT, WORK

_SIZE = "100G"
_HERE = Path(__file__).parent
# Nothing of the machine's Python may be in the way of the root's.
_INSIDE = (
    *("env", "--ignore-environment", f"--chdir={CHECKOUT}"),
    *("HOME=/root", "LC_ALL=C.UTF-8", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "PYTHONUNBUFFERED=1"),
    *("python3", "-m", "tools.gpu_machine.inside"),
)
_FIRST_PROCESS = ROOT / "var/lib/workergroups-cluster/pids/etcd"


def main() -> int:
    """Run one command; print a failure as one message."""
    parser = argparse.ArgumentParser(prog="python3 -m tools.gpu_machine", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    with_pieces = {
        "all": "write the image, start the cluster, run all checks on one node and on two",
        "image": "write the pods' image",
        "up": "start the cluster and the operator",
    }
    for name, text in with_pieces.items():
        commands.add_parser(name, help=text).add_argument("pieces", type=Path, help="the directory with all pieces")
    checks = commands.add_parser("check", help="run checks on the cluster; results go to $OUT")
    checks.add_argument("--nodes", type=int, choices=(1, 2), default=1, help="on how many nodes the GPUs are")
    checks.add_argument("names", nargs="*", help="which checks; by default all")
    arguments = parser.parse_args()
    try:
        _mount()
        if arguments.command in ("all", "image"):
            _write_image(arguments.pieces)
        if arguments.command in ("all", "up"):
            _up(arguments.pieces)
        match arguments.command:
            case "all":
                held = [_check(nodes, []) for nodes in (1, 2)]
                return 0 if all(held) else 1
            case "check":
                return 0 if _check(arguments.nodes, arguments.names) else 1
    except ToolError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def _mount() -> None:
    WORK.mkdir(exist_ok=True)
    if not WORK.is_mount():
        run(["mount", "-t", "tmpfs", "-o", f"size={_SIZE}", "tmpfs", WORK])


def _write_image(pieces: Path) -> None:
    """Write the image, for which only the pieces with our Python packages must be there."""
    packages = WORK / "packages"
    _unpack(pieces, "packages", packages)
    image.write(ROOT / IMAGE.lstrip("/"), packages)
    say("the image is written")


def _up(pieces: Path) -> None:
    """Start the cluster in the root, where it stays when this ends."""
    _unpack(pieces, "root", ROOT)
    shutil.copytree(REPOSITORY, ROOT / CHECKOUT.lstrip("/"), dirs_exist_ok=True)
    say("the root is unpacked")
    enter = ["unshare", "--mount", "sh", str(_HERE / "enter.sh"), str(ROOT), DRIVER]
    if code := subprocess.run([*enter, *_INSIDE, "up"]).returncode:
        raise ToolError(f"the cluster's start exited {code}; its messages are above")


def _check(nodes: int, names: list[str]) -> bool:
    """Run checks from this checkout, which may be newer than that of `up`, and take what they have written.

    Returns whether everything held.
    """
    shutil.copytree(REPOSITORY, ROOT / CHECKOUT.lstrip("/"), dirs_exist_ok=True)
    first = json.loads(_FIRST_PROCESS.read_text())["pid"]
    enter = ["nsenter", f"--target={first}", "--mount", "--root"]
    done = subprocess.run([*enter, *_INSIDE, "check", str(nodes), *names])
    results = ROOT / RESULTS.lstrip("/")
    if results.is_dir():
        shutil.copytree(results, os.environ["OUT"], dirs_exist_ok=True)
    return done.returncode == 0


def _unpack(pieces: Path, name: str, target: Path) -> None:
    """Unpack what `pack` has cut into pieces; with its own zstd, which the machine lacks."""
    target.mkdir(parents=True, exist_ok=True)
    parts = " ".join(str(part) for part in sorted(pieces.resolve().glob(f"{name}.[0-9][0-9]")))
    own = pieces.resolve() / "zstd"
    zstd = f"LD_LIBRARY_PATH={own} {own}/zstd --decompress --stdout"
    run(["bash", "-o", "pipefail", "-c", f"cat {parts} | {zstd} | tar --extract --directory={target}"])


if __name__ == "__main__":
    sys.exit(main())
