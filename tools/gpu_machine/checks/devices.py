"""Pods have the devices that they requested, and no privileges; each rank has its own; NCCL sums over all."""

import json
import re
from typing import Any

from tools.console import ToolError
from tools.gpu_machine.checks import pods
from tools.gpu_machine.checks.site import Site
from tools.gpu_machine.layout import IMAGE_NAME, NODE, RESOURCE

_FILES = "ls /dev | grep -E 'nvidia[0-9]' || echo none"
_SEEN = f"{_FILES}; nvidia-smi --list-gpus; python -c 'import torch; print(torch.ones(1).cuda())'"
_CAP_SYS_ADMIN = 1 << 21


def check(site: Site) -> None:
    """Look at a pod with one GPU, then at a pool of all and its ranks."""
    pods.clear(site.kubectl)
    seen = _seen_by_one_gpu_pod(site)
    site.say(f"a pod with one GPU:\n{seen}")
    site.say.row("a pod with one GPU sees one", len(re.findall(r"(?m)^nvidia\d+$", seen)) == 1, " ".join(seen.split()))
    pods.have_ranks(site)
    preflight = pods.condition(site, "resourcepool/gpu", "PreflightPassed")
    # With one process, there is nothing to sum.
    over_nccl = site.gpus == 1 or f"(nccl, {site.gpus} processes" in preflight["message"]
    site.say.row("the preflight sums over NCCL", preflight["status"] == "True" and over_nccl, preflight["message"])
    read = ("grep", "CapEff", "/proc/self/status")
    privileges = {pods.execute(site, pod, *read).split()[1] for pod in pods.workers(site)}
    site.say.row("pods are not privileged", not any(int(each, 16) & _CAP_SYS_ADMIN for each in privileges), privileges)
    files = pods.execute(site, pods.head(site), "sh", "-c", _FILES, container="ray-head").strip()
    site.say.row("the head has no device", files == "none", files)
    well, printed = pods.run_program(site, "look")
    site.say(printed)
    site.say.row("each rank has its own device, and all sum over NCCL", well, printed.splitlines()[-1])


def _seen_by_one_gpu_pod(site: Site) -> str:
    try:
        site.kubectl("apply", "--filename=-", stdin=json.dumps(_one_gpu_pod()))
        site.kubectl("wait", "pod/one-gpu", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=60s")
        return site.kubectl("logs", "pod/one-gpu")
    except ToolError as error:
        return f"{error}\n{site.kubectl('describe', 'pod/one-gpu')}"
    finally:
        site.kubectl("delete", "pod/one-gpu", "--grace-period=1")


def _one_gpu_pod() -> dict[str, Any]:
    container = {"name": "main", "image": IMAGE_NAME, "command": ["sh", "-c", _SEEN]}
    spec = {
        "restartPolicy": "Never",
        "nodeSelector": {"workergroups.dev/node": NODE},
        "tolerations": [{"key": RESOURCE, "operator": "Exists"}],
        "containers": [container | {"resources": {"limits": {RESOURCE: 1}}}],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one-gpu"}, "spec": spec}
