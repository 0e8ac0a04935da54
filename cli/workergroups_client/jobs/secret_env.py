"""Variables of a job from Secrets. The values reach the job's driver without being part of the job's record.

All who can see a job can see its command and its runtime environment. So the values are written to a file in the memory
of the driver's container, which only Ray's user can read. The job's command first sources the file, and the file first
deletes itself.
"""

from __future__ import annotations

import contextlib
import re
import secrets
import shlex
from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator, Mapping

from workergroups_api.manifest import SECRET

from ..api_server.cluster import Cluster
from ..api_server.execution import execute
from ..errors import ClientError, NotFoundError, NotRunningError, UnreachableError
from ..pods.pods import PodContainer
from ..suggestions import did_you_mean

_VARIABLE = re.compile("[A-Za-z_][A-Za-z0-9_]*")
_SECONDS = 30
# Ray gives up on a job that has not started after 15 minutes.
_KEPT_SECONDS = 3600
_PATH, _THEN, _RANDOM_BYTES = "/dev/shm/workergroups-env-", " && ", 8
_SOURCED = re.compile(rf"\. {_PATH}[0-9a-f]{{{2 * _RANDOM_BYTES}}}{_THEN}")
_KEEP = 'umask 077 && cat > "$1" && { (sleep "$2"; rm -f "$1") < /dev/null > /dev/null 2>&1 & }'


def variables_of(cluster: Cluster, sources: Iterable[str]) -> dict[str, bytes]:
    """Return the variables from several Secrets; the last source wins.

    Args:
        cluster: The cluster of the Secrets.
        sources: ``secret/NAME`` for all keys of a Secret, ``secret/NAME:KEY`` for one.

    Raises:
        NotFoundError: There is no such Secret, or it has no such key.
        ClientError: A Secret cannot be read, or a key or value cannot be a variable.
    """
    found: dict[str, bytes] = {}
    for source in sources:
        found |= _variables(cluster, source)
    return found


@contextlib.contextmanager
def handed_over(
    cluster: Cluster, container: Callable[[], PodContainer], variables: Mapping[str, bytes]
) -> Iterator[str]:
    """Yield shell code for the beginning of the job's command that sets the variables; empty without variables.

    `container` finds where the driver will run. If Ray refuses the job in the block, the file with the variables is
    removed. Otherwise the job removes it when it starts, and the file itself after an hour.
    """
    if not variables:
        yield ""
        return
    path = f"{_PATH}{secrets.token_hex(_RANDOM_BYTES)}"
    where = container()
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
        raise ClientError(f"the variables could not be written to the memory of pod {where.pod}: {why}")
    try:
        yield f". {path}{_THEN}"
    except (UnreachableError, NotRunningError):
        raise  # the job may have been submitted
    except ClientError:
        with contextlib.suppress(ClientError):
            ignore = bytearray().extend
            execute(cluster, *where, ["rm", "-f", path], stdout=ignore, stderr=ignore, seconds=_SECONDS)
        raise


def as_typed(entrypoint: str) -> str:
    """Return a job's command without the code that sets the variables, and with everything else that runs."""
    return entrypoint.removeprefix(ours[0]) if (ours := _SOURCED.match(entrypoint)) else entrypoint


def script(variables: Mapping[str, bytes], path: str) -> bytes:
    """Return the shell script that deletes itself and sets the variables."""
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
    except ClientError:  # a user who may read a Secret may still not be allowed to list them
        near = None
    return f"{nothing}; {near}" if near else nothing
