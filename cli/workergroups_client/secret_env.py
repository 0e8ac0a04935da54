"""Variables of a job out of Secrets. Their values go from Kubernetes to the job's driver, and into nobody's record.

A job's command and its runtime environment are shown to whoever sees the job. So the values go into a file in the
memory of the head's container, which only Ray's user can read. The job's command begins with reading it, and what is
read begins with deleting it.
"""

from __future__ import annotations

import contextlib
import re
import secrets
import shlex
from base64 import b64decode
from collections.abc import Iterable, Iterator, Mapping

from workergroups_api.manifest import SECRET

from .cluster import Cluster
from .errors import ClientError, NotFoundError
from .execution import execute
from .names import Target
from .pods import head
from .suggestions import did_you_mean

_VARIABLE = re.compile("[A-Za-z_][A-Za-z0-9_]*")
_SECONDS = 30
# A job that has not begun by then will not: Ray gives it up after a quarter of an hour.
_KEPT_SECONDS = 3600
_PATH, _THEN = "/dev/shm/workergroups-env-", " && "
_KEEP = 'umask 077 && cat > "$1" && { (sleep "$2"; rm -f "$1") < /dev/null > /dev/null 2>&1 & }'


def variables_of(cluster: Cluster, sources: Iterable[str]) -> dict[str, bytes]:
    """What Secrets hold, by variable; of one that several have, the last one's.

    Args:
        cluster: Where they are.
        sources: ``secret/NAME`` for all keys of a Secret, ``secret/NAME:KEY`` for one.

    Raises:
        NotFoundError: There is no such Secret, or it has no such key.
        ClientError: It cannot be read, or what it holds cannot be a variable.
    """
    found: dict[str, bytes] = {}
    for source in sources:
        found |= _variables(cluster, source)
    return found


@contextlib.contextmanager
def handed_over(cluster: Cluster, target: Target, variables: Mapping[str, bytes]) -> Iterator[str]:
    """The beginning of a job's command that has these variables from then on; empty without any.

    Where the job cannot be submitted, nothing of them is left.
    """
    if not variables:
        yield ""
        return
    path = f"{_PATH}{secrets.token_hex(8)}"
    where = head(cluster, target)
    complaints = bytearray()
    code = execute(
        cluster,
        *where,
        ["sh", "-c", _KEEP, "sh", path, str(_KEPT_SECONDS)],
        stdin=iter((script(variables, path), b"")).__next__,
        stdout=complaints.extend,
        stderr=complaints.extend,
        seconds=_SECONDS,
    )
    if code:
        why = complaints.decode(errors="replace").strip()
        raise ClientError(f"the variables could not be written to the memory of the head of {target}: {why}")
    try:
        yield f". {path}{_THEN}"
    except BaseException:
        with contextlib.suppress(ClientError):
            execute(cluster, *where, ["rm", "-f", path], stdout=bytearray().extend, stderr=bytearray().extend)
        raise


def as_typed(entrypoint: str) -> str:
    """A job's command without what hands the variables over."""
    return entrypoint.partition(_THEN)[2] if entrypoint.startswith(f". {_PATH}") else entrypoint


def script(variables: Mapping[str, bytes], path: str) -> bytes:
    """A shell's lines that set the variables, and before that delete the file that they are in."""
    lines = [f"rm -f {path}"]
    for name, value in variables.items():
        lines.append(f"export {name}={shlex.quote(value.decode(errors='surrogateescape'))}")
    return "\n".join([*lines, ""]).encode(errors="surrogateescape")


def _variables(cluster: Cluster, source: str) -> dict[str, bytes]:
    kind, _, rest = source.partition("/")
    name, _, key = rest.partition(":")
    if kind != "secret" or not name:
        raise ClientError(f"{source}: write secret/NAME for all keys of a Secret, or secret/NAME:KEY for one")
    secret = cluster.get(SECRET, name)
    if secret is None:
        raise NotFoundError(_no_such_secret(cluster, name))
    data = {each: b64decode(value) for each, value in (secret.get("data") or {}).items()}
    if key and key not in data:
        there = ", ".join(sorted(data)) or "none"
        raise NotFoundError(f"Secret {name} has no key {key}; {did_you_mean(key, data) or f'it has {there}'}")
    chosen = {key: data[key]} if key else data
    _check(name, chosen)
    return chosen


def _check(secret: str, variables: Mapping[str, bytes]) -> None:
    if not variables:
        raise ClientError(f"Secret {secret} has no keys")
    if wrong := sorted(name for name in variables if not _VARIABLE.fullmatch(name)):
        raise ClientError(
            f"Secret {secret} has keys that cannot be names of variables ({', '.join(wrong)}): choose the other keys "
            f"one by one, with secret/{secret}:KEY"
        )
    if unfit := sorted(name for name, value in variables.items() if b"\0" in value):
        raise ClientError(
            f"Secret {secret}: {', '.join(unfit)} has a zero byte, which no variable can hold: choose other keys"
        )


def _no_such_secret(cluster: Cluster, name: str) -> str:
    nothing = f"there is no Secret {name} in namespace {cluster.namespace}"
    try:
        near = did_you_mean(name, cluster.names(SECRET))
    except ClientError:  # who may read some need not be allowed to list them
        near = None
    return f"{nothing}; {near}" if near else nothing
