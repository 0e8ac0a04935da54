"""Install the operator's chart on a cluster, or upgrade it."""

import json
from collections.abc import Sequence

from tools.console import run, say
from tools.demo.clusters import Cluster, Images
from tools.demo.kubectl import Kubectl
from tools.demo.names import OPERATOR_NAMESPACE, RELEASE

_CHART = "charts/workergroups"


def install(cluster: Cluster, vendors: Sequence[str], namespaces: Sequence[str] = ()) -> Images:
    """Start the cluster with the operator, and load the images to the nodes of these vendors.

    The operator serves these namespaces only, which are made and enforce the restricted Pod Security Standard; by
    default, it serves all.
    """
    cluster.start()
    images = cluster.provide_images(vendors)
    say("installing the operator with Helm")
    values = {
        "operator": {"image": images.operator, "nodeSelector": dict(cluster.operator_nodes)},
        "worker": {"image": images.worker},
        "namespaces": list(namespaces),
    }
    kubectl = Kubectl(cluster.environment(), OPERATOR_NAMESPACE)
    for name in namespaces:
        kubectl("create", "namespace", name)
        kubectl("label", "namespace", name, "pod-security.kubernetes.io/enforce=restricted")
    settings = [f"--set-json={key}={json.dumps(value)}" for key, value in values.items()]
    where = [f"--namespace={OPERATOR_NAMESPACE}", "--create-namespace", "--wait", "--timeout=180s"]
    run(["helm", "upgrade", "--install", RELEASE, _CHART, *where, *settings], cluster.environment())
    return images
