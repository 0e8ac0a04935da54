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


@pytest.fixture
def operator(access, kubectl, namespaces, tmp_path):
    """The operator's process, with what the chart grants for the first namespace and nothing else."""
    served, _ = namespaces
    only = ["--show-only=templates/rbac.yaml", f'--set-json=namespaces=["{served}"]']
    rendered = (
        Helm(installed_helm())
        .run("template", "release", CHART, *only)
        .replace("namespace: somewhere", f"namespace: {served}")
    )
    kubectl("apply", "--server-side", "-f", "-", stdin=rendered)
    kubectl("create", "rolebinding", "narrow", "-n", served, f"--role={NAME}", "--user=narrow")
    started = Operator(access, tmp_path, user="narrow", NAMESPACES=served)
    yield started
    started.process.kill()
    started.process.wait()


def test_it_serves_its_namespace_and_is_refused_nothing(kubectl, namespaces, operator):
    served, other = namespaces
    operator.until_healthy()
    deadline = time.monotonic() + 30
    while "HeadStarting" not in [each["reason"] for each in kubectl.conditions(served)]:
        if time.monotonic() > deadline:
            operator.process.terminate()
            pytest.fail(operator.end(seconds=30)[1])
        time.sleep(0.5)
    made = kubectl("get", "rayclusters,roles,deployments,networkpolicies", "-n", served, "-o", "name").split()
    assert len(made) == 5, made
    assert kubectl.conditions(other) == []
    operator.process.terminate()
    _, printed = operator.end(seconds=30)
    assert "orbidden" not in printed, printed
