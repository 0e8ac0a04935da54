"""A view of the cluster that is shown again when it changes, until Ctrl-C."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple, NoReturn, Protocol

from rich.console import Console
from rich.live import Live
from rich.text import Text

from workergroups_client.api_server.watching import ObjectChanges
from workergroups_client.errors import ClientError

from .output import captured, complain, out, print_text

_TICK_SECONDS = 1.0


class View(Protocol):
    """What was found at one time. Two views are equal if nothing has changed between them."""

    def show(self) -> None:
        """Print it, with the ages and the times that are left as they are now.

        Raises:
            ClientError: A part of it cannot be printed; the others have been.
        """


class _Trouble(NamedTuple):
    """An error instead of a view. The watch goes on: the API server may come back, and a deleted object, too."""

    error: str

    def show(self) -> None:
        raise ClientError(self.error)


def watch(look: Callable[[], View], changes: ObjectChanges) -> NoReturn:
    """Show a view, and again after each change: in place on a terminal, elsewhere below the one before.

    Raises:
        ClientError: The first look fails. Later failures are shown.
    """
    view = look()
    if not out.is_interactive:
        _print_each(view, look, changes)
    # Its own console, since `Live` adds to whatever is printed on its console. It does not refresh by itself: each
    # tick shows the view as it is then.
    screen = Console(highlight=False)
    with Live(console=screen, auto_refresh=False, redirect_stdout=False, redirect_stderr=False) as live:
        while True:
            live.update(Text.from_ansi(captured(partial(_show, view))), refresh=True)
            if changes.wait(_TICK_SECONDS):
                view = _again(look)


def _print_each(view: View, look: Callable[[], View], changes: ObjectChanges) -> NoReturn:
    _show(view)
    while True:
        if changes.wait(_TICK_SECONDS) and (now := _again(look)) != view:
            view = now
            print_text("")
            _show(view)


def _show(view: View) -> None:
    try:
        view.show()
    except ClientError as error:
        complain(error)


def _again(look: Callable[[], View]) -> View:
    try:
        return look()
    except ClientError as error:
        return _Trouble(str(error))
