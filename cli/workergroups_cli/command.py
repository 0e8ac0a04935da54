"""Verbs as commands whose help has one style: arguments and values of options are words such as POOL or FILE."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import typer
from typer.core import TyperCommand

_Function = TypeVar("_Function", bound=Callable[..., Any])


class VerbCommand(TyperCommand):
    """A command whose help shows the metavar of each argument as it is, without a type."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return what follows the verb in its usage: ``[OPTIONS] POOL [-- CMD...]``."""
        return ["[OPTIONS]", *(str(each.metavar) for each in self.get_params(ctx) if _is_argument(each))]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the sections of arguments and options."""
        parameters = self.get_params(ctx)
        for title, is_wanted in (("Arguments", True), ("Options", False)):
            records = [record(each, ctx) for each in parameters if _is_argument(each) == is_wanted]
            if rows := [each for each in records if each is not None]:
                with formatter.section(title):
                    formatter.write_dl(rows)


class VerbApp(typer.Typer):
    """Verbs, each a `VerbCommand`."""

    def command(self, name: str | None = None, **settings: Any) -> Callable[[_Function], _Function]:
        """Register a function as a verb."""
        return super().command(name, cls=VerbCommand, **settings)


def record(parameter: Any, ctx: Any) -> tuple[str, str] | None:
    """Return the name and the help of an argument or option; ``None`` if it is hidden."""
    if _is_argument(parameter):
        return parameter.metavar, parameter.help
    found: tuple[str, str] | None = parameter.get_help_record(ctx)
    return found


def _is_argument(parameter: Any) -> bool:
    return bool(parameter.param_type_name == "argument")
