"""Run a program in a pod and return its output, or the answer that one of our modules gives on its own channel."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from workergroups.answering import ANSWER, FAILURE, answer_command

from ..api_server.cluster import Cluster
from ..api_server.execution import execute
from ..errors import ClientError
from .pods import PodContainer

ANSWER_SECONDS = 30
_PROCESSES_SECONDS = 40
_OLDER = "an older operator started the pool, and its library cannot answer: recreate the pool"

_Answer = TypeVar("_Answer")


class ProgramOutput(NamedTuple):
    """The output of a program, and its exit code."""

    code: int
    printed: str
    complaints: str

    @property
    def reason(self) -> str:
        """Why the program failed: its last line of errors, since the errors may be a traceback."""
        lines = self.complaints.strip().splitlines()
        return lines[-1] if lines else f"exit code {self.code}"


def run(
    cluster: Cluster, container: PodContainer, command: Sequence[str], seconds: float = ANSWER_SECONDS
) -> ProgramOutput:
    """Run a program until it ends, and return its output.

    Raises:
        DeadlineError: The program did not end within ``seconds``.
    """
    said, complaints = bytearray(), bytearray()
    code = execute(cluster, *container, command, stdout=said.extend, stderr=complaints.extend, seconds=seconds)
    return ProgramOutput(code, said.decode(errors="replace"), complaints.decode(errors="replace"))


def ask(
    cluster: Cluster, container: PodContainer, module: str, *words: str, what: str, seconds: float = ANSWER_SECONDS
) -> Any:
    """Run one of our modules in a pod and return its answer, whatever else the pod prints meanwhile.

    Args:
        cluster: The cluster of the pod.
        container: The container that runs the module.
        module: The full name of the module.
        words: Arguments of the module.
        what: The beginning of the error message, such as "pool ppo could not be asked for its nodes".
        seconds: How long to wait for the answer.

    Raises:
        ClientError: The module failed; the message gives the reason.
        DeadlineError: The module did not answer in time.
    """
    output = run(cluster, container, answer_command(module, words), seconds)
    said = _parsed(output.printed)
    if ANSWER in said:
        return said[ANSWER]
    raise ClientError(f"{what}: {said.get(FAILURE) or _why_nothing(output)}")


def ask_for_processes(cluster: Cluster, container: PodContainer, module: str, *words: str) -> Any:
    """Run a module of ``workergroups.processes`` in a pod, and return its answer; see `ask`."""
    what = f"pod {container.pod} could not be asked for its processes"
    return ask(cluster, container, f"workergroups.processes.{module}", *words, what=what, seconds=_PROCESSES_SECONDS)


def understood(read: Callable[[Any], _Answer], said: Any) -> _Answer:
    """Return what a pod has answered as a value of our types.

    Args:
        read: Returns that value. It raises a TypeError or a ValueError for an answer of another version.
        said: The answer; see `ask`.

    Raises:
        ClientError: The pod's library has another version.
    """
    try:
        return read(said)
    except (TypeError, ValueError) as error:
        raise ClientError(
            f"the pool's library uses an incompatible protocol ({error}): install the command line of the operator's "
            "version"
        ) from error


def _parsed(printed: str) -> dict[str, Any]:
    """Parse the JSON object of the answer's channel; return an empty one if the program did not write all of it."""
    try:
        said = json.loads(printed)
    except (ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}


def _why_nothing(output: ProgramOutput) -> str:
    # A library from before the answer's channel prints its answer and exits with 0.
    if not output.code or re.search("No module named '?workergroups", output.complaints):
        return _OLDER
    return f"the program ended without an answer (exit code {output.code}); its last line: {output.reason}"
