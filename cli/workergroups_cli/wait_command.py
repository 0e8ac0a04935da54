"""wait: until pools and groups have a condition, for scripts."""

from __future__ import annotations

from typing import Annotated

import typer

from workergroups_api.vocabulary import ConditionType
from workergroups_client import Cluster
from workergroups_client.errors import ClientError, DeadlineError, NotSeenError
from workergroups_client.objects.goals import Goal, wait_for
from workergroups_client.objects.names import Target, find_all

from .exit_codes import TIME_IS_UP
from .options import LONGEST_WAIT, Context, Names, Namespace, Timeout, seconds_of
from .output import Teller, complain, print_text
from .progress import listed, show_until_ready


def wait(
    names: Names,
    goal: Annotated[
        str, typer.Option("--for", metavar="CONDITION", help="Such as Ready, Complete, Suspended or UpToDate=False.")
    ] = "Ready",
    timeout: Timeout = LONGEST_WAIT,
    namespace: Namespace = None,
    context: Context = None,
) -> None:
    """Wait until pools and groups are ready, or have a condition.

    It says what they wait for. The exit code is 0 when all of them have the condition, 1 as soon as one of them cannot
    get it or is deleted, and 124 when the time is up.
    """
    seconds = seconds_of(timeout)
    wanted = _goal(goal)
    cluster = Cluster(namespace, context)
    targets = _targets(cluster, names, wanted)
    try:
        if wanted == Goal(ConditionType.READY):
            show_until_ready(cluster, targets, seconds)
        else:
            with Teller() as tell:
                wait_for(cluster, targets, wanted, tell, seconds)
    except NotSeenError:
        raise
    except DeadlineError as error:
        complain(error)
        raise typer.Exit(TIME_IS_UP) from error
    print_text(f"{listed(targets)}: {wanted}")


def _goal(text: str) -> Goal:
    try:
        return Goal.read(text)
    except ClientError as error:
        raise typer.BadParameter(str(error), param_hint="--for") from error


def _targets(cluster: Cluster, names: list[str], goal: Goal) -> list[Target]:
    """Return the objects of these names that have such a condition, each once."""
    found = [target for name in names for target in find_all(cluster, name, *goal.kinds)]
    return list({str(target): target for target in found}.values())
