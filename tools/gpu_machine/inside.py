"""What runs in the Debian root on the GPU machine: the cluster with the device plugin and the operator, and checks."""

import os
import subprocess
import sys
from collections.abc import Sequence

from tools.console import REPOSITORY, ToolError, run, say, wait_until
from tools.demo import release
from tools.demo.clusters.base import Images
from tools.demo.clusters.local import LocalCluster
from tools.demo.kubectl import Kubectl
from tools.gpu_machine import device_plugin
from tools.gpu_machine.checks import CHECKS
from tools.gpu_machine.layout import DRIVER, IMAGE, IMAGE_NAME, NODE, OPERATOR_ARCHIVE, OPERATOR_NAME, RESOURCE
from tools.local_cluster import processes
from tools.local_cluster.layout import NODES
from tools.local_cluster.node import ctr

_LOCAL_CLUSTER = (sys.executable, "-m", "tools.local_cluster")
_PLUGIN = f"device-plugin-{NODE}"
_NODE = next(node for node in NODES if node.name == NODE)
_PRODUCT = "nvidia.com/gpu.product"


class GpuCluster(LocalCluster):
    """The local cluster, whose NVIDIA node has this machine's GPUs, and which builds no images."""

    def start(self) -> None:
        """Start the cluster; then the plugin, whose devices replace those that the node only pretends to have."""
        run([*_LOCAL_CLUSTER, "up"], show_progress=True)
        directory = _NODE.state / "kubelet" / "device-plugins"
        plugin = [sys.executable, "-m", device_plugin.__name__, str(directory)]
        processes.start(_PLUGIN, plugin, env={"PYTHONPATH": str(REPOSITORY)})
        log = processes.log(_PLUGIN)
        told = "the kubelet to ask for GPUs"
        processes.wait_for(_PLUGIN, told, lambda: device_plugin.OFFERED in log.read_text(), seconds=30)
        kubectl = Kubectl(self.environment(), "default")
        count = str(len(device_plugin.gpus()))

        def offers_them() -> bool:
            return bool(kubectl.json(f"node/{NODE}")["status"]["allocatable"].get(RESOURCE) == count)

        wait_until(f"the node {NODE} to offer {count} GPUs", offers_them, seconds=60)
        kubectl("label", "--overwrite", f"node/{NODE}", f"{_PRODUCT}={_product()}")
        say(f"the node {NODE} offers {count} GPUs of the product {_product()}")

    def provide_images(self, vendors: Sequence[str]) -> Images:
        """Load the operator's image, which was carried here, and the pods', which was written here."""
        for node in NODES:
            if node.name in ("plain", *vendors):
                run(ctr(node, "images", "import", OPERATOR_ARCHIVE))
        say(f"importing {IMAGE_NAME}")
        with subprocess.Popen(["tar", "--create", f"--directory={IMAGE}", "."], stdout=subprocess.PIPE) as archive:
            imported = subprocess.run(ctr(_NODE, "images", "import", "-"), stdin=archive.stdout)
        if imported.returncode or archive.returncode:
            raise ToolError(f"cannot import {IMAGE_NAME}; the messages are above")
        say(f"imported {IMAGE_NAME}")
        return Images(operator=OPERATOR_NAME, worker=IMAGE_NAME)


def _product() -> str:
    """Return the GPUs' name as a label's value, as GPU feature discovery writes it."""
    query = [f"{DRIVER}/bin/nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    listed = run(query, {"LD_LIBRARY_PATH": f"{DRIVER}/lib64"})
    return listed.splitlines()[0].strip().replace(" ", "-")


def main() -> int:
    """Start everything, or run checks one after the other."""
    cluster = GpuCluster()
    try:
        if sys.argv[1] == "up":
            release.install(cluster, ["nvidia"])
            say("the operator is installed")
        else:
            os.environ |= cluster.environment()
            for name in sys.argv[2:]:
                CHECKS[name](Kubectl(cluster.environment(), "default"))
    except ToolError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
