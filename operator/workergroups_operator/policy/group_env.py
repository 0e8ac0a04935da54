"""The variables that a group takes from Secrets and ConfigMaps: as a container would have them, named by a digest.

The operator stores them in one Secret of the cluster, which the pools' pods mount. Plan and status hold the digest. It
has Ray's token as its key: without a secret key, anybody could find a short value by trying. Whoever has the token
can run code in the pods, and so can read the variables there.
"""

import base64
import binascii
import hashlib
import hmac
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from workergroups_api.conditions import Explanation
from workergroups_api.group_settings import EnvVar
from workergroups_api.launch import MAX_ENV_BYTES, env_bytes
from workergroups_api.manifest import CONFIG_MAP, SECRET, Kind
from workergroups_api.pod_settings import EnvFrom
from workergroups_api.vocabulary import FATAL_ENV, PROTECTED_ENV, LaunchState, Reason
from workergroups_common.bounded_json import Limits, parse
from workergroups_operator.observed import GroupEnv

# An object that a group names: its kind and its name.
Source = tuple[Kind, str]

# A Secret may have 1 MiB, and its metadata counts.
MAX_BYTES = 900_000
# As in a container, a key that cannot be the name of a variable is skipped.
_NAME = re.compile(r"[-._a-zA-Z][-._a-zA-Z0-9]*")
_ENTRY_LIMITS = Limits(size=MAX_BYTES, depth=3, values=20_000)


@dataclass(frozen=True)
class Content:
    """The part of a Secret or a ConfigMap that a group needs."""

    # None for a key whose value is no text.
    values: Mapping[str, str | None] = field(default_factory=dict, repr=False)
    # Why the object cannot be used, if it cannot.
    trouble: str | None = None

    @property
    def size(self) -> int:
        """The number of characters in the values."""
        return sum(len(value or "") for value in self.values.values())


@dataclass(frozen=True)
class PresentEnv:
    """What the objects that a group names hold now."""

    digest: str
    values: Mapping[str, str] = field(repr=False)


class _Unresolved(Exception):
    """The variables cannot be resolved; the message says why and what to do, and quotes no value."""


def sources_of(env: Sequence[EnvVar], env_from: Sequence[EnvFrom]) -> dict[Source, set[str] | None]:
    """Return the objects that a group names, and the keys that it needs of each; None for all keys."""
    found: dict[Source, set[str] | None] = {}
    for variable in env:
        if reference := _reference(variable):
            source, key, _ = reference
            found.setdefault(source, set()).add(key)  # type: ignore[union-attr] # only sets so far
    return found | {source: None for each in env_from for source in [_named(each)]}


def resolve(env: Sequence[EnvVar], env_from: Sequence[EnvFrom], contents: Mapping[Source, Content | None]) -> GroupEnv:
    """Return the variables that come from the objects; None in `contents` is an object that does not exist.

    The precedence is that of a container: later entries of `env_from` replace earlier ones, and `env` replaces both.
    """
    try:
        return _within_limit(env, _resolved(env, env_from, contents))
    except _Unresolved as why:
        return Explanation(LaunchState.WAITING_FOR_ENVIRONMENT, str(why))


def _resolved(
    env: Sequence[EnvVar], env_from: Sequence[EnvFrom], contents: Mapping[Source, Content | None]
) -> dict[str, str]:
    found: dict[str, str] = {}
    for number, each in enumerate(env_from):
        found |= _all_of(f"spec.envFrom[{number}]", each, contents)
    for number, variable in enumerate(env):
        reference = _reference(variable)
        if reference is None:
            found.pop(variable.name, None)  # the launch has its value
            continue
        source, key, is_optional = reference
        value = _value_of(f"spec.env[{number}] ({variable.name})", source, key, contents[source], is_optional)
        if value is not None:
            found[variable.name] = value
    return found


def _all_of(where: str, each: EnvFrom, contents: Mapping[Source, Content | None]) -> dict[str, str]:
    source = _named(each)
    reference = each.secret_ref or each.config_map_ref
    content = contents[source]
    if content is None:
        if reference is not None and reference.optional:
            return {}
        raise _Unresolved(f"{where}: there is no {_shown(source)}: create it, or set optional: true")
    found = {}
    for key, value in _usable(where, source, content).items():
        name = (each.prefix or "") + key
        if name in PROTECTED_ENV + FATAL_ENV:
            why = f"no rank starts with {name}" if name in FATAL_ENV else f"WorkerGroups sets {name} for each rank"
            raise _Unresolved(
                f"{where}: {_shown(source)} has the key {key}, and {why}: set a prefix, or name the other keys in "
                "spec.env"
            )
        if _NAME.fullmatch(name):
            found[name] = _text(where, source, key, value)
    return found


