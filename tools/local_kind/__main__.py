"""The command line: `python3 -m tools.local_kind <command>`."""

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress

from tools.console import ToolError, end_when_told, say
from tools.demo.clusters.choice import Choice, choose, look
from tools.local_cluster import cluster, components
from tools.local_cluster.images import build_base
from tools.local_kind import engine, images, kuberay, tools
from tools.local_kind.layout import BASE_IMAGE, KUBERAY_CHART, NODE_IMAGE, STATE, TOOLS

_CHOSEN = {"CLUSTER": "kind"}


def main() -> int:
    """Run one command; print a failure as one message."""
    arguments = _parser().parse_args()
    os.environ["PATH"] += ":/usr/sbin:/sbin"  # `su` without a login shell lacks them
    try:
        match arguments.command:
            case "up":
                up()
            case "inside":
                return inside(arguments.argv)
            case "down":
                down()
            case "run":
                return run(arguments.argv)
    except ToolError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def run(argv: Sequence[str]) -> int:
    """Start what kind needs, run a command, and remove everything, also a kind cluster on the user's Docker."""
    end_when_told()
    try:
        up()
        return inside(argv)
    finally:
        with suppress(ToolError):
            inside([sys.executable, "-m", "tools.demo", "clean"])
        down()


def up() -> None:
    """Start what the user does not have. First remove what an unclean end has left."""
    choice = _without_ours()
    if choice.name == "kind":
        say(f"kind runs on your own Docker ({choice.why})")
        return
    if os.geteuid() != 0:
        raise ToolError(f"{choice.why}; run this as root to start an engine")
    say(f"kind runs on a Docker engine and with images made here ({choice.why})")
    with cluster.exclusive():
        components.ensure_built()
        base = build_base()
    engine.remove()
    STATE.mkdir(parents=True)
    engine.start()
    tools.build()
    kuberay.write_chart()
    images.provide(base)
    say("the Docker engine has what kind needs")


def inside(argv: Sequence[str]) -> int:
    """Run a command with CLUSTER=kind and the variables that kind needs; return its exit status."""
    if not engine.is_running():
        choice = _without_ours()
        if choice.name != "kind":
            raise ToolError(f"{choice.why}; run `python3 -m tools.local_kind up` first")
        return subprocess.run(argv, env={**os.environ, **_CHOSEN}).returncode
    variables = _CHOSEN | {"KIND_NODE_IMAGE": NODE_IMAGE, "KUBERAY_CHART": str(KUBERAY_CHART), "BASE_IMAGE": BASE_IMAGE}
    path = f"{TOOLS}:{components.binaries()}:{engine.environment()['PATH']}"
    environment = {**os.environ, **engine.environment(), "PATH": path, **variables}
    return subprocess.run(engine.alongside(argv, network=True), env=environment).returncode


def down() -> None:
    """Remove what `up` started, with everything that runs on the engine."""
    engine.remove()
    say("no process, network, mount, control group or file of a Docker engine of ours is left")


def _without_ours() -> Choice:
    """Return whether kind runs on the user's own Docker."""
    return choose(look("", ()))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python3 -m tools.local_kind", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("up", help="see that kind can run: on the user's Docker, else on an engine made here")
    commands.add_parser("down", help="remove the engine made here, and all that runs on it")
    for name, meaning in {"inside": "run a command after `up`", "run": "`up`, a command, `down`"}.items():
        command = commands.add_parser(name, help=meaning)
        command.add_argument("argv", nargs=argparse.REMAINDER, metavar="command")
    return parser


if __name__ == "__main__":
    sys.exit(main())
