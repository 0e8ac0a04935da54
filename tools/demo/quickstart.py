"""examples/quickstart from `kubectl apply` to the driver's results, with what it waits for."""

import re
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from tools.console import REPOSITORY, ToolError, say
from tools.demo.kubectl import Kubectl
from tools.demo.names import DEMO_NAMESPACE

EXAMPLE = "examples/quickstart"
_POOL, _GROUP, _RAY_CLUSTER = "resourcepool/quickstart", "workergroup/quickstart", "raycluster/quickstart"
_DEADLINE_SECONDS = 180
_LOOK_SECONDS = 0.5
_REPEAT_SECONDS = 10
# Lines that `ray job submit` and Ray itself print around the driver's own lines.
_RAY_LINES = re.compile(r"\d{4}-\d\d-\d\d |Running entrypoint ")


def run(kubectl: Kubectl) -> list[str]:
    """Apply, wait, run the driver. Return the driver's lines, and a line on the times after apply."""
    kubectl("apply", "--filename=-", stdin=f"{{apiVersion: v1, kind: Namespace, metadata: {{name: {DEMO_NAMESPACE}}}}}")
    is_new = kubectl.json(_GROUP, "--ignore-not-found") is None
    say(f"applying {EXAMPLE}")
    applied = time.monotonic()
    kubectl("apply", f"--kustomize={EXAMPLE}")
    with ThreadPoolExecutor() as threads:
        group_ready = threads.submit(_when, kubectl, _GROUP, "condition=Ready")
        kuberay_ready = threads.submit(_when, kubectl, _RAY_CLUSTER, "jsonpath={.status.state}=ready")
        _tell_until(group_ready, kubectl)
        say("running the driver as a Ray job on the pool's cluster")
        results = drive(kubectl, (REPOSITORY / EXAMPLE / "driver.py").read_text())
        times = (group_ready.result() - applied, kuberay_ready.result() - applied)
    if is_new:
        after_apply = "after apply: ranks answered after {:.1f} s; KubeRay said ready after {:.1f} s".format(*times)
    else:
        after_apply = "the pool and the group were there already, so there are no times after apply"
    return [*results, after_apply]


def remove(kubectl: Kubectl) -> None:
    """Remove the pool and the group, which releases their devices."""
    kubectl("delete", "namespace", DEMO_NAMESPACE, "--ignore-not-found")


def drive(kubectl: Kubectl, driver: str) -> list[str]:
    """Run a driver on the head, where the cluster's token is, and return the lines that it printed."""
    selector = "--selector=ray.io/cluster=quickstart,ray.io/node-type=head"
    head = kubectl("get", "pods", selector, "--output=name").strip()
    # Ray's job server may start to listen some seconds after the ranks answer.
    _when(kubectl, head, "condition=Ready")
    submit = "cat > /tmp/driver.py && ray job submit -- python /tmp/driver.py"
    output = kubectl("exec", "-i", head, "--container=ray-head", "--", "sh", "-c", submit, stdin=driver)
    return [line for line in output.splitlines() if line.strip() and not _RAY_LINES.match(line)]


def _when(kubectl: Kubectl, name: str, state: str) -> float:
    """Wait until the object is in this state; return when it was."""
    for condition in ("create", state):
        kubectl("wait", name, f"--for={condition}", f"--timeout={_DEADLINE_SECONDS}s")
    return time.monotonic()


def _tell_until(ready: Future[float], kubectl: Kubectl) -> None:
    """Print what the demo waits for, each time that it changes and every ten seconds."""
    began = time.monotonic()
    tell = _teller()
    while not ready.done():
        waits_for = _first_not_ready(kubectl)
        if waits_for:
            tell(waits_for, time.monotonic() - began)
        time.sleep(_LOOK_SECONDS)
    if ready.exception():
        raise ToolError(f"not ready after {_DEADLINE_SECONDS} s: {_first_not_ready(kubectl) or ready.exception()}")
    say(f"the group is ready, {time.monotonic() - began:.0f} s after apply")


def _teller() -> Callable[[str, float], None]:
    told, told_at = "", 0.0

    def tell(waits_for: str, waited: float) -> None:
        nonlocal told, told_at
        if waits_for != told or waited - told_at > _REPEAT_SECONDS:
            say(f"waiting for {waits_for}" if waits_for != told else f"still waiting, {waited:.0f} s after apply")
            told, told_at = waits_for, waited

    return tell


def _first_not_ready(kubectl: Kubectl) -> str | None:
    """Return the first condition that is not True, and why."""
    for each in kubectl.json(_POOL, _GROUP)["items"]:
        ready = _ready_condition(each)
        if ready["status"] != "True":
            until = f" (until {deadline})" if (deadline := each.get("status", {}).get("deadline")) else ""
            return f"{each['kind']} {each['metadata']['name']}: {ready['reason']}: {ready['message']}{until}"
    return None


def _ready_condition(each: dict[str, Any]) -> dict[str, str]:
    for condition in each.get("status", {}).get("conditions", ()):
        if condition["type"] == "Ready":
            return dict(condition)
    return {"status": "Unknown", "reason": "Unseen", "message": "the operator has not looked at it yet"}
