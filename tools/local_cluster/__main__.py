"""The command line: `python3 -m tools.local_cluster <command>`."""

import argparse
import json
import os
import sys

from tools.console import ToolError
from tools.local_cluster import cluster, components, images, network_policies, oci
from tools.local_cluster.layout import ADMIN_KUBECONFIG, NODES


def main() -> int:
    """Run one command; print a failure as one message."""
    arguments = _parser().parse_args()
    if os.geteuid() != 0:
        print("local_cluster creates namespaces and control groups, so run it as root", file=sys.stderr)
        return 1
    os.environ["PATH"] += ":/usr/sbin:/sbin"  # `su` without a login shell lacks them
    try:
        _run(arguments)
    except ToolError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted; the next `up` or `down` removes what was started", file=sys.stderr)
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python3 -m tools.local_cluster", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    up = commands.add_parser("up", help="start the cluster, or find it running")
    up.add_argument("--build-images", action="store_true", help="build the project's images meanwhile")
    down = commands.add_parser("down", help="stop the cluster and remove all but the cache")
    down.add_argument("--purge", action="store_true", help="also remove the cache of binaries and images")
    commands.add_parser("status", help="show what is running")
    build = commands.add_parser("build-images", help="build the operator's and the worker's image")
    build.add_argument("--for-tests", action="store_true", help="also build the images that the cluster tests need")
    build.add_argument("--print-tags", action="store_true", help="print the references as JSON, build nothing")
    load = commands.add_parser("load-image", help="import a built image into nodes")
    load.add_argument("reference", help="as build-images prints it")
    load.add_argument("nodes", nargs="+", choices=[node.name for node in NODES], metavar="node")
    policies = commands.add_parser("network-policies", help="enforce NetworkPolicies on the nodes, or stop that")
    policies.add_argument("action", choices=["on", "off"])
    commands.add_parser("kubeconfig", help="print the path of the administrator's kubeconfig")
    commands.add_parser("bin", help="print the directory of kubectl, helm and the rest")
    return parser


def _run(arguments: argparse.Namespace) -> None:
    match arguments.command:
        case "kubeconfig":
            print(ADMIN_KUBECONFIG)
        case "bin":
            print(components.binaries())
        case "status":
            cluster.status()
        case "build-images" if arguments.print_tags:
            print(json.dumps(images.tags(), indent=2))
        case _:
            with cluster.exclusive():
                _change(arguments)


def _change(arguments: argparse.Namespace) -> None:
    match arguments.command:
        case "up":
            cluster.up(with_images=arguments.build_images)
        case "down":
            cluster.down(purge=arguments.purge)
        case "build-images":
            print(json.dumps(images.build(for_tests=arguments.for_tests), indent=2))
        case "network-policies":
            (network_policies.enforce if arguments.action == "on" else network_policies.stop_enforcing)()
        case "load-image":
            for node in NODES:
                if node.name in arguments.nodes:
                    oci.load(arguments.reference, node)


if __name__ == "__main__":
    sys.exit(main())
