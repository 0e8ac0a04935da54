"""The command line behind the Makefile: `python3 -m tools.demo COMMAND`; CLUSTER=local|kind|current."""

import argparse
import os
import shlex
import sys
from pathlib import Path
from uuid import uuid4

from tools.console import ToolError, say
from tools.demo import clusters, measure, quickstart, release
from tools.demo.kubectl import Kubectl
from tools.demo.names import DEMO_NAMESPACE, OPERATOR_NAMESPACE


def main() -> int:
    """Run one command; print a failure as one message."""
    parser = argparse.ArgumentParser(prog="python3 -m tools.demo", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("run", help="cluster, operator, quickstart, driver, results")
    prepare = commands.add_parser("prepare-tests", help="cluster and operator; prints what the cluster tests need")
    prepare.add_argument(
        "--locked-down", type=int, default=0, metavar="N", help="serve only N new namespaces, with restricted pods"
    )
    commands.add_parser("measure", help="print the memory of the operator and of the quickstart's agent")
    commands.add_parser("clean", help="remove everything, with the local or kind cluster itself")
    arguments = parser.parse_args()
    try:
        _run(arguments)
    except ToolError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def _run(arguments: argparse.Namespace) -> None:
    match arguments.command:
        case "run":
            cluster = clusters.for_demo()
            release.install(cluster, vendors=["nvidia", "amd"])
            results = quickstart.run(Kubectl(cluster.environment(), DEMO_NAMESPACE))
            say("done; the driver's results:")
            print("\n".join(results))
            _say_how_to_go_on(cluster.environment())
        case "prepare-tests":
            cluster = clusters.for_tests()
            mark = uuid4().hex[:6]
            namespaces = [f"locked-{mark}-{number}" for number in range(arguments.locked_down)]
            images = release.install(cluster, ["nvidia", "amd"], namespaces)
            quickstart.remove(Kubectl(cluster.environment(), DEMO_NAMESPACE))
            variables = {
                **cluster.environment(),
                "OPERATOR_IMAGE": images.operator,
                "WORKER_IMAGE": images.worker,
                **cluster.provide_test_images(),
                **({"NAMESPACES": " ".join(namespaces)} if namespaces else {}),
            }
            print("\n".join(f"export {name}={shlex.quote(value)}" for name, value in variables.items()))
        case "measure":
            env = clusters.for_demo().environment()
            print("\n".join(measure.report(Kubectl(env, OPERATOR_NAMESPACE), Kubectl(env, DEMO_NAMESPACE))))
        case "clean":
            for each in clusters.to_remove():
                each.remove()


def _say_how_to_go_on(env: dict[str, str]) -> None:
    exports = {name: value.removesuffix(os.environ["PATH"]) for name, value in env.items()}
    typed = [f"export {name}={value}{'$PATH' if name == 'PATH' else ''}" for name, value in exports.items()]
    get = f"kubectl --namespace {DEMO_NAMESPACE}"
    look = [*typed, f"{get} get resourcepools,workergroups,pods", f"{get} describe workergroup quickstart"]
    look += ["python3 -m venv .venv && .venv/bin/pip install --quiet '.[cli]'"] if not Path(".venv").exists() else []
    look += [". .venv/bin/activate", f"workergroups --namespace {DEMO_NAMESPACE} status"]
    print("\nLook around:", *look, sep="\n  ")
    chosen = os.environ.get("CLUSTER")
    print("\nRemove everything:", f"make clean CLUSTER={chosen}" if chosen else "make clean", sep="\n  ")


if __name__ == "__main__":
    sys.exit(main())
