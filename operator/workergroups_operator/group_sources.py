"""Read the Secrets and ConfigMaps from which groups take variables, each group on its own.

The operator gets no events about these objects, so it reads them in each reconcile. It keeps only what a group needs.
"""

import asyncio
import base64
import binascii
from collections import defaultdict
from collections.abc import Mapping, Sequence

from kubernetes.aio.dynamic.exceptions import DynamicApiError

from workergroups_api.conditions import Explanation
from workergroups_api.group_settings import EnvVar
from workergroups_api.launch import MAX_ENV_BYTES
from workergroups_api.manifest import SECRET, Kind, Manifest
from workergroups_api.pod_settings import EnvFrom
from workergroups_api.vocabulary import LaunchState
from workergroups_common.path_segment import InvalidName
from workergroups_kube import API_ERRORS, Kube, RefusedObject, api_error_message
from workergroups_operator.observed import GroupEnv
from workergroups_operator.policy.group_env import MAX_BYTES, Content, Source, resolve, sources_of

# An object, and the keys that are needed of it; None for all keys.
_Part = tuple[Source, frozenset[str] | None]
# Characters. Base64 needs four for three bytes.
_MAX_SIZE = 2 * MAX_ENV_BYTES
# Characters of all groups of a cluster: several times what the Secret with their variables has room for.
MAX_TOTAL = 8 * MAX_BYTES


class Sources:
    """What the groups of a cluster name, in one reconcile: what several groups need of an object is read once."""

    def __init__(self, client: Kube, namespace: str) -> None:
        self._client = client
        self._namespace = namespace
        self._size = 0
        self._locks: defaultdict[_Part, asyncio.Lock] = defaultdict(asyncio.Lock)
        # What was read, or why nothing could be read.
        self._found: dict[_Part, Content | Exception | None] = {}

    async def env_of(self, env: Sequence[EnvVar], env_from: Sequence[EnvFrom]) -> GroupEnv:
        """Return the variables that a group takes from Secrets and ConfigMaps, or why it cannot."""
        contents: dict[Source, Content | None] = {}
        # One after the other, so that the operator never holds more than one large object for a group.
        for source, keys in sources_of(env, env_from).items():
            contents[source] = await self._part(source, keys)
            if sum(content.size for content in contents.values() if content) > _MAX_SIZE:
                return Explanation(
                    LaunchState.WAITING_FOR_ENVIRONMENT,
                    f"spec.env and spec.envFrom name more than the {MAX_ENV_BYTES} bytes that a process can have: name "
                    "fewer keys",
                )
        return resolve(env, env_from, contents)

    async def _part(self, source: Source, keys: set[str] | None) -> Content | None:
        part = source, None if keys is None else frozenset(keys)
        async with self._locks[part]:
            if part not in self._found:
                self._found[part] = await self._read(source, keys)
        found = self._found[part]
        if isinstance(found, Exception):
            raise found
        return found

    async def _read(self, source: Source, keys: set[str] | None) -> Content | Exception | None:
        try:
            content = await _content(self._client, self._namespace, source, keys)
        except API_ERRORS as error:
            return error
        self._size += content.size if content else 0
        if self._size > MAX_TOTAL:
            return Content(
                trouble=f"has no room: the cluster's groups take more than {MAX_TOTAL} characters from Secrets and "
                "ConfigMaps: name fewer keys, or put groups on pools with another spec.clusterName"
            )
        return content


async def _content(client: Kube, namespace: str, source: Source, keys: set[str] | None) -> Content | None:
    """Return the part of an object that is needed; None if there is no such object."""
    kind, name = source
    try:
        body = await client.get(kind, namespace, name)
    except InvalidName:
        return Content(trouble="cannot exist, since this is not a valid object name: correct it")
    except RefusedObject as error:
        return Content(trouble=f"exceeds what the operator reads: {error}")
    except DynamicApiError as error:
        # Only this object cannot be read. If nothing can, other reads of the reconcile fail.
        return Content(trouble=f"cannot be read: {api_error_message(error)[:500]}")
    return None if body is None else content_of(kind, body, keys)


def content_of(kind: Kind, body: Manifest, keys: set[str] | None) -> Content:
    """Return the values of these keys, or of all keys, if they are not too many for any process."""
    data: Mapping[str, str] = body.get("data") or {}
    needed = {key: value for key, value in data.items() if keys is None or key in keys}
    if sum(map(len, needed.values())) > _MAX_SIZE:
        return Content(trouble=f"has more than the {MAX_ENV_BYTES} bytes that a process can have: name fewer keys")
    return Content({key: _decoded(value) if kind is SECRET else value for key, value in needed.items()})


def _decoded(value: str) -> str | None:
    try:
        return base64.b64decode(value).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None
