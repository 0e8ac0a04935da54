"""The verbs by their names: the help and completion need no more, so a verb's module is imported when the verb runs."""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from .command import VerbApp


class Verb(NamedTuple):
    """Where a verb is, and its line in the help."""

    module: str
    attribute: str
    summary: str


VERBS = {
    "init": Verb("init_command", "init", "Write a file with a first pool and a group on it."),
    "up": Verb("lifecycle_commands", "up", "Apply pools and groups, and wait until they are ready."),
    "status": Verb("status_command", "status", "Show pools and groups: conditions, nodes, ranks and jobs."),
    "wait": Verb("wait_command", "wait", "Wait until pools and groups are ready, or have a condition."),
    "check": Verb("check_command", "check", "Check the nodes of a pool: devices, versions, connections."),
    "connect": Verb("connect_commands", "connect", "Run a command with RAY_ADDRESS and RAY_AUTH_TOKEN of a pool."),
    "dashboard": Verb("connect_commands", "dashboard", "Open Ray's dashboard in the browser, and print its address."),
    "logs": Verb("pod_commands", "logs", "Print the logs of ranks, of other processes, or of a node."),
    "stacks": Verb("group_commands", "stacks", "Show the Python stacks of processes, even while they hang."),
    "calls": Verb("group_commands", "calls", "List the calls that have not returned."),
    "top": Verb("top_command", "top", "Show what ranks spend time on, and how busy the devices are."),
    "usage": Verb("usage_command", "usage", "Show for what pools had devices in the past, and what it cost."),
    "debug": Verb("debug_command", "debug", "List the processes that wait for a debugger, or attach to them."),
    "exec": Verb("pod_commands", "exec_", "Run a command on the head, at a process, or on every node."),
    "restart": Verb("lifecycle_commands", "restart", "Restart the ranks of a group or the nodes of a pool, and wait."),
    "scale": Verb("scale_command", "scale", "Change the size of a pool, and wait until it is ready."),
    "suspend": Verb("lifecycle_commands", "suspend", "Suspend a pool or a group, and wait until nothing is left."),
    "resume": Verb("lifecycle_commands", "resume", "Start a suspended pool or group, and wait until it is ready."),
    "down": Verb("lifecycle_commands", "down", "Delete pools with the groups on them, or groups."),
    "job": Verb("job_commands", "app", "Ray jobs of a pool: submit, list, logs, status, stop."),
}


class Verbs(TyperGroup):
    """Lists all verbs, and imports the one that the command line names."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for name, verb in VERBS.items():
            self.add_command(TyperCommand(name, help=verb.summary))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the name, the command and its arguments, as Click does."""
        name, command, rest = super().resolve_command(ctx, args)
        if name is not None:
            self.commands[name] = command = load(name)
        return name, command, rest


def load(name: str) -> Any:
    """Import a verb, and return it as a command of Click."""
    verb = VERBS[name]
    found = getattr(import_module(f".{verb.module}", __package__), verb.attribute)
    parent = VerbApp(rich_markup_mode=None, pretty_exceptions_enable=False)
    if isinstance(found, typer.Typer):
        parent.add_typer(found, name=name)
    else:
        parent.command(name)(found)
    return typer.main.get_group(parent).commands[name]
