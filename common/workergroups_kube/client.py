"""Writes objects: plain dicts, by server-side apply, without discovery."""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from kubernetes.aio.dynamic.exceptions import ConflictError, NotFoundError

from workergroups_api.manifest import Manifest, kind_of
from workergroups_kube.connection import finish
from workergroups_kube.errors import ReplacedError
from workergroups_kube.reading import Reader

# With a charset, the client sends the text as it is. Without one, it would encode the text as JSON again.
_APPLY = "application/apply-patch+yaml; charset=utf-8"
_MERGE = "application/merge-patch+json"
_STATUS = "status"
# How often a status is written to an object that others change in the same moment.
_TRIES = 5
# Afterwards, the caller should rather write what is true by now.
_TRIES_SECONDS = 1.0
# Characters beyond ASCII, up to U+FFFF.
_BASIC_PLANE = re.compile("[\u0080-\uffff]")


def as_yaml(manifest: Mapping[str, Any]) -> str:
    """Return the manifest as JSON that is also YAML, since the API server reads applied manifests as YAML.

    YAML knows no pairs of surrogate escapes, so what lies beyond U+FFFF stands for itself; all else beyond ASCII is
    escaped, since some of it is a line break to YAML.
    """

    def escaped(match: re.Match[str]) -> str:
        code = ord(match[0])
        # Half a surrogate pair is no character, and no server accepts it.
        return f"\\u{0xFFFD if 0xD800 <= code <= 0xDFFF else code:04x}"

    return _BASIC_PLANE.sub(escaped, json.dumps(manifest, ensure_ascii=False).replace("\x7f", "\\u007f"))


class Kube(Reader):
    """A connection that reads and writes."""

    async def apply(self, manifest: Manifest, *, dry_run: bool = False) -> None:
        """Apply on the server side; take over fields that another manager holds. A dry run only asks if that works."""
        await self._apply(None, manifest, dry_run=dry_run)

    async def apply_status(self, manifest: Manifest) -> None:
        """Apply the status of the object that has this UID. Raise ReplacedError if there is no such object any more.

        Of a custom resource, the API server takes a status for any object with the name, whatever the UID. So a version
        goes with it: the one in the manifest, if any, and the latest one after that.
        """
        await self._to_same(manifest, partial(self._apply, _STATUS, dry_run=False))

    async def merge_status(self, patch: Manifest, *, dry_run: bool = False) -> None:
        """Set and, where the value is None, remove fields of a status, also those that others own.

        Raise ReplacedError as `apply_status` does.
        """
        await self._to_same(patch, partial(self._merge, dry_run=dry_run))

    async def _to_same(self, manifest: Manifest, write: Callable[[Manifest], Awaitable[None]]) -> None:
        """Write to the object that has this UID, although others may change it at the same time."""
        metadata, clock = manifest["metadata"], asyncio.get_running_loop().time
        began = clock()
        version = metadata.get("resourceVersion")
        for tries_left in reversed(range(_TRIES)):
            version = version or await self._version_of(manifest)
            try:
                return await write(manifest | {"metadata": metadata | {"resourceVersion": version}})
            except ConflictError:
                if not tries_left or clock() - began > _TRIES_SECONDS:
                    raise
                version = None

    async def _version_of(self, manifest: Manifest) -> str:
        """Return the version of the object that has this UID."""
        kind, metadata = kind_of(manifest), manifest["metadata"]
        found = await self.latest_version(kind, metadata["namespace"], metadata["name"])
        if found is None or found[0] != metadata["uid"]:
            raise ReplacedError(f"no {kind.kind} {metadata['name']} has the UID {metadata['uid']} any more")
        return found[1]

    async def _apply(self, subresource: str | None, manifest: Manifest, *, dry_run: bool) -> None:
        await self._patch(manifest, as_yaml(manifest), _APPLY, subresource, dry_run=dry_run, force_conflicts=True)

    async def _merge(self, patch: Manifest, *, dry_run: bool) -> None:
        await self._patch(patch, patch, _MERGE, _STATUS, dry_run=dry_run)

    async def _patch(
        self,
        manifest: Manifest,
        body: str | Manifest,
        content_type: str,
        subresource: str | None,
        *,
        dry_run: bool,
        **more: Any,
    ) -> None:
        answer = await self._resource(kind_of(manifest), subresource).patch(
            body=body,
            content_type=content_type,
            name=manifest["metadata"]["name"],
            namespace=manifest["metadata"]["namespace"],
            field_manager=self._field_manager,
            _request_timeout=self._write_timeout,
            serialize=False,
            **more,
            **({"dry_run": "All"} if dry_run else {}),
        )
        await finish(answer)

    async def create(self, manifest: Manifest, *, dry_run: bool = False) -> None:
        """Create an object, and raise ConflictError if there is one; a dry run only asks whether that would work.

        A dry run is strict: it also refuses fields that the kind does not have.
        """
        strictly = {"dry_run": "All", "query_params": [("fieldValidation", "Strict")]} if dry_run else {}
        answer = await self._resource(kind_of(manifest)).create(
            body=manifest,
            namespace=manifest["metadata"]["namespace"],
            field_manager=self._field_manager,
            _request_timeout=self._write_timeout,
            serialize=False,
            **strictly,
        )
        await finish(answer)

    async def delete(self, manifest: Manifest, *, only_unchanged: bool = False) -> None:
        """Delete this object, but not another one that has its name by now. It may be gone already.

        With `only_unchanged`, raise ConflictError if the object has changed since it was read.
        """
        metadata = manifest["metadata"]
        must_match = ("uid", "resourceVersion") if only_unchanged else ("uid",)
        try:
            answer = await self._resource(kind_of(manifest)).delete(
                name=metadata["name"],
                namespace=metadata["namespace"],
                body={
                    "preconditions": {key: metadata[key] for key in must_match},
                    "propagationPolicy": "Background",
                },
                _request_timeout=self._write_timeout,
                serialize=False,
            )
        except NotFoundError:
            return
        await finish(answer)
