"""Ask a program in a pod: what it prints is the answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .cluster import Cluster
from .errors import ClientError
from .execution import execute
from .pods import Container

ANSWER_SECONDS = 30
_OLDER = "its pool was started by an older operator, whose library cannot tell; make the pool anew"


class Answer(NamedTuple):
    """What a program has printed, and how it ended."""

    code: int
    printed: str
    complaints: str

    @property
    def reason(self) -> str:
        """Why there is no answer: the last line of what may be a traceback."""
        lines = self.complaints.strip().splitlines()
        return lines[-1] if lines else f"exit code {self.code}"


def run(cluster: Cluster, container: Container, command: Sequence[str], seconds: float = ANSWER_SECONDS) -> Answer:
    """A program's answer.

    Raises:
        DeadlineError: There is none for so long.
    """
    said, complaints = bytearray(), bytearray()
    code = execute(cluster, *container, command, stdout=said.extend, stderr=complaints.extend, seconds=seconds)
    return Answer(code, said.decode(errors="replace"), complaints.decode(errors="replace"))


def ask(
    cluster: Cluster, container: Container, module: str, *words: str, what: str, seconds: float = ANSWER_SECONDS
) -> str:
    """The answer of a module of ours.

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
    answer = run(cluster, container, ["python3", "-m", module, *words], seconds)
    if answer.code:
        is_older = f"No module named {module}" in answer.complaints
        raise ClientError(f"{what}: {_OLDER if is_older else answer.reason}")
    return answer.printed
