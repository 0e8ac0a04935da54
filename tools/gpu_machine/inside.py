"""What runs in the Debian root on the GPU machine: the cluster with the device plugin and the operator, and checks."""

import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from tools.console import REPOSITORY, ToolError, run, say, wait_until
from tools.demo import release
from tools.demo.clusters.base import Images
from tools.demo.clusters.local import LocalCluster
from tools.demo.kubectl import Kubectl
from tools.gpu_machine import device_plugin
from tools.gpu_machine.checks import CHECKS, WITH_VERL, pods
from tools.gpu_machine.checks.site import TABLE, Report, Site
from tools.gpu_machine.layout import DRIVER, IMAGE, IMAGE_NAME, OPERATOR_ARCHIVE, OPERATOR_NAME, RESOURCE
from tools.local_cluster import processes
from tools.local_cluster.layout import NODES, Node
from tools.local_cluster.node import ctr

_LOCAL_CLUSTER = (sys.executable, "-m", "tools.local_cluster")
_PRODUCT = "nvidia.com/gpu.product"
# The second one pretends to have another vendor's devices, which no check uses.
_NODES = [node for node in NODES if node.gpus]


class GpuCluster(LocalCluster):
    """The local cluster, whose two nodes with devices have this machine's GPUs, and which builds no images."""

    def start(self) -> None:
        """Start the cluster; pods that request NVIDIA's devices may run on both nodes."""
        run([*_LOCAL_CLUSTER, "up"], show_progress=True)
        kubectl = Kubectl(self.environment(), "default")
        product = f"{_PRODUCT}={_product()}"
        for node in _NODES:
            kubectl("label", "--overwrite", f"node/{node.name}", product)
            other = [f"{gpu}:NoSchedule-" for gpu in node.gpus if gpu != RESOURCE]
            if other:
                kubectl("taint", "nodes", node.name, *other)
        self.offer(nodes=1)

    def offer(self, *, nodes: int) -> None:
        """Let the first nodes offer the GPUs, each as many, and the others none."""
        numbers = list(device_plugin.gpus())
        share = len(numbers) // nodes
        for place, node in enumerate(_NODES):
            self._offer(node, numbers[place * share : (place + 1) * share] if place < nodes else [])

    def _offer(self, node: Node, numbers: list[str]) -> None:
        """Start the node's plugin, whose devices replace those that the node had or only pretended to have."""
        name = f"device-plugin-{node.name}"
        processes.stop(name)
        directory = node.state / "kubelet" / "device-plugins"
        log = processes.log(name)
        log.unlink(missing_ok=True)
        command = [sys.executable, "-m", device_plugin.__name__, str(directory), *numbers]
        processes.start(name, command, env={"PYTHONPATH": str(REPOSITORY)})
        asked = "the kubelet to ask for GPUs"
        processes.wait_for(name, asked, lambda: device_plugin.OFFERED in log.read_text(), seconds=30)
        kubectl = Kubectl(self.environment(), "default")

        def offers_them() -> bool:
            offered = kubectl.json(f"node/{node.name}")["status"]["allocatable"].get(RESOURCE, "0")
            return bool(offered == str(len(numbers)))

        wait_until(f"the node {node.name} to offer {len(numbers)} GPUs", offers_them, seconds=60)
        say(f"the node {node.name} offers {len(numbers)} GPUs")

    def provide_images(self, vendors: Sequence[str]) -> Images:
        """Load the operator's image, which was carried here, and the pods', which was written here."""
        for node in NODES:
            run(ctr(node, "images", "import", OPERATOR_ARCHIVE))
        with ThreadPoolExecutor() as both:
            list(both.map(_import_image, _NODES))
        return Images(operator=OPERATOR_NAME, worker=IMAGE_NAME)


def _import_image(node: Node) -> None:
    with subprocess.Popen(["tar", "--create", f"--directory={IMAGE}", "."], stdout=subprocess.PIPE) as archive:
        imported = subprocess.run(ctr(node, "images", "import", "-"), stdin=archive.stdout)
    if imported.returncode or archive.returncode:
        raise ToolError(f"cannot import {IMAGE_NAME} into the node {node.name}; the messages are above")
    say(f"imported {IMAGE_NAME} into the node {node.name}")


def _product() -> str:
    """Return the GPUs' name as a label's value, as GPU feature discovery writes it."""
    query = [f"{DRIVER}/bin/nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    listed = run(query, {"LD_LIBRARY_PATH": f"{DRIVER}/lib64"})
    return listed.splitlines()[0].strip().replace(" ", "-")


def _check(cluster: GpuCluster, nodes: int, names: Sequence[str]) -> int:
    """Run checks one after the other; return of how many things that must hold do not."""
    TABLE.parent.mkdir(exist_ok=True)
    gpus = len(device_plugin.gpus())
    where = f"{gpus} on {nodes} node{'s' if nodes > 1 else ''}"
    missed = 0
    for name in names:
        report = Report(where, name)
        site = Site(Kubectl(cluster.environment(), "default"), gpus, nodes, report)
        report(f"=== {name}, {where}")
        try:
            (CHECKS | WITH_VERL)[name](site)
        except Exception as error:
            report.row("it runs to its end", False, f"{type(error).__name__}: {error}")
        missed += report.missed
    return missed


def main() -> int:
    """Start everything, or run checks."""
    cluster = GpuCluster()
    try:
        if sys.argv[1] == "up":
            release.install(cluster, ["nvidia"])
            say("the operator is installed")
            return 0
        nodes = int(sys.argv[2])
        os.environ |= cluster.environment()
        pods.clear(Kubectl(cluster.environment(), "default"))
        cluster.offer(nodes=nodes)
        missed = _check(cluster, nodes, sys.argv[3:] or list(CHECKS))
    except ToolError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(TABLE.read_text())
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
