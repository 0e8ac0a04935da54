"""The check's objects, its driver, and what is printed of them."""

import time
from pathlib import Path
from typing import Any

from tools.console import ToolError
from tools.demo.kubectl import Kubectl
from tools.gpu_machine.layout import RESULTS

HERE = Path(__file__).parent
_OBJECTS = ("workergroup/gpu", "resourcepool/gpu")
_WORKER = ("--selector=workergroups.dev/component=worker", "--output=name")
_HEAD = ("--selector=ray.io/node-type=head", "--output=name")
DRIVER = ("sh", "-c", 'cat > /tmp/driver.py && exec python -u /tmp/driver.py "$0"')


class Report:
    """What a check says: to the terminal and to a file of the results, with the seconds since it began."""

    def __init__(self, name: str) -> None:
        Path(RESULTS).mkdir(exist_ok=True)
        self._path = Path(RESULTS, f"{name}.txt")
        self._path.write_text("")
        self._began = time.time()
        self(f"=== {name}")

    def __call__(self, text: str) -> None:
        """Say something."""
        line = f"[{time.time() - self._began:6.1f}] {text}"
        print(line, flush=True)
        with self._path.open("a") as file:
            print(line, file=file)


def apply(kubectl: Kubectl) -> None:
    """Create pool and group, unless they are there."""
    only_print = ("--dry-run=client", "--output=yaml")
    code = kubectl("create", "configmap", "checks", f"--from-file={HERE / 'ranks.py'}", *only_print)
    kubectl("apply", "--filename=-", stdin=code)
    kubectl("apply", f"--filename={HERE / 'objects.yaml'}")


def status(kubectl: Kubectl) -> list[dict[str, Any]]:
    """Return the statuses of group and pool."""
    return [each.get("status", {}) | {"kind": each["kind"]} for each in kubectl.json(*_OBJECTS)["items"]]


def wait_until_ready(kubectl: Kubectl, say: Report) -> None:
    """Wait for group and pool, and say so."""
    for each in reversed(_OBJECTS):
        try:
            kubectl("wait", each, "--for=condition=Ready", "--timeout=150s")
        except ToolError:
            say(kubectl("describe", "pods")[-6000:])
            raise
        say(f"{each} is Ready")


def head(kubectl: Kubectl) -> str:
    """Return the name of the head's pod."""
    return kubectl("get", "pods", *_HEAD).strip()


def worker(kubectl: Kubectl) -> str:
    """Return the name of the pod with the devices."""
    return kubectl("get", "pods", *_WORKER).splitlines()[0]


def in_worker(kubectl: Kubectl, *command: str) -> str:
    """Run a command in the pod with the devices."""
    return kubectl("exec", worker(kubectl), "--container=ray-worker", "--", *command)


def driver_command(kubectl: Kubectl, method: str) -> list[str]:
    """Return the command line that runs the driver, which is given on standard input."""
    where = ["exec", "-i", head(kubectl), "--container=ray-head", "--"]
    return ["kubectl", "--namespace", kubectl.namespace, *where, *DRIVER, method]


def driver_text() -> bytes:
    """Return the driver's program."""
    return (HERE / "driver.py").read_bytes()


def used_memory(kubectl: Kubectl) -> str:
    """Return the used memory of each GPU, as the worker's pod sees it."""
    query = ("nvidia-smi", "--query-gpu=index,memory.used", "--format=csv,noheader")
    return "; ".join(in_worker(kubectl, *query).splitlines())
