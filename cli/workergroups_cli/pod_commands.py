"""exec and logs: run commands in the pods, and print the logs of ranks and nodes."""

from __future__ import annotations

import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Annotated

import typer

from workergroups_client import Cluster, RayConnection
from workergroups_client.execution import Write, execute
from workergroups_client.group import Group
from workergroups_client.logs import LogFile, names_on_node, read
from workergroups_client.names import GROUP, POOL, find, ray_cluster
from workergroups_client.nodes import node_id
from workergroups_client.pods import PodContainer, head, node_of_rank, nodes

from .exit_codes import INTERRUPTED
from .options import Command, Context, Namespace, complete_name
from .output import Teller, note, print_text
from .terminal import attended

Name = Annotated[str, typer.Argument(metavar="NAME", help="A pool or a group.", autocompletion=complete_name)]
_AT_ONCE = 32
_printing = threading.Lock()


def exec_(
    name: Name,
    command: Command = None,
    rank: Annotated[int | None, typer.Option(help="Run it on the node of this rank of the group.")] = None,
    every_node: Annotated[bool, typer.Option("--every-node", help="Run it on each node of the pool, at once.")] = False,
    stdin: Annotated[bool, typer.Option("--stdin", "-i", help="Pass this command's input on to it.")] = False,
    tty: Annotated[
        bool, typer.Option("--tty", "-t", help="Give it this terminal, as a shell needs; implies -i.")
    ] = False,
    namespace: Namespace = None,
    context: Context = None,
) -> None:
    """Run a command on the head, at a rank, or on every node.

    It exits with the code of the command; of several, the highest.
    """
    if not command:
        raise typer.BadParameter("say what to run: workergroups exec POOL -- nvidia-smi")
    if rank is not None and every_node:
        raise typer.BadParameter("--rank and --every-node cannot be combined")
    if every_node and (stdin or tty):
        raise typer.BadParameter("--every-node cannot be combined with --stdin or --tty: input is for one command")
    cluster = Cluster(namespace, context)
    if every_node:
        raise typer.Exit(_on_all(cluster, nodes(cluster, find(cluster, name)), command))
    with Teller() as tell:
        if rank is None:
            where = head(cluster, find(cluster, name))
        else:
            where = node_of_rank(cluster, find(cluster, name, GROUP), str(rank), tell)
    run = partial(execute, cluster, *where, command, stdout=_raw(sys.stdout), stderr=_raw(sys.stderr))
    raise typer.Exit(attended(run, tty=tty) if stdin or tty else run())


def logs(
    name: Name,
    rank: Annotated[str | None, typer.Option(help="Ranks of the group, such as 0-3,7.")] = None,
    node: Annotated[int | None, typer.Option(help="The number of a node of the pool, from 0.")] = None,
    file: Annotated[str | None, typer.Option(help="A log file of that node, such as raylet.out.")] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Continue with new lines, until Ctrl-C.")] = False,
    previous: Annotated[
        bool, typer.Option("--previous", "-p", help="The last lines of ranks that died, even if their pods are gone.")
    ] = False,
    namespace: Namespace = None,
    context: Context = None,
) -> None:
    """Print the logs of a group's ranks, or of a pool's node.

    With --node, it lists the log files of the node, and with --file it prints one of them.
    """
    if previous and (follow or node is not None):
        raise typer.BadParameter("--previous shows ranks that died: it can be combined with --rank only")
    cluster = Cluster(namespace, context)
    if node is not None:
        _node_logs(cluster, name, node, file, follow)
        return
    if file is not None:
        raise typer.BadParameter("--file needs --node: each node has its own files")
    if previous:
        _previous_logs(Group(name, cluster), rank)
        return
    with Teller() as tell, Group(name, cluster, tell) as group:
        for number, line in group.logs(rank, follow=follow):
            tell.quiet()
            _print_line(f"[rank {number}] ", line)


def _previous_logs(group: Group, ranks: str | None) -> None:
    for log in group.previous_logs(ranks):
        dead = log.dead_rank
        where = f" in pod {dead.pod}" if dead.pod else ""
        print_text(
            f"rank {dead.rank} of incarnation {dead.incarnation} died{where} at {dead.died:%Y-%m-%d %H:%M:%S %Z}"
        )
        print_text(f"{dead.reason}: {dead.message}")
        for line in log.lines:
            _print_line(f"[rank {dead.rank}] ", line)


def _node_logs(cluster: Cluster, name: str, number: int, file: str | None, follow: bool) -> None:
    pool = find(cluster, name, POOL)
    with Teller() as tell, RayConnection(cluster, ray_cluster(cluster, pool), tell=tell) as ray:
        node = node_id(cluster, ray.api, pool, number)
        tell.quiet()
        if file is None:
            for each in names_on_node(ray.api, node):
                print_text(each)
            return
        for _, line in read(ray.api, {"": [LogFile.on_node(node, file)]}, follow=follow):
            _print_line("", line)


def _print_line(prefix: str, line: bytes) -> None:
    sys.stdout.write(f"{prefix}{line.decode(errors='replace')}\n")
    sys.stdout.flush()


def _on_all(cluster: Cluster, containers: list[PodContainer], command: list[str]) -> int:
    """Run a command in all containers at once, prefix each line with its pod, and return the highest exit code."""

    def run(container: PodContainer) -> int:
        out, err = _Lines(container.pod, sys.stdout), _Lines(container.pod, sys.stderr)
        code = execute(cluster, container.pod, container.name, command, stdout=out.write, stderr=err.write)
        out.end()
        err.end()
        return code

    threads = ThreadPoolExecutor(max_workers=_AT_ONCE)
    try:
        return max(threads.map(run, containers))
    except KeyboardInterrupt:
        note("the command may still be running in the pods")
        # Python would wait for the threads, which wait for commands that may never end.
        os._exit(INTERRUPTED)


class _Lines:
    """Writes whole lines of one pod, each with the name of the pod, so that lines of several pods do not mix."""

    def __init__(self, pod: str, stream: object) -> None:
        self._prefix, self._write = f"[{pod}] ".encode(), _raw(stream)
        self._rest = b""

    def write(self, data: bytes) -> None:
        *whole, self._rest = (self._rest + data).split(b"\n")
        for line in whole:
            self._print(line)

    def end(self) -> None:
        if self._rest:
            self._print(self._rest)

    def _print(self, line: bytes) -> None:
        with _printing:
            self._write(self._prefix + line + b"\n")


def _raw(stream: object) -> Write:
    """Return a function that writes bytes at once."""
    buffer = stream.buffer  # type: ignore[attr-defined]

    def write(data: bytes) -> None:
        buffer.write(data)
        buffer.flush()

    return write
