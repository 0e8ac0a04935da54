"""A pool, a group, or both of one name: conditions, pods, jobs, and what runs in the bundles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from workergroups_api.vocabulary import Component, ConditionType, Reason
from workergroups_client import Cluster, RayConnection
from workergroups_client.errors import ClientError
from workergroups_client.jobs.jobs import list_records
from workergroups_client.jobs.kept_records import KeptRecords, merged
from workergroups_client.jobs.records import JobRecord
from workergroups_client.objects.names import POOL, Target, find_all, ray_cluster, running_pods
from workergroups_client.objects.readiness import until
from workergroups_client.objects.status import Status, status_of
from workergroups_client.pods.head_programs import ray_status
from workergroups_client.pods.holders import Holder, holders
from workergroups_client.pods.pod_states import PodState, described_pods, pod_state
from workergroups_client.ray_cluster.occupants import Occupant, occupants
from workergroups_client.times import age

from .output import note, print_text, table
from .overview import size

if TYPE_CHECKING:
    from workergroups_api.conditions import Condition
    from workergroups_api.failure_policy import KeptFailure
    from workergroups_api.job_record import KeptJobRecord
    from workergroups_api.manifest import Manifest

_MARKS = {"True": "green", "False": "red", "Unknown": "yellow"}
# Of these, True is what a user must look at, or has asked for.
_NEGATIVE = {
    ConditionType.FAILED.value: {"True": "red", "Unknown": "yellow"},
    ConditionType.STALLED.value: {"True": "red", "Unknown": "yellow"},
    ConditionType.SUSPENDED.value: {"True": "yellow", "Unknown": "yellow"},
    ConditionType.IDLE.value: {"True": "yellow", "Unknown": "yellow"},
}
# A message that is not longer is repeated within others.
_SHORT = 40
_JOBS_SHOWN = 5
_JOBS_SECONDS = 5


@dataclass(frozen=True)
class Description:
    """A pool, a group, or both of one name."""

    statuses: list[Status]
    pods: list[PodState]
    """The pods of a pool's Ray cluster."""
    holders: list[Holder]
    """Who holds the devices that some of these pods wait for."""
    jobs: list[JobRecord]
    occupants: list[Occupant]
    ray: str | None
    """The output of `ray status`; ``None`` if it was not requested, or Ray has not answered."""
    notes: list[str]
    """What could not be found out, and why."""

    def show(self) -> None:
        """Print it."""
        for each in self.statuses:
            _describe(each)
            if each.what == POOL and self.pods:
                table("  POD", "STATE", "NODE", "AGE", "WHY", rows=[_pod_row(pod) for pod in self.pods])
            if each.what == POOL:
                _show_holders(self.holders)
                _show_occupants(self.occupants)
        if self.jobs:
            table("JOB", "STATE", "STARTED", "COMMAND", rows=[_job_row(job) for job in self.jobs[:_JOBS_SHOWN]])
        for sentence in self.notes:
            note(sentence)
        if self.ray:
            print_text(self.ray)


def look_at(cluster: Cluster, name: str, *, with_ray: bool) -> Description:
    """Find a pool, a group, or both, and what belongs to them. A part that cannot be read is a note.

    Raises:
        NotFoundError: There is none of that name.
    """
    targets = find_all(cluster, name)
    statuses = [status_of(target) for target in targets]
    notes: list[str] = []
    name_of_ray: str | None = None
    with _noted(notes, f"the jobs of {targets[0]} could not be looked for"):  # such as of a group without its pool
        name_of_ray = ray_cluster(cluster, targets[0])
    if name_of_ray is None:
        return Description(statuses, [], [], [], [], None, notes)
    pool = next((target for target in targets if target.what == POOL), None)
    jobs, found = _running(cluster, name_of_ray, pool, notes)
    pods = _pods(cluster, name_of_ray, notes) if pool else []
    holding = _holding(cluster, pods, notes)
    of_ray = _of_ray(cluster, name_of_ray, targets[0], notes) if with_ray else None
    return Description(statuses, list(map(pod_state, pods)), holding, jobs, found, of_ray, notes)


def _describe(status: Status) -> None:
    # First, as they may be unreadable.
    drivers, unreserved, failures = status.drivers, status.unreserved, status.failures
    incarnation = f", incarnation {status.incarnation}" if status.incarnation else ""
    restarts = f", restarted {status.restarts}x after failures" if status.restarts else ""
    waits = f", {until(status)}" if until(status) else ""
    print_text(
        f"{status.what} {status.name} in {status.namespace}: {size(status)} ready{incarnation}{restarts}{waits}",
        "bold",
    )
    if drivers is not None:
        print_text(f"  drivers connected: {drivers.running} {', '.join(drivers.jobs)}".rstrip())
    if status.oldest_call:
        print_text(f"  oldest call: {status.oldest_call}; where it is: workergroups stacks {status.name}")
    for weights in status.weights:
        print_text(f"  weights: {weights}", "red" if ";" in weights else None)
    if status.last_change:
        print_text(f"  last set by {status.last_change}")
    if not status.is_current:
        print_text("  this is the status of an older spec: the operator has not seen the new one yet", "yellow")
    shown: dict[str, str] = {}
    for each in status.conditions:
        line = f"  {each.type:<16} {each.status:<8} for {age(each.last_transition_time):<8} {each.reason}"
        print_text(f"{line}: {_once(each, shown)}" if each.message else line, _mark(each))
    for node in unreserved:
        more = node.message or node.pod
        print_text(f"  node {node.index}: {node.state}" + (f": {more}" if more else ""), "red")
    for failure in failures:
        print_text(f"  {_told(failure)}", "red" if failure.incarnation == status.incarnation else None)


