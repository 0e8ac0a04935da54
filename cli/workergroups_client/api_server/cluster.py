"""The API server that a kubeconfig names: objects as plain dicts, and streams into pods.

The operator and the agent share `workergroups_kube`, which is asynchronous and runs in a pod with a ServiceAccount.
The command line has its own client: it is synchronous, so that users can call it from any program; it reads
kubeconfigs with their login plugins; it opens streams into pods; and it does not need aiohttp. The kubernetes package
is imported only for streams, since that takes longer than all the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from shlex import quote
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from workergroups_api.manifest import POD, RESOURCE_POOL, SERVICE, WORKER_GROUP, Kind, Manifest
from workergroups_common.path_segment import InvalidName, path_segment

from ..errors import ClientError, NotFoundError, NotInstalledError, NotRunningError, UnauthorizedError
from ..suggestions import did_you_mean
from ..times import is_moment
from . import api_errors, kubeconfig
from .rest import REQUEST_SECONDS, Rest

if TYPE_CHECKING:
    from kubernetes.stream.ws_client import WSClient

_WATCH_SECONDS = 60
"""How long the API server keeps a watch open. A connection that was lost silently is noticed after this time."""
_SERVICE_SECONDS = 60
"""How long a Service may take for an answer: Prometheus needs a while for a long time of many series."""
_FIELD_MANAGER = "workergroups-cli"
_NAMES_ONLY = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_PARTS: dict[Kind, tuple[str, ...]] = {
    RESOURCE_POOL: ("spec",),
    WORKER_GROUP: ("spec",),
    POD: ("spec", "status"),
}
"""What an object of this kind always has."""
_ANY_TIME = "1970-01-01T00:00:00Z"
_NAMES_KIND = "PartialObjectMetadataList"


class Cluster:
    """A connection to the API server, and the default namespace.

    Args:
        namespace: The default namespace; by default that of the kubeconfig's context.
        context: A context of the kubeconfig; by default the current one.
    """

    def __init__(self, namespace: str | None = None, context: str | None = None) -> None:
        found = kubeconfig.load(context)
        self.context, self.namespace = found.name, namespace or found.namespace
        self._chosen = context
        self._rest = Rest(found)
        # What the API server has said of the kinds of manifests: `up` needs each of them several times.
        self._kinds: dict[tuple[str, str], tuple[Kind, bool]] = {}

    @property
    def server(self) -> str:
        """The address of the API server."""
        return self._rest.server

    @property
    def options(self) -> str:
        """The options with which a command that users copy acts on the same objects, for kubectl and workergroups."""
        context = f" --context {quote(self._chosen)}" if self._chosen else ""
        return f"-n {self.namespace}{context}"

    def get(self, kind: Kind, name: str) -> Manifest | None:
        """Return the object of that name; ``None`` if it does not exist."""
        return self._find(kind.kind, f"{self._path(kind)}/{_segment(name)}", kind)

    def select(self, kind: Kind, selector: str = "", *, everywhere: bool = False) -> list[Manifest]:
        """Return the objects that a label selector matches, in the default namespace or in all namespaces."""
        path = self._path(kind, None if everywhere else self.namespace)
        answer = self._rest.request("GET", path, query={"labelSelector": selector})
        return self._items(f"{kind.kind}List", answer, kind)

    def names(self, kind: Kind) -> list[str]:
        """Return the names of the objects in the default namespace, without fetching their contents."""
        answer = self._rest.request("GET", self._path(kind), accept=_NAMES_ONLY)
        return [str(each["metadata"]["name"]) for each in self._items(_NAMES_KIND, answer)]

    def events(self, kind: Kind, selector: str = "", *, everywhere: bool = False) -> Iterator[Manifest]:
        """Yield the events of a watch until the API server ends it, after a minute: first one for each existing object.

        Args:
            kind: The kind of the objects.
            selector: A label selector.
            everywhere: Whether to watch all namespaces and not only the default one.
        """
        query = {"labelSelector": selector, "watch": "true", "timeoutSeconds": str(_WATCH_SECONDS)}
        path = self._path(kind, None if everywhere else self.namespace)
        for event in self._rest.lines(path, query=query, seconds=_WATCH_SECONDS + REQUEST_SECONDS):
            if not isinstance(event, dict) or not isinstance(event.get("object"), dict):
                raise api_errors.wrong_answer(self._rest.place, "watch event", event)
            yield event

    def present(self, manifest: Manifest) -> Manifest | None:
        """Return the object that a manifest names, as it is now; ``None`` if it does not exist.

        Raises:
            NotFoundError: The cluster does not have its kind.
        """
        return self._find(manifest["kind"], self._path_of(manifest))

    def apply(self, manifest: Manifest, *, force: bool = False, dry_run: bool = False) -> Manifest:
        """Apply an object by server-side apply, in the namespace that it names or else in the default one.

        Args:
            manifest: The object.
            force: Whether to take over fields that another manager holds.
            dry_run: Whether to return what would be stored, and store nothing.

        Raises:
            ConflictError: Another manager holds fields of the object; the message names the fields and the manager.
            NotFoundError: The cluster does not have its kind, or its namespace.
        """
        applied = self._rest.request(
            "PATCH",
            self._path_of(manifest),
            query={
                "fieldManager": _FIELD_MANAGER,
                "force": "true" if force else None,
                "dryRun": "All" if dry_run else None,
            },
            body=manifest,
            content_type="application/apply-patch+yaml",
        )
        return self._object(manifest["kind"], applied)

    def annotate(self, kind: Kind, name: str, annotation: str, value: str) -> None:
        """Set an annotation of an object."""
        self.merge(kind, name, {"metadata": {"annotations": {annotation: value}}})

    def edit(self, kind: Kind, name: str, spec: Mapping[str, Any]) -> None:
        """Set fields of an object's spec, and leave the others as they are."""
        self.merge(kind, name, {"spec": dict(spec)})

    def merge(self, kind: Kind, name: str, patch: Manifest) -> None:
        """Set some fields of an object, and remove those that are ``None`` in the patch."""
        path = f"{self._path(kind)}/{_segment(name)}"
        self._rest.request("PATCH", path, body=patch, content_type="application/merge-patch+json")

    def delete(self, kind: Kind, manifest: Manifest) -> None:
        """Delete this object if it still exists, but not a newer one of the same name."""
        metadata = manifest["metadata"]
        body = {"preconditions": {"uid": metadata["uid"]}, "propagationPolicy": "Background"}
        try:
            self._rest.request(
                "DELETE", f"{self._path(kind, metadata['namespace'])}/{_segment(metadata['name'])}", body=body
            )
        except NotFoundError:
            return

    def ask_service(self, namespace: str, service: str, path: str, query: Mapping[str, str]) -> Any:
        """Return what a Service, as ``NAME:PORT``, answers to a request through the API server, parsed as JSON."""
        path = f"{self._path(SERVICE, namespace)}/{_segment(service)}/proxy/{path}"
        return self._rest.request("GET", path, query=query, seconds=_SERVICE_SECONDS)

    def open_exec(
        self, pod: str, container: str, command: Sequence[str], *, stdin: bool = False, tty: bool = False
    ) -> WSClient:
        """Start a command in a container; return the stream of its output, errors, exit status and, if wanted, input.

        With a terminal, the errors are part of the output.
        """
        words = [("command", word) for word in command]
        wanted = {"stdin": stdin, "stdout": True, "stderr": not tty, "tty": tty}
        streams = [(name, "true") for name, is_wanted in wanted.items() if is_wanted]
        return self._open(pod, "exec", [("container", container), *words, *streams])

    def open_port(self, pod: str, port: int) -> WSClient:
        """Connect to a port of a pod."""
        return self._open(pod, "portforward", [("ports", str(port))])

    def _open(self, pod: str, subresource: str, query: list[tuple[str, str]]) -> WSClient:
        path = f"{self._path(POD)}/{_segment(pod)}/{subresource}"
        try:
            return self._stream(path, query)
        except UnauthorizedError:
            if not self._rest.renew():
                raise
            return self._stream(path, query)

    def _stream(self, path: str, query: list[tuple[str, str]]) -> WSClient:
        from kubernetes.stream.ws_client import WSClient, get_websocket_url

        url = get_websocket_url(f"{self.server}{path}?{urlencode(query)}")
        authorization = self._rest.authorization()
        headers = {"authorization": authorization} if authorization else {}
        with self._stream_errors_explained(path):
            return WSClient(self._rest.configuration(), url, headers, capture_all=False, binary=True)

    def _path(self, kind: Kind, namespace: str | None = "") -> str:
        """Return the path of a kind in a namespace: by default the default one, for ``None`` all of them."""
        prefix = f"/apis/{kind.api_version}" if kind.group else f"/api/{kind.version}"
        inside = "" if namespace is None else f"/namespaces/{_segment(namespace or self.namespace)}"
        return f"{prefix}{inside}/{kind.plural}"

    def _path_of(self, manifest: Manifest) -> str:
        metadata = manifest["metadata"]
        kind, namespaced = self._kind_of(manifest)
        path = self._path(kind, metadata.get("namespace", self.namespace) if namespaced else None)
        return f"{path}/{_segment(metadata['name'])}"

    def _kind_of(self, manifest: Manifest) -> tuple[Kind, bool]:
        """Ask the API server for the kind of a manifest, and whether the kind is namespaced."""
        api_version, kind = manifest["apiVersion"], manifest["kind"]
        if (known := self._kinds.get((api_version, kind))) is not None:
            return known
        prefix = "apis" if "/" in api_version else "api"
        path = f"/{prefix}/{'/'.join(map(_segment, api_version.split('/')))}"
        resources = self._resources(path)
        for resource in resources:
            if resource["kind"] == kind and "/" not in resource["name"]:
                found = Kind(api_version, kind, resource["name"]), bool(resource["namespaced"])
                return self._kinds.setdefault((api_version, kind), found)
        way_out = did_you_mean(kind, {each["kind"] for each in resources}) or "install what defines it first"
        raise NotInstalledError(f"the cluster at {self.server} has no kind {kind} in {api_version}: {way_out}")

    def _resources(self, path: str) -> list[dict[str, Any]]:
        """Return what the API server says of the kinds of a version of an API group."""
        try:
            answer = self._rest.request("GET", path)
        except NotFoundError:
            return []
        resources = answer.get("resources") or [] if isinstance(answer, dict) else None
        wanted = {"kind", "name", "namespaced"}
        if not isinstance(resources, list) or not all(
            isinstance(each, dict) and wanted <= {*each} for each in resources
        ):
            raise api_errors.wrong_answer(self._rest.place, "APIResourceList", answer)
        return resources

    def _find(self, name: str, path: str, kind: Kind | None = None) -> Manifest | None:
        try:
            return self._object(name, self._rest.request("GET", path), kind)
        except NotInstalledError:
            raise
        except NotFoundError:
            return None

    def _object(self, name: str, answer: Any, kind: Kind | None = None) -> Manifest:
        """Return an answer that is an object of this kind; anything else can come from a server in between."""
        if not isinstance(answer, dict) or answer.get("kind") != name or not _is_object(answer, kind):
            raise api_errors.wrong_answer(self._rest.place, name, answer)
        return answer

    def _items(self, name: str, answer: Any, kind: Kind | None = None) -> list[Manifest]:
        """Return the objects of an answer that is a list of this kind."""
        items = (answer.get("items") or []) if isinstance(answer, dict) and answer.get("kind") == name else None
        if not isinstance(items, list) or not all(_is_object(item, kind) for item in items):
            raise api_errors.wrong_answer(self._rest.place, name, answer)
        return items

    @contextmanager
    def _stream_errors_explained(self, path: str) -> Iterator[None]:
        from websocket import WebSocketBadStatusException, WebSocketException

        try:
            with api_errors.explained(self._rest.place):
                yield
        except WebSocketBadStatusException as error:
            refused = api_errors.refusal(self._rest.place, error.status_code, error.resp_body or b"", "GET", path)
            if isinstance(refused, NotFoundError):
                refused = NotRunningError(f"{refused}: it has ended, or was replaced just now")
            raise refused from error
        except WebSocketException as error:
            raise api_errors.unreachable(self._rest.place, error) from error


def _segment(name: str) -> str:
    try:
        return path_segment(name)
    except InvalidName as error:
        raise ClientError(f"{error}: names have lower-case letters, digits, '-' and '.'") from error


def _is_object(value: Any, kind: Kind | None = None) -> bool:
    """Return whether a value has the outline of an object. Only its readers know what is inside."""
    if not isinstance(value, dict) or not isinstance(metadata := value.get("metadata"), dict):
        return False
    texts = ("name", "uid", *(("namespace",) if kind and kind.is_namespaced else ()))
    created = metadata.get("creationTimestamp", None if kind == POD else _ANY_TIME)
    required = _PARTS.get(kind, ()) if kind else ()
    parts = [value.get(part, {}) for part in ("spec", "status", "data")]
    return (
        all(isinstance(metadata.get(text), str) for text in texts)
        and isinstance(metadata.get("generation", 0), int)
        and is_moment(created)
        and all(isinstance(part, dict) or part is None for part in parts)
        and all(isinstance(value.get(part), dict) for part in required)
    )
