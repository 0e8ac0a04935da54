"""Questions that only a program on the head can answer: modules of the library, and Ray's own commands."""

from __future__ import annotations

from typing import Any

from ..api_server.cluster import Cluster
from ..errors import ClientError
from ..objects.names import Target
from .pod_programs import ANSWER_SECONDS, ask, run
from .pods import head


def ask_library(
    cluster: Cluster, target: Target, module: str, *arguments: str, what: str, seconds: float = ANSWER_SECONDS
) -> Any:
    """Run a module of the library on the head, and return its answer.

    Args:
        cluster: The cluster of the head.
        target: A pool or a group on the Ray cluster of the head.
        module: The name of the module within the library.
        arguments: Arguments of the module.
        what: The subject of the question, for messages.
        seconds: How long to wait for the answer.

    Raises:
        ClientError: The module failed; the message gives the reason.
        DeadlineError: The module did not answer in time.
    """
    sentence = f"{target} could not be asked for its {what}"
    name = f"workergroups.{module}"
    return ask(cluster, head(cluster, target), name, *arguments, what=sentence, seconds=seconds)


def ray_status(cluster: Cluster, target: Target) -> str:
    """Return the output of ``ray status``.

    Raises:
        ClientError: It failed, or did not end in time.
    """
    answer = run(cluster, head(cluster, target), ["ray", "status"])
    if answer.code:
        raise ClientError(
            f"`ray status` failed on the head of {target}: {answer.reason}. If the head has just started, try again; "
            f"else see workergroups status {target.name}"
        )
    return answer.printed
