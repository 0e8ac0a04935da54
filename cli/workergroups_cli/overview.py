"""All pools and groups: a line for each, with what it waits for."""

from __future__ import annotations

from dataclasses import dataclass

from workergroups_client import Cluster
from workergroups_client.errors import ClientError, ForbiddenError
from workergroups_client.objects.names import POOL, list_all, none_here
from workergroups_client.objects.readiness import old, until, why
from workergroups_client.objects.status import Status, status_of

from .output import note, table


@dataclass(frozen=True)
class Overview:
    """The pools and groups of a namespace, or of all namespaces."""

    statuses: list[Status]
    unreadable: list[str]
    """For each object that cannot be read, why."""
    is_everywhere: bool
    nothing: str
    """A sentence for users who find nothing here."""

    def show(self) -> None:
        """Print a line for each of them.

        Raises:
            ClientError: Some of them cannot be read; the others have been printed.
        """
        columns = ["NAMESPACE"] * self.is_everywhere
        columns += ["KIND", "NAME", "READY", "SIZE", "RESTARTS", "OLDEST CALL", "UNTIL", "WHY"]
        rows = [((status.namespace,) * self.is_everywhere + _row(status)) for status in self.statuses]
        if rows:
            table(*columns, rows=rows)
        elif not self.unreadable:
            note(self.nothing)
        self.check()

    def check(self) -> None:
        """Raise a ClientError if some cannot be read: they must not hide the others, but a script must notice it."""
        if self.unreadable:
            raise ClientError("\n".join(self.unreadable))


def look_at_all(cluster: Cluster, *, everywhere: bool) -> Overview:
    """Find all pools and groups of the namespace, or of all namespaces.

    Raises:
        ForbiddenError: The user may not list them.
    """
    statuses, unreadable = [], []
    try:
        targets = list_all(cluster, everywhere=everywhere)
    except ForbiddenError as error:
        raise _way_out(error) if everywhere else error from error
    for target in targets:
        try:
            statuses.append(status_of(target))
        except ClientError as error:
            unreadable.append(str(error))
    return Overview(statuses, unreadable, everywhere, "" if targets else none_here(cluster, everywhere=everywhere))


def _way_out(error: ForbiddenError) -> ForbiddenError:
    return ForbiddenError(f"{error}. To see one namespace: workergroups status -n NAMESPACE")


def size(status: Status) -> str:
    """Return how many nodes or ranks are ready, of how many."""
    return f"{status.ready} of {'?' if status.wanted is None else status.wanted} {parts(status)}"


def parts(status: Status) -> str:
    """Return what is counted: nodes of a pool, ranks of a group."""
    return "nodes" if status.what == POOL else "ranks"


def _row(status: Status) -> tuple[object, ...]:
    summary = status.summary
    return (
        status.what,
        status.name,
        summary.status if summary else "-",
        size(status),
        "-" if status.is_pool else status.restarts,
        status.oldest_call or "-",
        until(status),
        why(status) if not status.is_ready or status.has_lost_drivers or status.is_complete else old(status),
    )
