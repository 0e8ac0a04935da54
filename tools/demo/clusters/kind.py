"""A cluster by kind, for users with Docker; needs docker, kind, kubectl and helm on PATH.

Where images and charts cannot be pulled, three variables name local ones instead: KIND_NODE_IMAGE, KUBERAY_CHART
(a directory or an archive) and BASE_IMAGE, which the project's images are built on.
"""

import json
import os
from collections.abc import Sequence
from types import MappingProxyType

from tools.console import REPOSITORY, run, say
from tools.demo.clusters.base import TEST_IMAGES, Cluster, Images

_NAME = "workergroups"
_KUBECONFIG = REPOSITORY / ".demo" / "kind.kubeconfig"
_CONFIG = REPOSITORY / "tools" / "demo" / "kind.yaml"
_KUBERAY_CHARTS = "https://ray-project.github.io/kuberay-helm/"
_KUBERAY_VERSION = "1.6.2"
_NODE_LABEL = "workergroups.dev/node"
# Only the nodes' status claims devices, which is enough for the scheduler. As on real clusters,
# only pods that request a device may run there.
_DEVICES = {"nvidia.com/gpu.product": "nvidia.com/gpu", "amd.com/gpu.product-name": "amd.com/gpu"}


class KindCluster(Cluster):
    """Three workers as on the local cluster, and KubeRay from its public charts."""

    operator_nodes = MappingProxyType({_NODE_LABEL: "plain"})

    @classmethod
    def is_there(cls) -> bool:
        """Return whether its kubeconfig exists."""
        return _KUBECONFIG.exists()

    def start(self) -> None:
        """Create the cluster, unless it runs."""
        if _NAME not in run(["kind", "get", "clusters"]).split():
            say(f"creating the kind cluster {_NAME}")
            _KUBECONFIG.parent.mkdir(exist_ok=True)
            create = ["kind", "create", "cluster", f"--config={_CONFIG}", f"--kubeconfig={_KUBECONFIG}", "--wait=120s"]
            run([*create, *_given("--image", "KIND_NODE_IMAGE")])
        for label, resource in _DEVICES.items():
            devices = {resource: "4"}
            patch = json.dumps({"status": {"capacity": devices, "allocatable": devices}})
            for node in self._nodes(label):
                self._kubectl("patch", "node", node, "--subresource=status", "--type=merge", f"--patch={patch}")
                self._kubectl("taint", "node", node, f"{resource}=present:NoSchedule", "--overwrite")
        chart = os.environ.get("KUBERAY_CHART")
        say(f"installing KubeRay from {chart or _KUBERAY_CHARTS}")
        public = ["kuberay-operator", f"--repo={_KUBERAY_CHARTS}", f"--version={_KUBERAY_VERSION}"]
        install = ["helm", "upgrade", "--install", "kuberay-operator", *([chart] if chart else public)]
        run([*install, "--namespace=kuberay", "--create-namespace", "--wait"], self._env)

    def provide_images(self, vendors: Sequence[str]) -> Images:
        """Build with docker, and tag by content, so that a changed image is a new one. A vendor's node has its name."""
        nodes = self._nodes(f"{_NODE_LABEL} in (plain,{','.join(vendors)})")
        return Images(
            operator=_provide("workergroups-operator", "operator/Dockerfile", nodes),
            worker=_provide("workergroups-worker", "worker_image/Dockerfile", nodes),
        )

    def provide_test_images(self) -> dict[str, str]:
        """Build and load them like the other images."""
        nodes = self._nodes(f"{_NODE_LABEL}=plain")
        return {
            variable: _provide(name, f"tests/cluster/images/{name.removeprefix('workergroups-')}.Dockerfile", nodes)
            for variable, name in TEST_IMAGES.items()
        }

    def environment(self) -> dict[str, str]:
        """Return its kubeconfig."""
        return self._env

    def remove(self) -> None:
        """Delete the cluster and its kubeconfig."""
        run(["kind", "delete", "cluster", f"--name={_NAME}", f"--kubeconfig={_KUBECONFIG}"], show_progress=True)
        _KUBECONFIG.unlink(missing_ok=True)

    @property
    def _env(self) -> dict[str, str]:
        return {"KUBECONFIG": str(_KUBECONFIG)}

    def _nodes(self, selector: str) -> list[str]:
        """Return the names of the nodes with these labels."""
        names = "jsonpath={.items[*].metadata.name}"
        return self._kubectl("get", "nodes", f"--selector={selector}", f"--output={names}").split()

    def _kubectl(self, *arguments: str) -> str:
        return run(["kubectl", *arguments], self._env)


def _provide(name: str, dockerfile: str, nodes: Sequence[str]) -> str:
    say(f"building and loading {name}")
    base = _given("--build-arg=BASE_IMAGE", "BASE_IMAGE")
    digest = run(["docker", "build", "--quiet", f"--file={dockerfile}", *base, "."], show_progress=True).strip()
    reference = f"{name}:{digest.removeprefix('sha256:')[:12]}"
    run(["docker", "tag", digest, reference])
    run(["kind", "load", "docker-image", reference, f"--name={_NAME}", f"--nodes={','.join(nodes)}"])
    return reference


def _given(option: str, variable: str) -> list[str]:
    """Return an option of a command, if the user has set its variable."""
    return [f"{option}={os.environ[variable]}"] if os.environ.get(variable) else []
