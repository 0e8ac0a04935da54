"""debug: list the paused ranks, and attach an editor or a terminal to them."""

from __future__ import annotations

import time
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from workergroups.debugger import prompt
from workergroups_client import Cluster
from workergroups_client.errors import ClientError, NotFoundError, UnreachableError
from workergroups_client.group import Group
from workergroups_client.tunnel import LOOPBACK
from workergroups_client.waiting import look_again

from . import launch_json
from .options import Context, Format, GroupName, Namespace
from .output import Output, Teller, age, note, print_json, print_text, table

if TYPE_CHECKING:
    from workergroups_api.report import RankPause

_LOOK_SECONDS = 0.5
_DEBUGPY_SECONDS = 15


def debug(
    group: GroupName,
    rank: Annotated[int | None, typer.Option(help="Attach to this rank.")] = None,
    pdb: Annotated[bool, typer.Option("--pdb", help="Open a pdb prompt here instead of a port for an editor.")] = False,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Attach to one paused rank after the other, until Ctrl-C.")
    ] = False,
    port: Annotated[int, typer.Option(help="The port of this machine for the editor; 0 for a free one.")] = 0,
    output: Format = Output.text,
    namespace: Namespace = None,
    context: Context = None,
) -> None:
    """List the ranks that wait for a debugger, or attach to them.

    With --rank, --pdb or --follow it attaches.
    """
    found = Group(group, Cluster(namespace, context))
    if rank is None and not pdb and not follow:
        _list(found, output)
        return
    session = Session(found, rank, to_prompt=pdb, port=port)
    try:
        session.attend(session.paused_now())
        while follow:
            session.attend(session.next_paused())
    except KeyboardInterrupt:
        note("closed")


def _list(group: Group, output: Output) -> None:
    pauses = group.pauses()
    if output is Output.json:
        print_json(pauses)
    elif not pauses:
        note(f"no rank of group {group.name} is paused")
    else:
        rows = [
            (pause.rank, "attached" if pause.attached else "paused", age(pause.since), pause.pod, pause.where)
            for pause in pauses
        ]
        table("RANK", "STATE", "SINCE", "POD", "WHERE", rows=rows)
        note(f"attach: workergroups debug {group.name} --rank {pauses[0].rank}, with --pdb for a prompt")


class Session:
    """A debugger that attends to one pause after the other.

    Args:
        group: The group of the ranks.
        rank: The only rank to attend to; ``None`` for all.
        to_prompt: Whether to open a prompt instead of a port for an editor.
        port: The port of this machine; 0 for a free one.
    """

    def __init__(self, group: Group, rank: int | None, *, to_prompt: bool, port: int) -> None:
        self._group, self._rank, self._to_prompt, self._port = group, rank, to_prompt, port
        self._attended: set[tuple[int, datetime]] = set()

    def paused_now(self) -> RankPause:
        """Return the first pause without a debugger.

        Raises:
            NotFoundError: No rank waits for a debugger, or the wanted one does not.
        """
        pauses = self._group.pauses()
        found = self._first(pauses)
        if found is not None:
            return found
        wanted = "no rank" if self._rank is None else f"rank {self._rank}"
        waits = "waits for a debugger" if self._rank is None else "does not wait for a debugger"
        others = ", ".join(f"{pause.rank}{' (attached)' if pause.attached else ''}" for pause in pauses)
        raise NotFoundError(f"{wanted} of group {self._group.name} {waits}; paused: {others or 'none'}")

    def next_paused(self) -> RankPause:
        """Wait for a pause without a debugger, and return it."""
        with Teller() as tell:
            while (found := self._first(self._group.pauses())) is None:
                tell(f"waiting for a rank of group {self._group.name} to pause, until Ctrl-C")
                time.sleep(_LOOK_SECONDS)
        return found

    def attend(self, pause: RankPause) -> None:
        """Attach the user to a paused rank, and return when the rank continues."""
        self._attended.add(_key(pause))
        note(f"rank {pause.rank} is paused at {pause.where}")
        with self._group.tunnel(self._once_debugpy_listens(pause), local_port=self._port) as tunnel:
            if self._to_prompt:
                prompt.talk(tunnel.port, f"rank {pause.rank}")
            else:
                self._port = tunnel.port  # the same configuration of the editor works for the next rank
                self._wait_for_editor(pause)
        note(f"rank {pause.rank} continues")

    def _first(self, pauses: list[RankPause]) -> RankPause | None:
        for pause in pauses:
            is_wanted = self._rank in (None, pause.rank) and not pause.attached
            if is_wanted and _key(pause) not in self._attended:
                return pause
        return None

    def _once_debugpy_listens(self, pause: RankPause) -> RankPause:
        """Wait until debugpy listens, a second or two after the pause began; else return the pause unchanged."""
        if pause.port is not None:
            return pause
        for _ in look_again(_DEBUGPY_SECONDS):
            for each in self._group.pauses():
                if _key(each) == _key(pause) and each.port is not None:
                    return each
        return pause

    def _wait_for_editor(self, pause: RankPause) -> None:
        name = f"workergroups: {self._group.name}" + ("" if self._rank is None else f" rank {self._rank}")
        print_text(f"{LOOPBACK}:{self._port}")
        try:
            path = launch_json.write(launch_json.configuration(name, self._port, pause.directory))
            note(f"attach a debugger there; in VS Code, start {name!r} from {path}. Ctrl-C closes the tunnel.")
        except ClientError as error:
            note(f"attach a debugger there. {error}. Ctrl-C closes the tunnel.")
        while self._is_there(pause):
            time.sleep(_LOOK_SECONDS)

    def _is_there(self, pause: RankPause) -> bool:
        try:
            return any(_key(each) == _key(pause) for each in self._group.pauses())
        except UnreachableError:
            return True  # the tunnel may still work


def _key(pause: RankPause) -> tuple[int, datetime]:
    """Return what tells a pause from all others of its group."""
    return pause.rank, pause.since
