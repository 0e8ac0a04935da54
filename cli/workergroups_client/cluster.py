"""The API server that a kubeconfig names: objects as plain dicts, and streams into pods.

The operator and the agent share `workergroups_api.kube`, which is asynchronous and runs in a pod with a ServiceAccount.
The command line has its own client: it is synchronous, so that users can call it from any program; it reads
kubeconfigs with their login plugins through the kubernetes package; it opens streams into pods; and it does not need
aiohttp.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import urllib3
from websocket import WebSocketBadStatusException, WebSocketException

from workergroups_api.manifest import POD, Kind, Manifest

from .errors import ClientError, ConflictError, NotFoundError, UnreachableError

if TYPE_CHECKING:
    from kubernetes.client import Configuration
    from kubernetes.stream.ws_client import WSClient

REQUEST_SECONDS = 15
_FIELD_MANAGER = "workergroups-cli"
_NAMES_ONLY = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


class Cluster:
    """A connection to the API server, and the default namespace.

    Args:
        namespace: The default namespace; by default that of the kubeconfig's context.
        context: A context of the kubeconfig; by default the current one.
    """

    def __init__(self, namespace: str | None = None, context: str | None = None) -> None:
        from kubernetes.client import ApiClient
        from kubernetes.dynamic import DynamicClient

        self._configuration, self.context, own_namespace = _load(context)
        self.namespace = namespace or own_namespace
        self._client = DynamicClient(ApiClient(self._configuration), discoverer=_NoDiscovery)

    @property
    def server(self) -> str:
        """The address of the API server."""
        return str(self._configuration.host)

    def get(self, kind: Kind, name: str) -> Manifest | None:
        """Return the object of that name; ``None`` if it does not exist."""
        try:
            found: Manifest = self._request("GET", f"{self._path(kind)}/{name}")
        except NotFoundError:
            return None
        return found

    def select(self, kind: Kind, selector: str = "", *, everywhere: bool = False) -> list[Manifest]:
        """Return the objects that a label selector matches, in the default namespace or in all namespaces."""
        answer = self._request("GET", self._path(kind, None if everywhere else self.namespace), label_selector=selector)
        return list(answer["items"])

    def names(self, kind: Kind) -> list[str]:
        """Return the names of the objects in the default namespace, without fetching their contents."""
        answer = self._request("GET", self._path(kind), header_params={"Accept": _NAMES_ONLY})
        return [str(each["metadata"]["name"]) for each in answer["items"]]

    def apply(self, manifest: Manifest, *, force: bool = False) -> Manifest:
        """Apply an object by server-side apply, in the namespace that it names or else in the default one.

        Args:
            manifest: The object.
            force: Whether to take over fields that another manager holds.

        Raises:
            ConflictError: Another manager holds fields of the object; the message names the fields and the manager.
        """
        metadata = manifest["metadata"]
        kind, namespaced = self._kind_of(manifest)
        path = self._path(kind, metadata.get("namespace", self.namespace) if namespaced else None)
        applied: Manifest = self._request(
            "PATCH",
            f"{path}/{metadata['name']}",
            body=json.dumps(manifest),
            content_type="application/apply-patch+yaml; charset=utf-8",
            field_manager=_FIELD_MANAGER,
            force_conflicts=force,
        )
        return applied

    def annotate(self, kind: Kind, name: str, annotation: str, value: str) -> None:
        """Set an annotation of an object."""
        self.merge(kind, name, {"metadata": {"annotations": {annotation: value}}})

    def edit(self, kind: Kind, name: str, spec: Mapping[str, Any]) -> None:
        """Set fields of an object's spec, and leave the others as they are."""
        self.merge(kind, name, {"spec": dict(spec)})

    def merge(self, kind: Kind, name: str, patch: Manifest) -> None:
        """Set some fields of an object, and remove those that are ``None`` in the patch."""
        self._request("PATCH", f"{self._path(kind)}/{name}", body=patch, content_type="application/merge-patch+json")

    def delete(self, kind: Kind, manifest: Manifest) -> None:
        """Delete this object if it still exists, but not a newer one of the same name."""
        metadata = manifest["metadata"]
        body = {"preconditions": {"uid": metadata["uid"]}, "propagationPolicy": "Background"}
        try:
            self._request("DELETE", f"{self._path(kind, metadata['namespace'])}/{metadata['name']}", body=body)
        except NotFoundError:
            return

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
        from kubernetes.stream.ws_client import WSClient, get_websocket_url

        # CoreV1Api would do the same, but importing the classes of Kubernetes' own objects takes a second.
        path = f"{self._path(POD)}/{pod}/{subresource}"
        _, url, headers, _, _ = self._client.client.param_serialize(
            "GET", path, query_params=query, header_params={}, auth_settings=["BearerToken"]
        )
        with self._errors_explained():
            return WSClient(self._configuration, get_websocket_url(url), headers, capture_all=False, binary=True)

    def _path(self, kind: Kind, namespace: str | None = "") -> str:
        """Return the path of a kind in a namespace: by default the default one, for ``None`` all of them."""
        prefix = f"/apis/{kind.api_version}" if kind.group else f"/api/{kind.version}"
        inside = "" if namespace is None else f"/namespaces/{namespace or self.namespace}"
        return f"{prefix}{inside}/{kind.plural}"

    def _kind_of(self, manifest: Manifest) -> tuple[Kind, bool]:
        """Ask the API server for the kind of a manifest, and whether the kind is namespaced."""
        api_version, kind = manifest["apiVersion"], manifest["kind"]
        prefix = "apis" if "/" in api_version else "api"
        for resource in self._request("GET", f"/{prefix}/{api_version}")["resources"]:
            if resource["kind"] == kind and "/" not in resource["name"]:
                return Kind(api_version, kind, resource["name"]), resource["namespaced"]
        raise NotFoundError(
            f"the cluster at {self.server} has no kind {kind} in {api_version}: install what defines it first"
        )

    def _request(self, method: str, path: str, **options: Any) -> Any:
        with self._errors_explained():
            answer = self._client.request(method, path, _request_timeout=REQUEST_SECONDS, **options)
            return answer.to_dict()

    @contextmanager
    def _errors_explained(self) -> Iterator[None]:
        from kubernetes.client import ApiException

        try:
            yield
        except ApiException as error:
            raise self._explained(error.status, _message(error.body) or error.reason) from error
        except WebSocketBadStatusException as error:
            raise self._explained(error.status_code, _message(error.resp_body) or str(error)) from error
        except (WebSocketException, urllib3.exceptions.HTTPError, OSError) as error:
            raise UnreachableError(unreachable(self.server, self.context, error)) from error

    def _explained(self, status: int, said: str) -> ClientError:
        if status == 404:
            return NotFoundError(said)
        if status == 409:
            return ConflictError(said)
        if status in (401, 403):
            return ClientError(f"the API server at {self.server} refused the request (context {self.context}): {said}")
        return ClientError(said)


