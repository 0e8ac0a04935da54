"""debug: list the paused ranks and other processes, and attach an editor or a terminal to them."""

from __future__ import annotations

import time
from contextlib import suppress
from datetime import datetime
from typing import Annotated

import typer

from workergroups.debugger import prompt
from workergroups_client import Cluster
from workergroups_client.api_server.tunnel import LOOPBACK
from workergroups_client.errors import ClientError, DeadlineError, NotFoundError, NotRunningError, UnreachableError
from workergroups_client.objects.names import GROUP, find
from workergroups_client.pods.pauses import PausedProcess, Pauses
from workergroups_client.pods.processes import pool_of
from workergroups_client.rank_ranges import numbers
from workergroups_client.times import age
from workergroups_client.waiting import look_again
from workergroups_common.ranges import ranges

from . import launch_json
from .json_output import print_list
from .options import AllProcesses, Context, Format, GroupOrProcesses, Namespace, OfPool, Ranks, processes_of
from .output import Output, Teller, note, print_text, table

_DEBUGPY_SECONDS = 15
_AGAIN_SECONDS = 1.0


def debug(
    target: GroupOrProcesses = None,
    ranks: Ranks = None,
    pool: OfPool = None,
    every: AllProcesses = False,
    pdb: Annotated[bool, typer.Option("--pdb", help="Open a pdb prompt here instead of a port for an editor.")] = False,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Attach to one paused process after the other, until Ctrl-C.")
    ] = False,
    attach: Annotated[bool, typer.Option("--attach", help="Attach to the first that is paused.")] = False,
    port: Annotated[
        int, typer.Option(metavar="PORT", help="The port of this machine for the editor; 0 for a free one.")
    ] = 0,
    output: Format = Output.text,
    namespace: Namespace = None,
    context: Context = None,
) -> None:
    """List the processes that wait for a debugger, or attach to them.

    With --ranks, --attach, --pdb or --follow it attaches.
    """
    cluster = Cluster(namespace, context)
    wanted = processes_of(target, pool, every)
    if wanted is None:
        found = Pauses(cluster, find(cluster, str(target), GROUP))
    else:
        found = Pauses(cluster, pool_of(cluster, wanted, pool), wanted)
    if ranks is None and not pdb and not follow and not attach:
        _list(found, output)
        return
    session = Session(found, ranks, to_prompt=pdb, port=port)
    try:
        session.attend(session.paused_now())
        while follow:
            session.attend(session.next_paused())
    except KeyboardInterrupt:
        note("closed")


def _list(found: Pauses, output: Output) -> None:
    pauses = found.now()
    if output is Output.json:
        print_list("Pause", pauses)
    elif not pauses:
        note(f"no {found.noun} of {found.name} is paused")
    else:
        rows = [
            (pause.who, "attached" if pause.attached else "paused", age(pause.since), pause.pod, pause.where)
            for pause in pauses
        ]
        table(found.noun.upper(), "STATE", "SINCE", "POD", "WHERE", rows=rows)
        note("attach: the same command with --attach, or with --pdb for a prompt; --ranks chooses ranks")


class Session:
    """A debugger that attends to one pause after the other.

    Args:
        found: The processes.
        ranks: The only ranks to attend to, such as ``0-3,7``; ``None`` for all.
        to_prompt: Whether to open a prompt instead of a port for an editor.
        port: The port of this machine; 0 for a free one.
    """

    def __init__(self, found: Pauses, ranks: str | None, *, to_prompt: bool, port: int) -> None:
        self._found, self._to_prompt, self._port = found, to_prompt, port
        self._ranks = None if ranks is None else numbers(ranks)
        self._named = "" if self._ranks is None else f"rank {ranges(self._ranks).replace(',', ' or ')}"
        self._attended: set[tuple[str, datetime]] = set()

    def paused_now(self) -> PausedProcess:
        """Return the first pause without a debugger.

        Raises:
            NotFoundError: No process waits for a debugger, or the wanted rank does not.
        """
        pauses = self._found.now()
        found = self._first(pauses)
        if found is not None:
            return found
        others = ", ".join(f"{pause.who}{' (attached)' if pause.attached else ''}" for pause in pauses)
        of = f"of {self._found.name}"
        who = f"{self._named} {of} does not wait" if self._named else f"no {self._found.noun} {of} waits"
        raise NotFoundError(f"{who} for a debugger; paused: {others or 'none'}")

    def next_paused(self) -> PausedProcess:
        """Wait for a pause without a debugger, and return it."""
        waiting = f"waiting for a {self._found.noun} of {self._found.name} to pause, until Ctrl-C"
        with Teller() as tell:
            while True:
                try:
                    if (found := self._first(self._found.changed())) is not None:
                        return found
                    tell(waiting)
                except (UnreachableError, DeadlineError) as error:
                    tell(f"{waiting}: {error}")
                    time.sleep(_AGAIN_SECONDS)

    def attend(self, pause: PausedProcess) -> None:
        """Attach the user to a paused process, and return when it continues."""
        self._attended.add(_key(pause))
        note(f"{pause.who} is paused at {pause.where}")
        with self._found.tunnel(self._once_debugpy_listens(pause), local_port=self._port) as tunnel:
            if self._to_prompt:
                prompt.talk(tunnel.port, pause.who)
            else:
                self._port = tunnel.port  # the same configuration of the editor works for the next pause
                self._wait_for_editor(pause)
        note(f"{pause.who} continues")

    def _first(self, pauses: list[PausedProcess]) -> PausedProcess | None:
        for pause in pauses:
            is_wanted = self._ranks is None or pause.rank in self._ranks
            if is_wanted and not pause.attached and _key(pause) not in self._attended:
                return pause
        return None

    def _once_debugpy_listens(self, pause: PausedProcess) -> PausedProcess:
        """Wait until debugpy listens, a second or two after the pause began; else return the pause unchanged."""
        if pause.port is not None:
            return pause
        for _ in look_again(_DEBUGPY_SECONDS):
            with suppress(UnreachableError):
                for each in self._found.changed():
                    if _key(each) == _key(pause) and each.port is not None:
                        return each
        return pause

    def _wait_for_editor(self, pause: PausedProcess) -> None:
        name = f"workergroups: {self._found.name} {self._named}".rstrip()
        print_text(f"{LOOPBACK}:{self._port}")
        try:
            path = launch_json.write(launch_json.configuration(name, self._port, pause.directory))
            note(f"attach a debugger there; in VS Code, start {name!r} from {path}. Ctrl-C closes the tunnel.")
        except ClientError as error:
            note(f"attach a debugger there. {error}. Ctrl-C closes the tunnel.")
        while self._is_there(pause):
            pass  # each look waits for a change

    def _is_there(self, pause: PausedProcess) -> bool:
        try:
            return any(_key(each) == _key(pause) for each in self._found.changed())
        except (UnreachableError, NotRunningError, DeadlineError):
            time.sleep(_AGAIN_SECONDS)
            return True  # the tunnel may still work


def _key(pause: PausedProcess) -> tuple[str, datetime]:
    """Return what tells a pause from all others."""
    return pause.who, pause.since
