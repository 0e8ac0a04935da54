"""stacks and calls: what the ranks of a group do, even while they hang."""

from __future__ import annotations

from typing import Annotated

import typer

from workergroups_client import Cluster
from workergroups_client.activity import stack_groups
from workergroups_client.group import Group

from .options import Context, Format, GroupName, Namespace
from .output import Output, Teller, duration, note, print_json, print_text, table


def stacks(
    group: GroupName,
    rank: Annotated[int | None, typer.Option(help="Only this rank.")] = None,
    output: Format = Output.text,
    namespace: Namespace = None,
    context: Context = None,
) -> None:
    """Show the Python stacks of the ranks, even while they hang.

    Ranks with the same stack are shown once, the ones that the others seem to wait for first. With --rank, the stacks
    of one rank are shown, all of its threads included.
    """
    with Teller() as tell:
        found = Group(group, Cluster(namespace, context))
        tell(f"asking the processes of group {found.name} for their stacks")
        by_rank = found.stacks()
    if rank is not None:
        if rank not in by_rank:
            raise typer.BadParameter(
                f"there is no rank {rank}: the group has {len(by_rank)} ranks", param_hint="--rank"
            )
        by_rank = {rank: by_rank[rank]}
    alike = stack_groups(by_rank)
    if output is Output.json:
        print_json({"groups": alike, "stacks": by_rank})
    elif rank is not None:
        print_text(by_rank[rank])
    else:
        for each in alike:
            mark = "suspect: " if each.suspect else ""
            print_text(f"{mark}{each.who} {each.where}", "red" if each.suspect else "bold")
            print_text(by_rank[each.first].rstrip() + "\n")


def calls(group: GroupName, output: Format = Output.text, namespace: Namespace = None, context: Context = None) -> None:
    """List the calls that ranks have not finished.

    Each has its method, whether it runs or is queued, for how long, and the job of the caller. Ranks at the same place
    share a line. Those that the others seem to wait for come first, marked as suspect.
    """
    with Teller() as tell:
        found = Group(group, Cluster(namespace, context))
        tell(f"asking Ray for the calls of group {found.name}")
        activity = found.activity()
    if output is Output.json:
        print_json({"groups": activity.groups, "calls": activity.calls})
    elif not activity.calls:
        note(f"group {found.name} has no calls in flight")
    else:
        rows = [
            (
                each.ranks,
                each.method,
                each.state,
                duration(each.seconds),
                each.job_id,
                "suspect" if each.suspect else "",
                each.where,
            )
            for each in activity.groups
        ]
        table("RANKS", "METHOD", "STATE", "FOR", "JOB", "SUSPECT", "WHERE", rows=rows)
