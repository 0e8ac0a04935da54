"""exec and logs: run commands in the pods, and print the logs of ranks and nodes."""

from __future__ import annotations

import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from functools import partial
from typing import Annotated

import typer

from workergroups.processes.listing import is_target
from workergroups_client import Cluster, RayConnection
from workergroups_client.api_server.execution import execute
from workergroups_client.api_server.kubeconfig import remove_files
from workergroups_client.errors import ClientError, NotRunningError
from workergroups_client.handles.group import Group
from workergroups_client.objects.names import GROUP, POOL, find, ray_cluster
from workergroups_client.pods.logs import LogFile, LogPart, names_on_node, read
from workergroups_client.pods.nodes import node_id
from workergroups_client.pods.pods import PodContainer, head, nodes, nodes_of_ranks, ray_pods
from workergroups_client.pods.previous import previous_logs
from workergroups_client.pods.processes import Processes, pool_of
from workergroups_client.rank_ranges import numbers
from workergroups_client.waiting import Tell

from .command_words import refuse_unfit
from .exit_codes import INTERRUPTED
from .options import Command, Context, Namespace, OfPool, Ranks, complete_name, seconds_of
from .output import ProgramOutput, Teller, note, print_bytes, print_text
from .terminal import attended

Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="A pool or a group; or job/ID, actor/NAME, actor/CLASS, node/POD or all.",
        autocompletion=complete_name,
    ),
]
_AT_ONCE = 32
_printing = threading.Lock()


def exec_(
    name: Name,
    command: Command = None,
    ranks: Ranks = None,
    every_node: Annotated[bool, typer.Option("--every-node", help="Run it on each node of the pool, at once.")] = False,
    pool: OfPool = None,
    stdin: Annotated[bool, typer.Option("--stdin", "-i", help="Pass this command's input on to it.")] = False,
    tty: Annotated[
        bool, typer.Option("--tty", "-t", help="Give it this terminal, as a shell needs; implies -i.")
    ] = False,
    namespace: Namespace = None,
    context: Context = None,
) -> None:
    """Run a command on the head, at a process, or on every node.

    With several ranks, it runs once on each of their nodes. It exits with the code of the command; of several, the
    highest.
    """
    if not command:
        raise typer.BadParameter("say what to run: workergroups exec POOL -- nvidia-smi")
    refuse_unfit(command)
    if ranks is not None and every_node:
        raise typer.BadParameter("--ranks and --every-node cannot be combined")
    are_several = every_node or (ranks is not None and len(numbers(ranks)) > 1)
    if are_several and (stdin or tty):
        raise typer.BadParameter("input is for one command: --stdin and --tty need the head, or one rank")
    cluster = Cluster(namespace, context)
    with Teller() as tell:
        containers = _containers(cluster, name, ranks, pool, every_node=every_node, tell=tell)
    if are_several or len(containers) > 1:
        if stdin or tty:
            raise typer.BadParameter(f"{name} is in several pods, but input is for one: choose a node/POD")
        raise typer.Exit(_on_all(cluster, containers, command))
    run = partial(
        execute,
        cluster,
        *containers[0],
        command,
        stdout=partial(print_bytes, sys.stdout),
        stderr=partial(print_bytes, sys.stderr),
    )
    raise typer.Exit(attended(run, tty=tty) if stdin or tty else run())


def _containers(
    cluster: Cluster, name: str, ranks: str | None, pool: str | None, *, every_node: bool, tell: Tell
) -> list[PodContainer]:
    """Return the containers in which to run a command."""
    if is_target(name):
        if ranks is not None or every_node:
            raise typer.BadParameter(f"{name} says where: leave out --ranks and --every-node")
        on = pool_of(cluster, name, pool)
        pods = Processes.of(cluster, on).pods(name)
        found = [each for each in ray_pods(cluster, on) if each.pod in pods]
        if not found:
            raise NotRunningError(f"{name} has ended, or its pod has, while it was looked for")
        return found
    if ranks is not None:
        return nodes_of_ranks(cluster, find(cluster, name, GROUP), ranks, tell)
    target = find(cluster, name)
    return nodes(cluster, target) if every_node else [head(cluster, target)]


