"""Ask a program of ours that is in the pods: what it prints is the answer."""

from __future__ import annotations

from .cluster import Cluster
from .errors import ClientError
from .execution import execute
from .pods import Container

ANSWER_SECONDS = 30


def ask(cluster: Cluster, container: Container, module: str, *words: str, what: str) -> bytes:
    """The answer of a module that is run in a container.

    Args:
        what: The beginning of the sentence if there is none: who could not be asked for what.

    Raises:
        ClientError: It has none; says why.
    """
    said, complaints = bytearray(), bytearray()
    code = execute(
        cluster,
        *container,
        ["python3", "-m", module, *words],
        stdout=said.extend,
        stderr=complaints.extend,
        seconds=ANSWER_SECONDS,
    )
    if code:
        reason = _reason(module, complaints.decode(errors="replace")) or f"exit code {code}"
        raise ClientError(f"{what}: {reason}")
    return bytes(said)


def _reason(module: str, complaints: str) -> str | None:
    """The last line of a traceback, or what it means."""
    if f"No module named {module}" in complaints:
        return "its pool was started by an older operator, whose library cannot tell; make the pool anew"
    lines = complaints.strip().splitlines()
    return lines[-1] if lines else None
