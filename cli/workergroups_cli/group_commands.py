"""stacks and calls: what the ranks of a group, or other processes, do, even while they hang."""

from __future__ import annotations

import typer

from workergroups_client import Cluster
from workergroups_client.handles.group import Group
from workergroups_client.pods.process_groups import process_groups
from workergroups_client.pods.processes import ProcessActivity, Processes, pool_of
from workergroups_client.rank_ranges import chosen_of
from workergroups_client.ray_cluster.activity import silent_ranks, stack_groups
from workergroups_client.times import duration

from .json_output import print_list, with_api_names
from .options import AllProcesses, Context, Format, GroupOrProcesses, Namespace, OfPool, Ranks, processes_of
from .output import Output, Teller, note, print_text, table


def stacks(
    target: GroupOrProcesses = None,
    ranks: Ranks = None,
    pool: OfPool = None,
    every: AllProcesses = False,
    output: Format = Output.text,
    namespace: Namespace = None,
    context: Context = None,
) -> None:
    """Show the Python stacks of processes, even while they hang.

    Processes with the same stack are shown once, the ones that the others seem to wait for first. With --ranks, the
    stacks of each of these ranks are shown, all of its threads included.
    """
    cluster = Cluster(namespace, context)
    wanted = processes_of(target, pool, every)
    if wanted is None:
        _stacks_of_ranks(str(target), cluster, ranks, output)
        return
    if ranks is not None:
        raise typer.BadParameter("--ranks needs a group", param_hint="--ranks")
    activity = _activity(cluster, wanted, pool)
    groups = process_groups(activity)
    if output is Output.json:
        print_list("Stack", groups, processes=activity.processes, stacks=activity.stacks)
        return
    for each in groups:
        _print_place(each.who, each.where, each.suspect)
        for line in each.waits:
            print_text(f"  {line}")
        print_text(activity.stacks[each.first].rstrip() + "\n")


def calls(
    target: GroupOrProcesses = None,
    pool: OfPool = None,
    every: AllProcesses = False,
    output: Format = Output.text,
    namespace: Namespace = None,
    context: Context = None,
) -> None:
    """List the calls that have not returned.

    Each has its method, whether it runs or is queued, for how long, who called, and where it is. Ranks at the same
    place share a line. Those that the others seem to wait for come first, marked as suspect.
    """
    cluster = Cluster(namespace, context)
    wanted = processes_of(target, pool, every)
    if wanted is None:
        _calls_of_ranks(str(target), cluster, output)
        return
    activity = _activity(cluster, wanted, pool)
    if output is Output.json:
        print_list("Call", activity.calls, processes=[*activity.processes, *activity.others])
    elif not activity.calls:
        note(f"{wanted} has no calls in flight")
    else:
        _table_of_calls(activity)


def _activity(cluster: Cluster, wanted: str, pool: str | None) -> ProcessActivity:
    with Teller() as tell:
        on = pool_of(cluster, wanted, pool)
        tell(f"asking the pods of {on} for {wanted}")
        activity = Processes.of(cluster, on).activity(wanted)
    for trouble in activity.troubles:
        note(trouble)
    return activity


def _table_of_calls(activity: ProcessActivity) -> None:
    near = {process.id: process for process in (*activity.processes, *activity.others)}
    where = {id_: group.where for group in process_groups(activity) for id_ in group.processes}
    rows = [
        (
            near.get(call.caller),
            call.name,
            call.state,
            duration(call.seconds),
            near.get(call.callee),
            "suspect" if call.callee in activity.ends else "",
            where.get(call.callee, ""),
        )
        for call in activity.calls
    ]
    table("CALLER", "CALL", "STATE", "FOR", "PROCESS", "SUSPECT", "WHERE", rows=rows)


def _stacks_of_ranks(name: str, cluster: Cluster, ranks: str | None, output: Output) -> None:
    with Teller() as tell:
        found = Group(name, cluster)
        tell(f"asking the processes of group {found.name} for their stacks")
        by_rank = found.stacks()
    by_rank = {rank: by_rank[rank] for rank in chosen_of(by_rank, ranks)}
    alike = stack_groups(by_rank)
    if output is Output.json:
        print_list("Stack", alike, group=found.name, stacks=by_rank)
    elif ranks is not None:
        print_text("\n".join(by_rank.values()))
    else:
        for each in alike:
            _print_place(each.who, each.where, each.suspect)
            print_text(by_rank[each.first].rstrip() + "\n")


def _print_place(who: str, where: str, is_suspect: bool) -> None:
    print_text(f"{'suspect: ' if is_suspect else ''}{who} {where}", "red" if is_suspect else "bold")


def _calls_of_ranks(name: str, cluster: Cluster, output: Output) -> None:
    with Teller() as tell:
        found = Group(name, cluster)
        tell(f"asking Ray for the calls of group {found.name}")
        activity = found.activity()
    if output is Output.json:
        calls = map(with_api_names, activity.calls)
        print_list("Call", activity.groups, group=found.name, calls=list(calls))
    elif not activity.calls:
        note(f"group {found.name} has no calls in flight")
        if silent := silent_ranks(activity.stacks):
            note(
                f"without an answer: rank {silent}; a call of it may hang: workergroups stacks {found.name} "
                f"{cluster.options}; workergroups restart {found.name} {cluster.options} replaces the ranks"
            )
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
