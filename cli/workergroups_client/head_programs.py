"""Questions that only a process on the head can answer: the library's modules, and Ray's own commands."""

from __future__ import annotations

from typing import Any

from .cluster import Cluster
from .errors import ClientError
from .names import Target
from .pod_programs import ANSWER_SECONDS, ask, run
from .pods import head


def ask_library(
    cluster: Cluster, target: Target, module: str, *arguments: str, what: str, seconds: float = ANSWER_SECONDS
) -> Any:
    """Return what a module of the library answers there.

    Args:
        cluster: Where the head is.
        target: A pool or a group, whose head is asked.
        module: Its name in the library.
        arguments: Of its command line.
        what: What is asked for, for messages.
        seconds: How long to wait for it.

    Raises:
        ClientError: It cannot say.
        DeadlineError: It does not answer.
    """
    sentence = f"{target} could not be asked for its {what}"
    name = f"workergroups.{module}"
    return ask(cluster, head(cluster, target), name, *arguments, what=sentence, seconds=seconds)


def ray_status(cluster: Cluster, target: Target) -> str:
    """What ``ray status`` prints.

    Raises:
        ClientError: It ends with an error, or does not end.
    """
    answer = run(cluster, head(cluster, target), ["ray", "status"])
    if answer.code:
        raise ClientError(
            f"`ray status` failed on the head of {target}: {answer.reason}. If the head has just started, try again; "
            f"else see workergroups status {target.name}"
        )
    return answer.printed
