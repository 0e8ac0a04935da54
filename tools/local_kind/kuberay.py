"""KubeRay's chart, created from the manifests in its Go module, since no module contains its public chart."""

import json
import shutil

from tools.console import run
from tools.local_cluster import components
from tools.local_kind.layout import KUBERAY_CHART, KUBERAY_IMAGE, STATE

_NAMESPACE = "kuberay"


def write_chart() -> None:
    """Write the chart: KubeRay's resource definitions, its roles and its Deployment with our image."""
    source = STATE / "kuberay"
    shutil.copytree(components.source(components.KUBERAY) / "config", source, copy_function=shutil.copyfile)
    name, _, tag = KUBERAY_IMAGE.rpartition(":")
    overlay = {
        "namespace": _NAMESPACE,
        "resources": ["rbac", "manager"],
        "images": [{"name": "kuberay/operator", "newName": name, "newTag": tag}],
    }
    (source / "kustomization.yaml").write_text(json.dumps(overlay))
    (KUBERAY_CHART / "templates").mkdir(parents=True)
    manifests = run([components.binaries() / "kubectl", "kustomize", source])
    (KUBERAY_CHART / "templates" / "kuberay.yaml").write_text(manifests)
    shutil.copytree(source / "crd" / "bases", KUBERAY_CHART / "crds")
    chart = {"apiVersion": "v2", "name": "kuberay-operator", "version": "0.0.0"}
    (KUBERAY_CHART / "Chart.yaml").write_text(json.dumps(chart))
