"""status: pools and groups, their conditions, and what they wait for and until when."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from workergroups_api.vocabulary import Component, Reason
from workergroups_client import Cluster, RayConnection
from workergroups_client.errors import ClientError
from workergroups_client.head_programs import ray_status
from workergroups_client.jobs import JobRecord, list_records
from workergroups_client.kept_records import KeptRecords, merged
from workergroups_client.names import POOL, Target, find_all, list_all, none_here, ray_cluster, running_pods
from workergroups_client.occupants import Occupant, occupants
from workergroups_client.readiness import until, why
from workergroups_client.status import Status, status_of
from workergroups_client.times import moment

from .options import Context, Format, Namespace, complete_name
from .output import Output, age, note, print_json, print_text, table

if TYPE_CHECKING:
    from workergroups_api.failure_policy import KeptFailure

_MARKS = {"True": "green", "False": "red", "Unknown": "yellow"}
_JOBS_SHOWN = 5
_JOBS_SECONDS = 5


def status(
    name: Annotated[
        str | None,
        typer.Argument(help="A pool, a group, or both of one name; by default all.", autocompletion=complete_name),
    ] = None,
    ray: Annotated[bool, typer.Option("--ray", help="Also print the output of `ray status`.")] = False,
    output: Format = Output.text,
    namespace: Namespace = None,
    context: Context = None,
) -> None:
    """Show pools and groups: conditions, nodes, ranks and jobs.

    Each condition has its reason and age. A pool also shows what runs in its bundles. Without a name, a line for each
    pool and group says what it waits for.
    """
    if ray and name is None:
        raise typer.BadParameter("--ray needs a name: each Ray cluster has its own status")
    cluster = Cluster(namespace, context)
    if name is None:
        _overview(cluster, output)
        return
    targets = find_all(cluster, name)
    statuses = [status_of(target) for target in targets]
    jobs, found = _running(cluster, targets)
    of_ray = _of_ray(cluster, targets[0]) if ray else None
    if output is Output.json:
        more = {"ray": of_ray} if ray else {}
        print_json([_as_json(status, jobs, found) | more for status in statuses])
        return
    for target, described in zip(targets, statuses, strict=True):
        _describe(described)
        if target.what == POOL:
            _show_pods(cluster, target)
            _show_occupants(found)
    if jobs:
        table("JOB", "STATE", "STARTED", "COMMAND", rows=[_job_row(job) for job in jobs[:_JOBS_SHOWN]])
    if of_ray:
        print_text(of_ray)


def _overview(cluster: Cluster, output: Output) -> None:
    statuses: list[Status] = []
    unreadable: list[str] = []
    for target in list_all(cluster):
        try:
            statuses.append(status_of(target))
        except ClientError as error:
            unreadable.append(str(error))
    if output is Output.json:
        print_json([_as_json(status) for status in statuses])
    elif statuses:
        table("KIND", "NAME", "READY", "SIZE", "WHY", "UNTIL", rows=[_row(status) for status in statuses])
    elif not unreadable:
        note(none_here(cluster))
    # One object must not hide the others, but a script must notice that it is missing.
    if unreadable:
        raise ClientError("\n".join(unreadable))


def _row(status: Status) -> tuple[object, ...]:
    summary = status.summary
    return (
        status.what,
        status.name,
        summary.status if summary else "-",
        _size(status),
        why(status) if not status.is_ready or status.has_lost_drivers or status.is_complete else "",
        until(status),
    )


def _size(status: Status) -> str:
    return f"{status.ready} of {'?' if status.wanted is None else status.wanted} {_parts(status)}"


def _parts(status: Status) -> str:
    return "nodes" if status.what == POOL else "ranks"


def _describe(status: Status) -> None:
    incarnation = f", incarnation {status.incarnation}" if status.incarnation else ""
    restarts = f", restarted {status.restarts}x after failures" if status.restarts else ""
    waits = f", {until(status)}" if until(status) else ""
    print_text(
        f"{status.what} {status.name} in {status.namespace}: {_size(status)} ready{incarnation}{restarts}{waits}",
        "bold",
    )
    if status.drivers is not None:
        print_text(f"  drivers connected: {status.drivers.running} {', '.join(status.drivers.jobs)}".rstrip())
    if not status.is_current:
        print_text("  this is the status of an older spec: the operator has not seen the new one yet", "yellow")
    for each in status.conditions:
        line = f"  {each.type:<16} {each.status:<8} for {age(each.last_transition_time):<8} {each.reason}"
        mark = "yellow" if each.reason == Reason.DRIVERS_LOST else _MARKS.get(each.status)
        print_text(f"{line}: {each.message}" if each.message else line, mark)
    for node in status.unreserved:
        print_text(f"  node {node.index}: {node.state}: {node.message or node.pod or ''}", "red")
    for failure in status.failures:
        print_text(f"  {_told(failure)}", "red" if failure.incarnation == status.incarnation else None)


def _told(failure: KeptFailure) -> str:
    """Return a failure of a rank in one line."""
    pod = f" in pod {failure.pod}" if failure.pod else ""
    node = f" on node {failure.node}" if failure.node else ""
    end = f"; last words: {failure.last_words}" if failure.last_words else ""
    who = f"incarnation {failure.incarnation}, rank {failure.rank}{pod}{node}, {age(failure.time)} ago"
    return f"{who}: {failure.reason}: {failure.message}{end}"


def _show_pods(cluster: Cluster, target: Target) -> None:
    name = ray_cluster(cluster, target)
    pods = [pod for component in (Component.HEAD, Component.WORKER) for pod in running_pods(cluster, name, component)]
    table("  POD", "NODE", "AGE", rows=[_pod_row(pod) for pod in pods])


def _pod_row(pod: dict[str, dict[str, str]]) -> tuple[str, str, str]:
    created = moment(pod["metadata"]["creationTimestamp"])
    return f"  {pod['metadata']['name']}", pod["spec"].get("nodeName", ""), age(created)


def _show_occupants(found: Sequence[Occupant]) -> None:
    if found:
        rows = [
            (f"  {each.node}", each.who, each.class_name, each.processes, f"{each.devices:g}", age(each.since))
            for each in found
        ]
        table("  NODE", "OCCUPANT", "CLASS", "PROCESSES", "DEVICES", "SINCE", rows=rows)


def _running(cluster: Cluster, targets: Sequence[Target]) -> tuple[list[JobRecord], list[Occupant]]:
    """Return the jobs of the Ray cluster, also those that it has lost, and what runs in the bundles of the pool."""
    name = ray_cluster(cluster, targets[0])
    pool = next((target for target in targets if target.what == POOL), None)
    records = KeptRecords(cluster, name)
    try:
        kept = records.all()
        heads = records.heads()
    except ClientError as error:
        note(f"the kept records of its jobs cannot be read: {error}")
        kept, heads = [], set()
    of_ray, found = _asked_of_ray(cluster, name, pool)
    return merged(of_ray, kept, heads), found


def _asked_of_ray(
    cluster: Cluster, ray_cluster_name: str, pool: Target | None
) -> tuple[list[JobRecord] | None, list[Occupant]]:
    """Return the jobs that Ray knows, and what it has placed in the pool's bundles.

    There are none if the Ray cluster has no head or does not answer.
    """
    if not running_pods(cluster, ray_cluster_name, Component.HEAD):
        return None, []
    try:
        with RayConnection(cluster, ray_cluster_name, seconds=_JOBS_SECONDS) as ray:
            return list_records(ray.api), occupants(ray.api, pool) if pool else []
    except ClientError as error:
        note(f"its jobs, and what runs in its bundles, could not be listed: {error}")
        return None, []


def _of_ray(cluster: Cluster, target: Target) -> str | None:
    """Return the output of `ray status`; none if the Ray cluster has no head or does not answer."""
    if not running_pods(cluster, ray_cluster(cluster, target), Component.HEAD):
        return None
    try:
        return ray_status(cluster, target).strip()
    except ClientError as error:
        note(str(error))
        return None


def _job_row(job: JobRecord) -> tuple[object, ...]:
    return job.id, job.state, age(job.started), job.entrypoint


def _as_json(status: Status, jobs: Sequence[JobRecord] = (), found: Sequence[Occupant] = ()) -> dict[str, object]:
    of_pool = {"jobs": [job.id for job in jobs], "drivers": status.drivers, "occupants": list(found)}
    return {
        "kind": status.what,
        "name": status.name,
        "namespace": status.namespace,
        "ready": status.is_ready,
        "deadline": status.deadline,
        _parts(status): {"wanted": status.wanted, "ready": status.ready},
        "conditions": status.conditions,
        "restarts": status.restarts,
        "failures": [*status.unreserved, *status.failures],
        **(of_pool if status.what == POOL else {}),
    }