def logs(
    name: Name,
    ranks: Ranks = None,
    node: Annotated[int | None, typer.Option(metavar="N", help="The number of a node of the pool, from 0.")] = None,
    file: Annotated[
        str | None, typer.Option(metavar="FILE", help="A log file of that node, such as raylet.out.")
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Continue with new lines, until Ctrl-C.")] = False,
    tail: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="That many of the last lines of each log; by default 1000.")
    ] = None,
    since: Annotated[
        str | None, typer.Option(metavar="TIME", help="Only lines that are not older, such as 90s, 10m or 1h30m.")
    ] = None,
    previous: Annotated[
        bool,
        typer.Option(
            "--previous", "-p", help="The last lines of those that died; of ranks, even if their pods are gone."
        ),
    ] = False,
    pool: OfPool = None,
    namespace: Namespace = None,
    context: Context = None,
) -> None:
    """Print the logs of ranks, of other processes, or of a node.

    With --node, it lists the log files of the node, and with --file it prints one of them. --since can leave out only
    lines that begin with a time, and those that follow them.
    """
    if previous and (follow or since or node is not None):
        raise typer.BadParameter("--previous shows what died: it can be combined with --ranks and --tail only")
    if node is not None and ranks is not None:
        raise typer.BadParameter("--node and --ranks cannot be combined: ranks have their own output")
    earliest = None if since is None else time.time() - seconds_of(since, "--since")
    part = LogPart(follow, tail, earliest)
    cluster = Cluster(namespace, context)
    if is_target(name):
        if ranks is not None or node is not None or file is not None or follow:
            raise typer.BadParameter(f"{name} can be combined with --previous, --tail, --since and --pool only")
        _process_logs(Processes.of(cluster, pool_of(cluster, name, pool)), name, previous, part)
        return
    if node is not None:
        _node_logs(cluster, name, node, file, part)
        return
    if file is not None:
        raise typer.BadParameter("--file needs --node: each node has its own files")
    if previous:
        _previous_logs(cluster, name, ranks, tail)
        return
    has_printed = False
    with Teller() as tell, Group(name, cluster, tell) as group:
        for number, line in group.logs(ranks, follow=follow, tail=tail, since=earliest):
            tell.quiet()
            _print_line(f"[rank {number}] ", line)
            has_printed = True
    if not has_printed:
        note(f"the ranks of group {group.name} have printed nothing" + (f" in the last {since}" if since else ""))


def _previous_logs(cluster: Cluster, name: str, ranks: str | None, tail: int | None) -> None:
    for log in previous_logs(cluster, find(cluster, name, GROUP), ranks):
        dead = log.dead_rank
        where = f" in pod {dead.pod}" if dead.pod else ""
        print_text(
            f"rank {dead.rank} of incarnation {dead.incarnation} died{where} at {dead.died:%Y-%m-%d %H:%M:%S %Z}"
        )
        print_text(f"{dead.reason}: {dead.message}")
        for line in log.lines[-tail if tail else None :]:
            _print_line(f"[rank {dead.rank}] ", line)


def _process_logs(processes: Processes, target: str, previous: bool, part: LogPart) -> None:
    """Print the last lines of the living processes of a target, or of its actors that died."""
    if not previous:
        found = processes.logs(target)
        for process, text in found:
            _print_lines(f"[{process} {process.pid}] ", text, part)
        if not found:
            note("there are no actors and no tasks; the output of a job's driver: workergroups job logs")
        return
    for dead, text in processes.previous_logs(target):
        who, died = f"actor {dead.actor.class_name}", datetime.fromtimestamp(dead.died, timezone.utc)
        where = f" in pod {dead.pod}" if dead.pod else ""
        print_text(f"{who} of job {dead.job} (pid {dead.pid}) died{where} at {died:%Y-%m-%d %H:%M:%S %Z}")
        print_text(f"{dead.reason}: {dead.message}")
        _print_lines(f"[{who} {dead.pid}] ", text, part)


def _print_lines(prefix: str, text: str, part: LogPart) -> None:
    lines = text.encode(errors="replace").splitlines()[-part.lines :]
    for line in part.recent(lines):
        _print_line(prefix, line)


def _node_logs(cluster: Cluster, name: str, number: int, file: str | None, part: LogPart) -> None:
    pool = find(cluster, name, POOL)
    with Teller() as tell, RayConnection(cluster, ray_cluster(cluster, pool), tell=tell) as ray:
        node = node_id(cluster, ray.api, pool, number)
        tell.quiet()
        if file is None:
            for each in names_on_node(ray.api, node):
                print_text(each)
            return
        for _, line in read(ray.api, {"": [LogFile.on_node(node, file)]}, part):
            _print_line("", line)


def _print_line(prefix: str, line: bytes) -> None:
    ProgramOutput().print(prefix.encode() + line + b"\n")


def _on_all(cluster: Cluster, containers: list[PodContainer], command: list[str]) -> int:
    """Run a command in all containers at once, prefix each line with its pod, and return the highest exit code."""

    def run(container: PodContainer) -> int:
        out, err = _Lines(container.pod, sys.stdout), _Lines(container.pod, sys.stderr)
        try:
            code = execute(cluster, container.pod, container.name, command, stdout=out.write, stderr=err.write)
        except ClientError as error:  # such as of a pod that has ended; the others are still of interest
            err.write(f"error: {error}\n".encode())
            code = 1
        out.end()
        err.end()
        return code

    threads = ThreadPoolExecutor(max_workers=_AT_ONCE)
    try:
        return max(threads.map(run, containers))
    except KeyboardInterrupt:
        note("the command may still be running in the pods")
        # Python would wait for the threads, which wait for commands that may never end. Its exit handlers do not run.
        remove_files()
        os._exit(INTERRUPTED)


class _Lines:
    """Writes whole lines of one pod, each with the name of the pod, so that lines of several pods do not mix."""

    def __init__(self, pod: str, stream: object) -> None:
        self._prefix, self._stream = f"[{pod}] ".encode(), stream
        self._parts: list[bytes] = []

    def write(self, data: bytes) -> None:
        for number, part in enumerate(data.split(b"\n")):
            if number:
                self._print()
            self._parts.append(part)

    def end(self) -> None:
        if any(self._parts):
            self._print()

    def _print(self) -> None:
        with _printing:
            print_bytes(self._stream, b"".join([self._prefix, *self._parts, b"\n"]))
        self._parts.clear()
