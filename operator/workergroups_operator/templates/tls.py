"""TLS for Ray's processes: an init container makes a certificate for the pod's addresses, which Ray's container mounts.

Ray compares the address that it connects to with the certificate of the other side. So each pod needs one of its own,
and the authority's key must be there when a pod starts: it is in the Secret with Ray's token, which gives the same
power. Ray's container gets the certificate only.
"""

from collections.abc import Mapping
from typing import Any

from workergroups_api.names import AUTHORITY_KEY, head_service_name, token_secret_name
from workergroups_api.vocabulary import Container
from workergroups_operator.membership import ClusterKey
from workergroups_operator.templates.library import INIT_RESOURCES, READ_ONLY

_VOLUME = "workergroups-certificate"
_DIRECTORY = "/opt/workergroups-certificate"
_MOUNT = {"name": _VOLUME, "mountPath": _DIRECTORY}
# In the words of Ray.
_VARIABLES = {
    "RAY_USE_TLS": "1",
    "RAY_TLS_CA_CERT": f"{_DIRECTORY}/ca.crt",
    "RAY_TLS_SERVER_CERT": f"{_DIRECTORY}/tls.crt",
    "RAY_TLS_SERVER_KEY": f"{_DIRECTORY}/tls.key",
}


def with_tls(spec: Mapping[str, Any], container: Container, key: ClusterKey, operator_image: str) -> dict[str, Any]:
    """Return the pod's spec with TLS in the container of that name.

    The spec includes a user's template, which may be any JSON. A spec that is no pod stays as it is; the API server
    explains what is wrong with it.
    """
    containers, first, volumes = (spec.get(field) or [] for field in ("containers", "initContainers", "volumes"))
    if not all(isinstance(part, list) for part in (containers, first, volumes)):
        return dict(spec)
    return {
        **spec,
        "initContainers": [_make_certificate(key, operator_image), *first],
        "containers": [
            _using(each) if isinstance(each, Mapping) and each.get("name") == container else each for each in containers
        ],
        "volumes": [*volumes, {"name": _VOLUME, "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}}],
    }


def _make_certificate(key: ClusterKey, operator_image: str) -> dict[str, Any]:
    authority = {"secretKeyRef": {"name": token_secret_name(key.name), "key": AUTHORITY_KEY}}
    return {
        "name": Container.CERTIFICATE,
        "image": operator_image,
        "imagePullPolicy": "IfNotPresent",
        "command": [
            "python3",
            "-m",
            "workergroups_operator.node_certificate",
            head_service_name(key.name),
            key.namespace,
        ],
        "env": [
            {"name": "POD_IPS", "valueFrom": {"fieldRef": {"fieldPath": "status.podIPs"}}},
            {"name": "AUTHORITY_KEY", "valueFrom": authority},
            {"name": "DIRECTORY", "value": _DIRECTORY},
        ],
        "resources": INIT_RESOURCES,
        "securityContext": READ_ONLY,
        "volumeMounts": [_MOUNT],
    }


def _using(main: Mapping[str, Any]) -> dict[str, Any]:
    env, mounts = main.get("env") or [], main.get("volumeMounts") or []
    if not isinstance(env, list) or not isinstance(mounts, list):
        return dict(main)
    ours = [{"name": name, "value": value} for name, value in _VARIABLES.items()]
    return {**main, "env": [*env, *ours], "volumeMounts": [*mounts, {**_MOUNT, "readOnly": True}]}
