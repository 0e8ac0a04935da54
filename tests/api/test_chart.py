"""A real API server accepts what the chart installs, whatever its values are."""

import json
import shutil
import subprocess

from tests.unit.chart.helm import CHART, Helm, installed_helm
from tools.local_cluster.components import binaries

VALUES = {
    "image": {"registry": "mirror.example:5000/a", "tag": "nightly"},
    "operator": {
        "log": {"level": "debug", "format": "json"},
        "env": [
            {"name": "A", "value": "b"},
            {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
        ],
        "labels": {"team": "ml"},
        "annotations": {"example.com/a": "b"},
        "nodeSelector": {"a": "b"},
        "tolerations": [{"key": "a", "operator": "Exists"}],
        "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]}},
        "priorityClassName": "system-cluster-critical",
        "imagePullSecrets": [{"name": "registry"}],
        "podSecurityContext": {"runAsUser": None, "runAsGroup": None, "fsGroup": 7},
        "securityContext": {"runAsNonRoot": True},
        "resources": {"limits": {"cpu": 1}},
        "serviceAccount": {"name": "theirs", "annotations": {"role": "arn"}},
    },
    "namespaces": ["default", "kube-public"],
    "networkPolicy": {
        "dashboardFrom": [{"podSelector": {"matchLabels": {"a": "b"}}, "namespaceSelector": {}}],
        "egress": [{"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}], "ports": [{"port": 443}]}],
    },
}


def test_every_value_gives_objects_that_the_api_server_accepts(access, tmp_path):
    values, kubeconfig = tmp_path / "values.yaml", tmp_path / "kubeconfig"
    values.write_text(json.dumps(VALUES))
    kubeconfig.write_text(json.dumps(access.kubeconfig("admin")))
    rendered = Helm(installed_helm()).run("template", "release", CHART, "--no-hooks", f"--values={values}")
    kubectl = [shutil.which("kubectl", path=binaries()), f"--kubeconfig={kubeconfig}"]
    done = subprocess.run(
        [
            *kubectl,
            "apply",
            "--server-side",
            "--force-conflicts",
            "--dry-run=server",
            "--validate=strict",
            "--filename=-",
        ],
        input=rendered.replace("namespace: somewhere", "namespace: default"),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "deployment.apps/workergroups-operator serverside-applied (server dry run)" in done.stdout
