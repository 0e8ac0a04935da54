"""A cluster by kind, for users with Docker; needs docker, kind, kubectl and helm on PATH."""

import json
from collections.abc import Sequence

from demo.clusters.base import TEST_IMAGES, Cluster, Images
from demo.console import REPOSITORY, run, say

_NAME = "workergroups"
_KUBECONFIG = REPOSITORY / ".demo" / "kind.kubeconfig"
_CONFIG = REPOSITORY / "demo" / "kind.yaml"
_KUBERAY_CHARTS = "https://ray-project.github.io/kuberay-helm/"
_KUBERAY_VERSION = "1.6.2"
# No device plugin: the nodes say that they have devices, and the scheduler believes them.
_DEVICES = {"nvidia.com/gpu.product": "nvidia.com/gpu", "amd.com/gpu.product-name": "amd.com/gpu"}


class KindCluster(Cluster):
    """Three workers as on the local cluster, and KubeRay from its public charts."""

    def start(self) -> None:
        """Create it, or find it running."""
        if _NAME not in run(["kind", "get", "clusters"]).split():
            say(f"creating the kind cluster {_NAME}")
            _KUBECONFIG.parent.mkdir(exist_ok=True)
            run(["kind", "create", "cluster", f"--config={_CONFIG}", f"--kubeconfig={_KUBECONFIG}", "--wait=120s"])
        for label, resource in _DEVICES.items():
            capacity = json.dumps({"status": {"capacity": {resource: "4"}}})
            for node in self._kubectl("get", "nodes", f"--selector={label}", "--output=name").split():
                self._kubectl("patch", node, "--subresource=status", "--type=merge", f"--patch={capacity}")
        say(f"installing KubeRay {_KUBERAY_VERSION}")
        chart = ["kuberay-operator", "kuberay-operator", f"--repo={_KUBERAY_CHARTS}", f"--version={_KUBERAY_VERSION}"]
        run(["helm", "upgrade", "--install", *chart, "--namespace=kuberay", "--create-namespace", "--wait"], self._env)

    def provide_images(self, vendors: Sequence[str]) -> Images:
        """Build with docker and load into all nodes; tagged by their content, so that a changed image is a new one."""
        return Images(
            operator=_provide("workergroups-operator", "operator/Dockerfile"),
            worker=_provide("workergroups-worker", "worker_image/Dockerfile"),
        )

    def provide_test_images(self) -> dict[str, str]:
        """Built and loaded as the others are."""
        return {
            variable: _provide(name, f"tests/cluster/images/{name.removeprefix('workergroups-')}.Dockerfile")
            for variable, name in TEST_IMAGES.items()
        }

    def environment(self) -> dict[str, str]:
        """Its kubeconfig."""
        return self._env

    def remove(self) -> None:
        """Delete the cluster and its kubeconfig."""
        run(["kind", "delete", "cluster", f"--name={_NAME}", f"--kubeconfig={_KUBECONFIG}"], show_progress=True)
        _KUBECONFIG.unlink(missing_ok=True)

    @property
    def _env(self) -> dict[str, str]:
        return {"KUBECONFIG": str(_KUBECONFIG)}

    def _kubectl(self, *arguments: str) -> str:
        return run(["kubectl", *arguments], self._env)


def _provide(name: str, dockerfile: str) -> str:
    say(f"building and loading {name}")
    digest = run(["docker", "build", "--quiet", f"--file={dockerfile}", "."], show_progress=True).strip()
    reference = f"{name}:{digest.removeprefix('sha256:')[:12]}"
    run(["docker", "tag", digest, reference])
    run(["kind", "load", "docker-image", reference, f"--name={_NAME}"])
    return reference