def _value_of(where: str, source: Source, key: str, content: Content | None, is_optional: bool) -> str | None:
    """Return the value of one key; None if it does not exist and need not."""
    if content is None:
        missing = f"there is no {_shown(source)}: create it"
    elif key not in (values := _usable(where, source, content)):
        missing = f"{_shown(source)} has no key {key}: add it"
    else:
        return _text(where, source, key, values[key])
    if is_optional:
        return None
    raise _Unresolved(f"{where}: {missing}, or set optional: true")


def _usable(where: str, source: Source, content: Content) -> Mapping[str, str | None]:
    if content.trouble is not None:
        raise _Unresolved(f"{where}: {_shown(source)} {content.trouble}")
    return content.values


def _text(where: str, source: Source, key: str, value: str | None) -> str:
    if value is None or "\0" in value or any(0xD800 <= ord(character) <= 0xDFFF for character in value):
        raise _Unresolved(
            f"{where}: key {key} of {_shown(source)} is not valid text for a variable: mount it as a file with "
            "spec.volumes of the pool"
        )
    return value


def _within_limit(env: Sequence[EnvVar], found: dict[str, str]) -> dict[str, str]:
    plain = {variable.name: variable.value or "" for variable in env if variable.value_from is None}
    size = env_bytes(plain | found)
    if size > MAX_ENV_BYTES:
        raise _Unresolved(
            f"spec.env and spec.envFrom have {size} bytes together, as JSON with escapes, and may have "
            f"{MAX_ENV_BYTES}, or no process can be started with them: name fewer keys, or mount large values with "
            "spec.volumes of the pool"
        )
    return found


def _reference(variable: EnvVar) -> tuple[Source, str, bool] | None:
    """Return object and key of the variable's value, and whether they may be missing; None if it has a value."""
    if variable.value_from is None:
        return None
    secret, config_map = variable.value_from.secret_key_ref, variable.value_from.config_map_key_ref
    reference = secret or config_map
    if reference is None:
        return None
    return (SECRET if secret else CONFIG_MAP, reference.name), reference.key, reference.optional


def _named(each: EnvFrom) -> Source:
    reference = each.secret_ref or each.config_map_ref
    return SECRET if each.secret_ref else CONFIG_MAP, reference.name if reference else ""


def _shown(source: Source) -> str:
    return f"{source[0].kind} {source[1]}"


def env_digest(uid: str, values: Mapping[str, str], token: str) -> str:
    """Return a name for the values that reveals nothing of them to anybody without the token."""
    text = json.dumps([uid, dict(values)], sort_keys=True)
    return hmac.new(token.encode(), text.encode(), hashlib.sha256).hexdigest()[:32]


def entry_of(digest: str, values: Mapping[str, str]) -> str:
    """Return what the Secret holds of a group, encoded as Secrets are; `workergroups.node.group_env` reads it."""
    return base64.b64encode(json.dumps({"digest": digest, "env": dict(values)}, sort_keys=True).encode()).decode()


def values_in(entry: str | None, uid: str, digest: str, token: str) -> Mapping[str, str] | None:
    """Return the values that an entry of the Secret holds; None if it holds others, or was changed."""
    try:
        found = parse(base64.b64decode(entry or ""), _ENTRY_LIMITS)
        values = found["env"]
        is_genuine = hmac.compare_digest(env_digest(uid, values, token), digest) and found["digest"] == digest
    except (binascii.Error, KeyError, TypeError, ValueError):
        return None
    return values if is_genuine else None


def with_room_in_secret(environments: Mapping[str, GroupEnv], live: Mapping[str, str]) -> dict[str, GroupEnv]:
    """Return the environments that fit into one Secret, in the order given, and an explanation for the others.

    `live` are the entries of the Secret: a group that runs keeps its entry, which may be larger than a present one.
    """
    used = 0
    found: dict[str, GroupEnv] = {}
    for name, each in environments.items():
        size = max(len(live.get(name, "")), 0 if isinstance(each, Explanation) else len(entry_of("-" * 32, each)))
        is_too_much = used + size > MAX_BYTES * 4 // 3
        if is_too_much and not isinstance(each, Explanation):
            each = _no_room((used + size) * 3 // 4)
        used += 0 if is_too_much else size
        found[name] = each
    return found


def _no_room(size: int) -> Explanation:
    return Explanation(
        Reason.CLUSTER_TOO_LARGE,
        f"with this group the variables that the cluster's groups take from Secrets and ConfigMaps need {size} bytes, "
        f"and may have {MAX_BYTES}: name fewer keys, or put this group on pools with another spec.clusterName",
    )