def unreachable(server: str, context: str, error: object) -> str:
    """Return the message for an API server that does not answer."""
    reason = str(getattr(error, "reason", None) or error) or type(error).__name__
    reason = reason.rpartition("] ")[2] if "Errno" in reason else reason
    return (
        f"the API server at {server} (context {context}) does not answer: {reason}. Check that the cluster is up, "
        f"that this machine reaches it (VPN, proxy), and that the context is the right one: kubectl config get-contexts"
    )


def _load(context: str | None) -> tuple[Configuration, str, str]:
    """Return the settings of the kubeconfig, the name of the context, and the namespace of the context."""
    from kubernetes.client import Configuration
    from kubernetes.config import ConfigException, list_kube_config_contexts, load_kube_config

    configuration = Configuration()
    try:
        contexts, current = list_kube_config_contexts()
        names = {each["name"]: each for each in contexts}
        if context is not None and context not in names:
            raise ClientError(f"the kubeconfig has no context {context}; it has {', '.join(sorted(names)) or 'none'}")
        load_kube_config(context=context, client_configuration=configuration)
    except (ConfigException, OSError) as error:
        raise ClientError(
            f"there is no usable kubeconfig: {str(error).rstrip('.')}. Set KUBECONFIG, or copy the cluster's "
            f"kubeconfig to ~/.kube/config"
        ) from error
    chosen = names[context] if context else current
    # An API server that is away is reported at once; the callers retry where that makes sense.
    configuration.retries = 0
    return configuration, chosen["name"], chosen["context"].get("namespace") or "default"


def _message(body: str | bytes | None) -> str | None:
    """Return the API server's own message; ``None`` if it has none."""
    try:
        return str(json.loads(body or "")["message"])
    except (ValueError, KeyError, TypeError):
        return None


class _NoDiscovery:
    """Kinds are known, or looked up one by one: discovering all of them takes seconds on a large cluster."""

    def __init__(self, *_: Any) -> None:
        pass