def _once(condition: Condition, shown: dict[str, str]) -> str:
    """Return the condition's message, without what the message of an earlier condition says; `shown` has those."""
    message = condition.message
    for earlier, type_ in shown.items():
        if earlier == message or (len(earlier) > _SHORT and earlier in message):
            message = message.replace(earlier, f"see {type_}")
    shown.setdefault(condition.message, condition.type)
    return message


def _mark(condition: Condition) -> str | None:
    """Return the colour of a condition."""
    if condition.reason == Reason.DRIVERS_LOST:
        return "yellow"
    return _NEGATIVE.get(str(condition.type), _MARKS).get(condition.status)


def _told(failure: KeptFailure) -> str:
    """Return a failure of a rank in one line."""
    pod = f" in pod {failure.pod}" if failure.pod else ""
    node = f" on node {failure.node}" if failure.node else ""
    end = f"; last words: {failure.last_words}" if failure.last_words else ""
    who = f"incarnation {failure.incarnation}, rank {failure.rank}{pod}{node}, {age(failure.time)} ago"
    return f"{who}: {failure.reason}: {failure.message}{end}"


def _pod_row(pod: PodState) -> tuple[str, ...]:
    return f"  {pod.name}", pod.state, pod.node, age(pod.created), pod.why


def _show_holders(found: Sequence[Holder]) -> None:
    if found:
        rows = [(f"  {each.node}", each.resource, each.namespace, each.who, each.devices) for each in found]
        table("  NODE", "DEVICE", "NAMESPACE", "HELD BY", "COUNT", rows=rows)


def _show_occupants(found: Sequence[Occupant]) -> None:
    if found:
        rows = [
            (f"  {each.node}", each.who, each.class_name, each.processes, _devices(each), age(each.since))
            for each in found
        ]
        table("  NODE", "OCCUPANT", "CLASS", "PROCESSES", "DEVICES", "SINCE", rows=rows)


def _devices(occupant: Occupant) -> str:
    """Return the devices; of processes that each have a part of one, how many there are and the part."""
    part = occupant.devices / occupant.processes
    return f"{occupant.processes} x {part:g}" if 0 < part < 1 else f"{occupant.devices:g}"


@contextmanager
def _noted(notes: list[str], what: str) -> Iterator[None]:
    """Note why a part cannot be read: that hides no other part."""
    try:
        yield
    except ClientError as error:
        notes.append(f"{what}: {error}")


def _running(
    cluster: Cluster, ray_cluster_name: str, pool: Target | None, notes: list[str]
) -> tuple[list[JobRecord], list[Occupant]]:
    """Return the jobs of the Ray cluster, also those that it has lost, and what runs in the bundles of the pool."""
    records = KeptRecords(cluster, ray_cluster_name)
    kept: list[KeptJobRecord] = []
    heads: set[str] = set()
    with _noted(notes, "the kept records of its jobs cannot be read"):
        kept, heads = records.all(), records.heads()
    of_ray, found = _asked_of_ray(cluster, ray_cluster_name, pool, notes)
    return merged(of_ray, kept, heads), found


def _asked_of_ray(
    cluster: Cluster, ray_cluster_name: str, pool: Target | None, notes: list[str]
) -> tuple[list[JobRecord] | None, list[Occupant]]:
    """Return the jobs that Ray knows, and what it has placed in the pool's bundles.

    There are none if the Ray cluster has no head or does not answer.
    """
    of_ray: list[JobRecord] | None = None
    found: list[Occupant] = []
    with _noted(notes, "its jobs, and what runs in its bundles, could not be listed"):
        if running_pods(cluster, ray_cluster_name, Component.HEAD):
            with RayConnection(cluster, ray_cluster_name, seconds=_JOBS_SECONDS) as ray:
                of_ray = list_records(ray.api)
                with _noted(notes, "what runs in its bundles could not be listed"):
                    found = occupants(ray.api, pool) if pool else []
    return of_ray, found


def _pods(cluster: Cluster, ray_cluster_name: str, notes: list[str]) -> list[Manifest]:
    with _noted(notes, "its pods could not be listed"):
        return described_pods(cluster, ray_cluster_name)
    return []


def _holding(cluster: Cluster, pods: Sequence[Manifest], notes: list[str]) -> list[Holder]:
    """Return who holds the devices that some of the pods wait for."""
    with _noted(notes, "who holds the devices that its pods wait for could not be found out"):
        found, unseen = holders(cluster, pods)
        notes.extend([unseen] if unseen else [])
        return found
    return []


def _of_ray(cluster: Cluster, ray_cluster_name: str, target: Target, notes: list[str]) -> str | None:
    """Return the output of `ray status`; none if the Ray cluster has no head or does not answer."""
    with _noted(notes, "the output of `ray status` is missing"):
        if running_pods(cluster, ray_cluster_name, Component.HEAD):
            return ray_status(cluster, target).strip()
    return None


def _job_row(job: JobRecord) -> tuple[object, ...]:
    return job.id, job.state, age(job.started), job.entrypoint
