"""The cluster that KUBECONFIG names. It has KubeRay, nodes with accelerators, and a registry from which it can pull."""

import os
from collections.abc import Sequence

from tools.console import ToolError, run
from tools.demo.clusters.base import TEST_IMAGES, Cluster, Images
from tools.demo.names import DEMO_NAMESPACE, OPERATOR_NAMESPACE, RELEASE

_CRDS = ("resourcepools.workergroups.dev", "workergroups.workergroups.dev")


class CurrentCluster(Cluster):
    """Somebody else's cluster, which the demo neither starts nor stops."""

    def start(self) -> None:
        """Check that it answers and has KubeRay."""
        if "rayclusters" not in run(["kubectl", "api-resources", "--api-group=ray.io", "--output=name"]):
            raise ToolError("this cluster has no RayCluster kind: install KubeRay 1.6.2 or later")

    def provide_images(self, vendors: Sequence[str]) -> Images:
        """Return the images that the user built and pushed."""
        return Images(operator=_given("OPERATOR_IMAGE"), worker=_given("WORKER_IMAGE"))

    def provide_test_images(self) -> dict[str, str]:
        """Return the images that the user built and pushed."""
        return {variable: _given(variable) for variable in TEST_IMAGES}

    def environment(self) -> dict[str, str]:
        """Return nothing: the user's environment has it already."""
        return {"KUBECONFIG": os.environ["KUBECONFIG"]} if "KUBECONFIG" in os.environ else {}

    def remove(self) -> None:
        """Remove the demo's namespace, the operator, and the CRDs unless others have pools or groups."""
        run(["kubectl", "delete", "namespace", DEMO_NAMESPACE, "--ignore-not-found"], show_progress=True)
        run(["helm", "uninstall", RELEASE, f"--namespace={OPERATOR_NAMESPACE}", "--ignore-not-found", "--wait"])
        run(["kubectl", "delete", "namespace", OPERATOR_NAMESPACE, "--ignore-not-found"], show_progress=True)
        served = run(["kubectl", "get", "customresourcedefinitions", *_CRDS, "--ignore-not-found", "--output=name"])
        if not served:
            return
        others = run(["kubectl", "get", "resourcepools,workergroups", "--all-namespaces", "--output=name"]).split()
        if others:
            raise ToolError(f"the CustomResourceDefinitions stay, since these still exist: {', '.join(others)}")
        run(["kubectl", "delete", *served.split()], show_progress=True)


def _given(variable: str) -> str:
    reference = os.environ.get(variable)
    if not reference:
        raise ToolError(
            f"CLUSTER=current needs {variable}: build the image (operator/Dockerfile, worker_image/Dockerfile, "
            f"tests/cluster/images), push it to a registry that the cluster pulls from, and set {variable} to its "
            "reference"
        )
    return reference
