"""up, restart, suspend, resume and down: create, restart, set aside and delete pools and groups."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from workergroups_api.manifest import Manifest
from workergroups_client import Cluster, Group, Pool
from workergroups_client.errors import ClientError, ConflictError
from workergroups_client.files.manifests import load, namespace_of
from workergroups_client.files.plan import Action, PlanStep, explained, plan
from workergroups_client.objects.deletion import code_left, delete, groups_on
from workergroups_client.objects.names import GROUP, POOL, Target, as_target, find, find_all, list_all, ray_cluster
from workergroups_client.objects.status import status_of
from workergroups_client.objects.suspending import begin_to_wake
from workergroups_client.ray_cluster.handle import Handle

from .command_words import look_at, note_expanded, refuse_manifests
from .connect_commands import hold
from .exit_codes import INTERRUPTED
from .job_commands import follow
from .options import (
    LONGEST_WAIT,
    Command,
    Context,
    Env,
    EnvFrom,
    Name,
    Names,
    Namespace,
    Timeout,
    WorkingDir,
    complete_name,
    seconds_of,
    variable,
)
from .output import Teller, err, note, print_text
from .progress import listed, show_until_ready
from .signals import on


def up(
    command: Command = None,
    file: Annotated[
        str,
        typer.Option("--file", "-f", metavar="FILE", help="A file, a directory, a kustomization, or - for the input."),
    ] = ".",
    force_conflicts: Annotated[
        bool, typer.Option("--force-conflicts", help="Take over fields that another tool holds, such as kubectl apply.")
    ] = False,
    attach: Annotated[bool, typer.Option("--attach", help="Hold a tunnel to Ray's dashboard until Ctrl-C.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before objects are created or changed.")] = False,
    working_dir: WorkingDir = None,
    env: Env = None,
    env_from: EnvFrom = None,
    timeout: Timeout = LONGEST_WAIT,
    namespace: Namespace = None,
    context: Context = None,
) -> None:
    """Apply pools and groups, and wait until they are ready.

    It shows what it will create, change and leave, and on a terminal it asks first. While it waits, it shows the
    progress, also after progressDeadlineSeconds. Then it runs the command, if there is one, as a job, and
    follows the job. Ctrl-C leaves everything running.
    """
    seconds = seconds_of(timeout)
    if not command and (working_dir or env or env_from):
        raise typer.BadParameter("--working-dir, --env and --env-from are for a command: add -- CMD")
    refuse_manifests(command or ())
    variables = dict(map(variable, env or []))
    note_expanded(variables)
    look_at(command or (), has_working_dir=working_dir is not None)
    manifests = load(file)
    if (command or attach) and not any(map(as_target, manifests)):
        raise ClientError("there is no pool and no group among the objects, which a command and --attach need")
    cluster = Cluster(namespace_of(manifests, namespace), context)
    steps = _confirm_plan(cluster, manifests, force=force_conflicts, is_confirmed=yes)
    targets = _apply(cluster, manifests, steps, force=force_conflicts)
    if not targets:
        note("there is no pool and no group among the objects: nothing to wait for")
        return
    if command or attach:
        _wake(cluster, targets)
    show_until_ready(cluster, targets, seconds)
    pools = [target for target in targets if target.what == POOL] or targets
    with Teller() as tell, Pool(f"{pools[0].what}/{pools[0].name}", cluster, tell) as pool:
        if command:
            job = pool.submit(command, working_dir=working_dir, env=variables, env_from=env_from or ())
            tell.quiet()
            note(f"job {job.id} on pool {pool.name}")
            raise typer.Exit(follow(job, cluster, tell))
        if attach:
            url = pool.ray.url
            tell.quiet()
            hold(
                f"Ray's dashboard of pool {pool.name} is at {url} until Ctrl-C; to log a browser in: "
                f"workergroups dashboard {pool.name} {cluster.options}"
            )


def restart(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="A group, or a pool; pool/NAME if both have the name.", autocompletion=complete_name
        ),
    ],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before a pool is restarted.")] = False,
    timeout: Timeout = LONGEST_WAIT,
    namespace: Namespace = None,
    context: Context = None,
) -> None:
    """Restart the ranks of a group or the nodes of a pool, and wait.

    The pods of a group stay; its ranks are a new incarnation. The nodes of a pool are replaced one by one, by nodes of
    its present spec; then its groups get a new incarnation. Ctrl-C leaves them running.
    """
    seconds = seconds_of(timeout)
    cluster = Cluster(namespace, context)
    found = find(cluster, name, GROUP, POOL)
    if found.what == POOL:
        _restart_pool(cluster, found, seconds, is_confirmed=yes)
        return
    note(f"group {found.name}: incarnation {Group(f'{GROUP}/{found.name}', cluster).restart()}")
    show_until_ready(cluster, [found], seconds)


def _restart_pool(cluster: Cluster, pool: Target, seconds: float, *, is_confirmed: bool) -> None:
    groups, others = groups_on(cluster, pool), _sharing(cluster, pool)
    note(f"In namespace {cluster.namespace} (context {cluster.context}), this replaces the nodes of {pool} one by one")
    if (old := status_of(pool).what_is_old) is not None:
        note(f"  {old.message}")
    if groups:
        note(f"  until the last one is replaced, these have no ranks: {listed(groups)}")
    if others:
        shared = f"{ray_cluster(cluster, pool)}, which {listed(others)} {'share' if len(others) > 1 else 'shares'}"
        note(f"  if the head is replaced, all ranks and jobs on Ray cluster {shared}, end")
    _confirm("Restart?", is_confirmed=is_confirmed)
    with Teller() as tell:
        Pool(f"{POOL}/{pool.name}", cluster, tell).restart()
    show_until_ready(cluster, [pool, *groups], seconds)


def _sharing(cluster: Cluster, pool: Target) -> list[Target]:
    """Return the other pools on the Ray cluster of a pool."""
    of_pool = ray_cluster(cluster, pool)
    pools = list_all(cluster, POOL)
    return [other for other in pools if other.name != pool.name and ray_cluster(cluster, other) == of_pool]


def _confirm(question: str, *, is_confirmed: bool) -> None:
    if is_confirmed:
        return
    if not sys.stdin.isatty():
        raise typer.BadParameter("without a terminal, there is no one to confirm: add --yes")
    with on(signal.SIGINT, _leave):
        typer.confirm(question, abort=True, err=True)


def _leave() -> None:
    """End the command as Ctrl-C does anywhere else; typer takes it for an answer."""
    err.print()
    raise typer.Exit(INTERRUPTED)


def suspend(name: Name, timeout: Timeout = LONGEST_WAIT, namespace: Namespace = None, context: Context = None) -> None:
    """Suspend a pool or a group, and wait until nothing is left.

    A suspended pool has no pods and holds no devices: its ranks and jobs end. A suspended group has no ranks, and its
    pool keeps the bundles, for other groups.
    """
    seconds = seconds_of(timeout)
    cluster = Cluster(namespace, context)
    with Teller() as tell:
        found = Handle(cluster, find(cluster, name, POOL, GROUP), tell)
        found.suspend()
        found.wait_suspended(seconds)
    again = f"workergroups resume {found.target.what}/{found.name} {cluster.options}"
    print_text(f"{found.target} suspended; to start it again: {again}")


def resume(name: Name, timeout: Timeout = LONGEST_WAIT, namespace: Namespace = None, context: Context = None) -> None:
    """Start a suspended pool or group, and wait until it is ready.

    The ranks are a new incarnation. Ctrl-C leaves it starting.
    """
    seconds = seconds_of(timeout)
    cluster = Cluster(namespace, context)
    target = find(cluster, name, POOL, GROUP)
    with Teller() as tell:
        Handle(cluster, target, tell).resume()
    show_until_ready(cluster, [target], seconds)


def down(
    names: Names,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    namespace: Namespace = None,
    context: Context = None,
) -> None:
    """Delete pools with the groups on them, or groups.

    It asks before it deletes, and returns when everything is gone.
    """
    cluster = Cluster(namespace, context)
    targets = _with_groups(cluster, [target for name in names for target in find_all(cluster, name)])
    note(f"In namespace {cluster.namespace} (context {cluster.context}), this deletes:")
    for target in targets:
        note(f"  {target}" + (f" with its pods and all jobs in them{_drivers(target)}" if target.what == POOL else ""))
    _confirm("Delete?", is_confirmed=yes)
    with Teller() as tell:
        delete(cluster, targets, tell)
    print_text(f"{listed(targets)} deleted")
    for name in code_left(cluster, targets):
        remove = f"kubectl delete configmap {name} {cluster.options}"
        note(f"ConfigMap {name} with the code stays; if it is not needed: {remove}")


def _drivers(pool: Target) -> str:
    try:
        drivers = status_of(pool).drivers
    except ClientError:  # a status that cannot be read prevents no deletion
        return ""
    return f"; connected now: {', '.join(drivers.jobs)}" if drivers is not None and drivers.jobs else ""


def _confirm_plan(
    cluster: Cluster, manifests: Sequence[Manifest], *, force: bool, is_confirmed: bool
) -> list[PlanStep]:
    """Show what applying does to each object, and return it; on a terminal, ask whether to do it.

    Scripts are not asked, as with kubectl.
    """
    steps = plan(cluster, manifests, force=force)
    where = f"In namespace {cluster.namespace} (context {cluster.context})"
    for sentence in (sentence for step in steps for sentence in step.kept):
        note(sentence)
    if all(step.action is Action.LEAVE for step in steps):
        note(f"{where}, nothing changes")
        return steps
    note(f"{where}, this will:")
    for step in steps:
        note(f"  {step}")
    is_asked = sys.stdin.isatty() and err.is_terminal
    _confirm("Apply?", is_confirmed=is_confirmed or not is_asked)
    return steps


def _apply(cluster: Cluster, manifests: Sequence[Manifest], steps: Sequence[PlanStep], *, force: bool) -> list[Target]:
    """Apply all objects, and return the pools and groups among them."""
    targets = []
    for manifest, step in zip(manifests, steps, strict=True):
        try:
            applied = cluster.apply(manifest, force=force)
        except ConflictError as error:
            raise explained(manifest, error) from error
        note(f"{step.what} {'unchanged' if step.action is Action.LEAVE else 'applied'}")
        if (target := as_target(applied)) is not None:
            targets.append(target)
    return targets


def _wake(cluster: Cluster, targets: Sequence[Target]) -> None:
    """Wake the pools that the operator has suspended because they were idle: they are used now."""
    with Teller() as tell:
        for pool in [target for target in targets if target.what == POOL]:
            begin_to_wake(cluster, pool, tell)


def _with_groups(cluster: Cluster, targets: Sequence[Target]) -> list[Target]:
    """Add the groups on each of the pools."""
    found = {str(target): target for target in targets}
    for pool in [target for target in targets if target.what == POOL]:
        found |= {str(group): group for group in groups_on(cluster, pool)}
    return sorted(found.values(), key=str)
