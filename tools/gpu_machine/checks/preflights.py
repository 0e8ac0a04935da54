"""Pools whose nodes lack something: the preflight names it, and no rank starts there."""

import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tools.console import ToolError
from tools.gpu_machine.checks import pods
from tools.gpu_machine.checks.site import Site
from tools.gpu_machine.layout import DRIVER, NODE

_SECONDS = 120
_JUDGED = ("PreflightPassed", "PreflightFailed")
# What hides the driver's libraries, which the device plugin has mounted.
_NOTHING = {
    "spec": {
        "containers": [{"name": "ray-worker", "volumeMounts": [{"name": "nothing", "mountPath": f"{DRIVER}/lib64"}]}],
        "volumes": [{"name": "nothing", "emptyDir": {}}],
    }
}
# For each node, a file that NCCL reads if it is there.
_FILES = "/var/nccl"
_NODE = {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}
_FILE = {"name": "NCCL_CONF_FILE", "value": f"{_FILES}/$(NODE).conf"}
_WITH_FILES = {
    "preflight": "Fabric",
    "podTemplate": {"spec": {"containers": [{"name": "ray-worker", "env": [_NODE, _FILE]}]}},
    "volumes": [{"mountPath": _FILES, "hostPath": {"path": _FILES, "type": "DirectoryOrCreate"}, "readOnly": True}],
}
# What is wrong with the pool: its fields, and what its status says.
_WRONG: Mapping[str, tuple[dict[str, Any], str]] = {
    "no driver library": ({"podTemplate": _NOTHING}, r"driver|libcuda|CUDA|device"),
    "a list of devices that leaves one out": (
        {"env": [{"name": "CUDA_VISIBLE_DEVICES", "value": "7"}]},
        r"CUDA_VISIBLE_DEVICES|device",
    ),
}
_WRONG_ON_ONE_NODE: Mapping[str, tuple[dict[str, Any], str]] = {
    "NCCL_P2P_DISABLE on one node of two": (_WITH_FILES, r"NCCL_P2P_DISABLE: \S+ has (1|none), \S+ has (1|none)")
}


def check(site: Site) -> None:
    """Create each pool, and read its status."""
    Path(_FILES).mkdir(exist_ok=True)
    Path(_FILES, f"{NODE}.conf").write_text("NCCL_P2P_DISABLE=1\n")
    for what, (fields, expected) in {**_WRONG, **(_WRONG_ON_ONE_NODE if site.nodes == 2 else {})}.items():
        pods.clear(site.kubectl)
        try:
            pods.apply(site, site.pool("gpu", **({"preflight": "Basic"} | fields)))
            message = _until_judged(site)
        except ToolError as error:  # refused at once
            message = str(error)
        site.say.row(f"{what}: named", bool(re.search(expected, message)) and "Ready=True" not in message, message)
    pods.clear(site.kubectl)


def _until_judged(site: Site) -> str:
    """Return the conditions of the pool as soon as its preflight has passed or failed, or after two minutes."""
    deadline = time.monotonic() + _SECONDS
    while True:
        preflight = pods.condition(site, "resourcepool/gpu", "PreflightPassed")
        ready = pods.condition(site, "resourcepool/gpu")
        if preflight.get("reason") in _JUDGED or time.monotonic() > deadline:
            return "; ".join(map(_line, filter(None, (ready, preflight))))
        time.sleep(0.5)


def _line(condition: dict[str, Any]) -> str:
    return f"{condition['type']}={condition['status']} {condition['reason']}: {condition['message']}"
