"""An operator for some namespaces serves these, and has no right in any other."""

import json
import shutil
import subprocess
import time
from uuid import uuid4

import pytest

from tests.api.test_process import Operator
from tests.unit.chart.helm import CHART, Helm, installed_helm
from tools.local_cluster.components import binaries

NAME = "workergroups-operator"
POOL = {
    "apiVersion": "workergroups.dev/v1alpha1",
    "kind": "ResourcePool",
    "metadata": {"name": "p"},
    "spec": {"processesPerNode": 1, "accelerator": {"vendor": "none"}},
}


class Kubectl:
    """kubectl as an administrator has it."""

    def __init__(self, access, directory):
        path = directory / "admin"
        path.write_text(json.dumps(access.kubeconfig("admin")))
        self._command = [shutil.which("kubectl", path=binaries()), f"--kubeconfig={path}"]

    def __call__(self, *words, stdin=None):
        done = subprocess.run([*self._command, *words], input=stdin, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def conditions(self, namespace):
        """Of the pool in a namespace."""
        found = json.loads(self("get", "resourcepool", "p", "-n", namespace, "-o", "json"))
        return found.get("status", {}).get("conditions", [])


@pytest.fixture
def kubectl(access, tmp_path):
    return Kubectl(access, tmp_path)


@pytest.fixture
def namespaces(kubectl):
    """One that is served, and one that is not: each has a pool."""
    names = [f"{word}-{uuid4().hex[:6]}" for word in ("served", "other")]
    for name in names:
        kubectl("create", "namespace", name)
        kubectl("apply", "-n", name, "-f", "-", stdin=json.dumps(POOL))
    yield names
    kubectl("delete", "namespace", *names, "--wait=false")


def grant(kubectl, namespace):
    """Give the chart's rights for a namespace, and nothing else, to the user of these tests."""
    only = ["--show-only=templates/rbac.yaml", f'--set-json=namespaces=["{namespace}"]']
    rendered = Helm(installed_helm()).run("template", "release", CHART, *only)
    kubectl(
        "apply", "--server-side", "-f", "-", stdin=rendered.replace("namespace: somewhere", f"namespace: {namespace}")
    )
    for role in (NAME, f"{NAME}-lease"):
        kubectl("create", "rolebinding", f"narrow-{role}", "-n", namespace, f"--role={role}", "--user=narrow")


@pytest.fixture
def operator(access, kubectl, namespaces, tmp_path):
    """The operator's process for the first namespace, and for one that does not exist."""
    served, _ = namespaces
    grant(kubectl, served)
    started = Operator(access, tmp_path, user="narrow", NAMESPACES=f"late-{served},{served}")
    yield started
    started.process.kill()
    started.process.wait()


def until_served(kubectl, operator, namespace, seconds):
    deadline = time.monotonic() + seconds
    while "HeadStarting" not in [each["reason"] for each in kubectl.conditions(namespace)]:
        if time.monotonic() > deadline:
            operator.process.terminate()
            pytest.fail(operator.end(seconds=30)[1])
        time.sleep(0.5)


def test_it_serves_its_namespace_and_is_refused_nothing(kubectl, namespaces, operator):
    served, other = namespaces
    operator.until_healthy()
    until_served(kubectl, operator, served, 30)
    # The agent's Deployment needs its ServiceAccount.
    kubectl("wait", "--for=create", "deployment/p-agent", "-n", served, "--timeout=20s")
    made = kubectl("get", "rayclusters,roles,deployments,networkpolicies", "-n", served, "-o", "name").split()
    made = [each for each in made if not each.endswith(("/workergroups-operator", "/workergroups-operator-lease"))]
    assert len(made) == 4, made
    assert kubectl.conditions(other) == []
    operator.process.terminate()
    _, printed = operator.end(seconds=30)
    refused = [line for line in printed.splitlines() if "orbidden" in line]
    assert refused, "the namespace that does not exist"
    assert [line for line in refused if f"/namespaces/late-{served}/" not in line] == []
    assert len(refused) == len({line.split("]", 1)[1] for line in refused}), "each is told once"


@pytest.mark.long
def test_a_namespace_that_comes_later_or_comes_back_is_served(kubectl, namespaces, operator):
    served, _ = namespaces
    late = f"late-{served}"
    operator.until_healthy()
    for _ in range(2):
        kubectl("create", "namespace", late)
        grant(kubectl, late)
        kubectl("apply", "-n", late, "-f", "-", stdin=json.dumps(POOL))
        until_served(kubectl, operator, late, 45)
        kubectl("delete", "namespace", late, "--wait=true")
