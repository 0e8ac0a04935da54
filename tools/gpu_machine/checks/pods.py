"""What checks do with objects and pods."""

import json
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE, Popen
from typing import IO, Any

from tools.console import ToolError, wait_until
from tools.demo.kubectl import Kubectl
from tools.gpu_machine.checks.site import Site, group

PROGRAMS = Path(__file__).parent / "programs"
READY_SECONDS = 180
_MOST_LEFT_MIB = 1024  # NCCL's buffers come and go
_HANG_SECONDS = 15
_WORKERS = "--selector=workergroups.dev/component=worker"
_HEADS = "--selector=ray.io/node-type=head"
_RUN = ("sh", "-c", 'cat > /tmp/program.py && exec python -u /tmp/program.py "$@"', "sh")


def apply(site: Site, *objects: dict[str, Any]) -> None:
    """Create or change objects."""
    site.kubectl("apply", "--filename=-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))


def have_code(site: Site) -> None:
    """Let the ConfigMap with the ranks' classes be there."""
    only_print = ("--dry-run=client", "--output=yaml")
    code = [f"--from-file={PROGRAMS / name}.py" for name in ("ranks", "eager", "grpo")]
    site.kubectl("apply", "--filename=-", stdin=site.kubectl("create", "configmap", "checks", *code, *only_print))


def have_ranks(site: Site) -> None:
    """Let the pool and the group `gpu` be ready, on all GPUs."""
    have_code(site)
    policy = group("gpu")["spec"]["failurePolicy"] | {"hangSeconds": _HANG_SECONDS}
    apply(site, site.pool("gpu", preflight="Fabric"), group("gpu", failurePolicy=policy))
    for each in ("resourcepool/gpu", "workergroup/gpu"):
        until_ready(site, each)


def until_ready(site: Site, name: str, seconds: int = READY_SECONDS) -> float:
    """Wait until an object is ready; return for how many seconds."""
    began = time.monotonic()
    try:
        site.kubectl("wait", name, "--for=condition=Ready", f"--timeout={seconds}s")
    except ToolError:
        site.say(site.kubectl("get", name, "--output=jsonpath={.status}"))
        site.say(site.kubectl("describe", "pods")[-4000:])
        raise
    site.say(f"{name} is Ready after {time.monotonic() - began:.1f} s")
    return time.monotonic() - began


def clear(kubectl: Kubectl) -> None:
    """Delete all pools and groups, and wait until the last of their pods is gone, and with it its devices."""
    kubectl("delete", "workergroups,resourcepools", "--all", "--timeout=60s")
    wait_until("pods to end", lambda: not kubectl.json("pods")["items"], seconds=120)


def status(site: Site, name: str) -> dict[str, Any]:
    """Return an object's status."""
    found: dict[str, Any] = site.kubectl.json(name).get("status", {})
    return found


def condition(site: Site, name: str, type_: str = "Ready") -> dict[str, Any]:
    """Return a condition; it is empty while it does not exist."""
    return next((each for each in status(site, name).get("conditions", ()) if each["type"] == type_), {})


def workers(site: Site) -> list[str]:
    """Return the names of the pods with devices."""
    return _names(site, _WORKERS)


def head(site: Site) -> str:
    """Return the name of the head's pod."""
    (name,) = _names(site, _HEADS)
    return name


def _names(site: Site, selector: str) -> list[str]:
    found = site.kubectl.json("pods", selector)["items"]
    return [pod["metadata"]["name"] for pod in found if "deletionTimestamp" not in pod["metadata"]]


def execute(site: Site, pod: str, *command: str, container: str = "ray-worker") -> str:
    """Run a command in a pod; return what it printed."""
    return site.kubectl("exec", pod, f"--container={container}", "--", *command)


def program_command(site: Site, *arguments: str) -> list[str]:
    """Return the command line that runs a program on the head; the program is its standard input."""
    where = ["exec", "-i", head(site), "--container=ray-head", "--"]
    return ["kubectl", "--namespace", site.kubectl.namespace, *where, *_RUN, *arguments]


def program_text(name: str) -> bytes:
    """Return a program of `programs/`."""
    return (PROGRAMS / f"{name}.py").read_bytes()


def run_program(site: Site, name: str, *arguments: str, seconds: int = 180) -> tuple[bool, str]:
    """Run a program on the head to its end; return whether it succeeded, and what it printed."""
    command = program_command(site, *arguments)
    try:
        done = subprocess.run(
            command,
            input=program_text(name),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=seconds,
        )
    except subprocess.TimeoutExpired as error:
        return False, f"not within {seconds} s: {(error.stdout or b'').decode(errors='replace')}"
    printed = done.stdout.decode(errors="replace").strip()
    return done.returncode == 0, printed.removesuffix(f"command terminated with exit code {done.returncode}").strip()


@contextmanager
def driving(
    site: Site, program: str, *arguments: str, seconds: float, errors: IO[bytes] | int
) -> Iterator[Popen[bytes]]:
    """Start a program on the head, to read what it prints while it runs; kill it after some seconds."""
    with Popen(program_command(site, *arguments), stdin=PIPE, stdout=PIPE, stderr=errors) as driver:
        assert driver.stdin is not None
        deadline = threading.Timer(seconds, driver.kill)
        deadline.start()
        driver.stdin.write(program_text(program))
        driver.stdin.close()
        yield driver
        deadline.cancel()


def kill(site: Site, where: str) -> None:
    """Kill a rank, given as POD/PROCESS."""
    pod, process = where.split("/")
    execute(site, pod, "sh", "-c", f"kill -KILL {process}")
    site.say(f"{where} is killed")


def used_memory(site: Site) -> list[int]:
    """Return the used memory of each GPU in MiB, as the pods that have them see it."""
    query = ("nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits")
    return [int(line) for pod in workers(site) for line in execute(site, pod, *query).splitlines()]


def judge_memory(site: Site, what: str, before: list[int]) -> None:
    """Judge that no GPU has more used memory than before."""
    after = used_memory(site)
    left = max(now - then for now, then in zip(after, before, strict=True))
    site.say.row(what, left < _MOST_LEFT_MIB, f"{before} MiB before, {after} MiB after")
