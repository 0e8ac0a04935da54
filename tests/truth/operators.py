"""The operator's pods: which of them serves, and how to lose it."""

from __future__ import annotations

import time

from tools.demo.kubectl import Kubectl
from tools.demo.names import OPERATOR_NAMESPACE

DEPLOYMENT = "deployment/workergroups-operator"
PODS = "--selector=app.kubernetes.io/name=workergroups-operator"
REPLICAS = 2
_HOLDER = "--output=jsonpath={.spec.holderIdentity}"
_TAKEN_OVER_SECONDS = 60


def kubectl() -> Kubectl:
    """Return kubectl in the operator's namespace."""
    return Kubectl({}, OPERATOR_NAMESPACE)


def serving() -> str:
    """Return the name of the pod that serves; empty while none does."""
    return kubectl()("get", "lease", "workergroups-operator", _HOLDER).strip()


def serving_container() -> str:
    """Return the ID of the container that serves."""
    path = "--output=jsonpath={.status.containerStatuses[0].containerID}"
    return kubectl()("get", "pod", serving(), path).strip()


def kill_serving() -> None:
    """Kill the process that serves, with its pod; return when another one serves."""
    lost = serving()
    kubectl()("delete", "pod", lost, "--grace-period=0", "--force")
    deadline = time.monotonic() + _TAKEN_OVER_SECONDS
    while serving() in ("", lost):
        if time.monotonic() > deadline:
            raise TimeoutError(f"no operator serves after {lost}")
        time.sleep(0.2)
