"""Ask a program in a pod: what it prints, or, of a module of ours, the answer on its own channel."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from workergroups.answering import ANSWER, FAILURE, answer_command

from .cluster import Cluster
from .errors import ClientError
from .execution import execute
from .pods import Container

ANSWER_SECONDS = 30
_OLDER = "an older operator started its pool, whose library cannot answer: recreate the pool"


class Output(NamedTuple):
    """What a program has printed, and how it ended."""

    code: int
    printed: str
    complaints: str

    @property
    def reason(self) -> str:
        """Why it failed: the last line of what may be a traceback."""
        lines = self.complaints.strip().splitlines()
        return lines[-1] if lines else f"exit code {self.code}"


def run(cluster: Cluster, container: Container, command: Sequence[str], seconds: float = ANSWER_SECONDS) -> Output:
    """Return a program's output.

    Raises:
        DeadlineError: It has not ended within so many seconds.
    """
    said, complaints = bytearray(), bytearray()
    code = execute(cluster, *container, command, stdout=said.extend, stderr=complaints.extend, seconds=seconds)
    return Output(code, said.decode(errors="replace"), complaints.decode(errors="replace"))


def ask(
    cluster: Cluster, container: Container, module: str, *words: str, what: str, seconds: float = ANSWER_SECONDS
) -> Any:
    """Return the answer of a module of ours, whatever else is printed in the pod meanwhile.

    Args:
        cluster: Where the pod is.
        container: Where the module is run.
        module: Its full name.
        words: Of its command line.
        what: The beginning of the sentence if there is no answer: who could not be asked for what.
        seconds: How long to wait for it.

    Raises:
        ClientError: It has none; says why.
        DeadlineError: It does not answer.
    """
    output = run(cluster, container, answer_command(module, words), seconds)
    said = _parsed(output.printed)
    if ANSWER in said:
        return said[ANSWER]
    raise ClientError(f"{what}: {said.get(FAILURE) or _why_nothing(module, output)}")


def _parsed(printed: str) -> dict[str, Any]:
    """The JSON object of the answer's channel; empty if the program did not write all of it."""
    try:
        said = json.loads(printed)
    except (ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}


def _why_nothing(module: str, output: Output) -> str:
    # A library from before there was an answer's channel prints its answer, and ends well.
    if not output.code or f"No module named {module}" in output.complaints:
        return _OLDER
    return f"the program ended without an answer (exit code {output.code}); it printed last: {output.reason}"
