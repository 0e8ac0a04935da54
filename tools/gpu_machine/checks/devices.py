"""Pods have the devices that they asked for, and no privileges; each rank has its own; NCCL sums."""

import subprocess

from tools.console import ToolError
from tools.demo.kubectl import Kubectl
from tools.gpu_machine.checks import pods

_FILES = "ls /dev | grep nvidia || echo none"
_SEEN = f"{_FILES}; nvidia-smi --list-gpus; grep CapEff /proc/self/status"
_CONTAINERS = "jsonpath={range .items[*].spec.containers[*]}{.name} {.securityContext} {.resources.limits}{'\\n'}{end}"


def check(kubectl: Kubectl) -> None:
    """Create pool and group, and print what they see."""
    say = pods.Report("devices")
    say(f"a pod with one GPU:\n{_seen_by_one_gpu_pod(kubectl)}")
    pods.apply(kubectl)
    say("applied")
    pods.wait_until_ready(kubectl, say)
    for status in pods.status(kubectl):
        for each in status["conditions"]:
            say(f"{status['kind']} {each['type']}={each['status']} {each['reason']}: {each['message']}")
    say(f"containers:\n{kubectl('get', 'pods', f'--output={_CONTAINERS}')}")
    say(f"in the worker's container:\n{pods.in_worker(kubectl, 'sh', '-c', _SEEN)}")
    files = kubectl("exec", pods.head(kubectl), "--container=ray-head", "--", "sh", "-c", _FILES)
    say(f"device files in the head's container: {files}")
    for method in ("look", "speed"):
        done = subprocess.run(pods.driver_command(kubectl, method), input=pods.driver_text(), capture_output=True)
        say(f"driver, {method}:\n{done.stdout.decode()}")
    say(f"used memory: {pods.used_memory(kubectl)}")


def _seen_by_one_gpu_pod(kubectl: Kubectl) -> str:
    manifest = f"--filename={pods.HERE / 'one_gpu.yaml'}"
    kubectl("apply", manifest)
    try:
        kubectl("wait", "pod/one-gpu", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=60s")
        return kubectl("logs", "pod/one-gpu")
    except ToolError as error:
        return f"{error}\n{kubectl('describe', 'pod/one-gpu')}"
    finally:
        kubectl("delete", manifest)
