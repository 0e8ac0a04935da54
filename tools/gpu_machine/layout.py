"""Where things are on the GPU machine."""

from pathlib import Path

# A tmpfs: images are several GB, and are read and written three times on their way into a container.
WORK = Path("/mnt/workergroups-gpu")

# A Debian, in which the cluster runs, and paths in it.
ROOT = WORK / "root"
CHECKOUT = "/workergroups"
IMAGE = "/image"
RESULTS = "/results"
# What the command line requires.
CLI_PACKAGES = "/opt/cli"

# The image of the pods, an OCI layout in IMAGE; and the operator's, which was carried here as an archive.
IMAGE_NAME = "localhost/gpu:1"
OPERATOR_NAME = "localhost/workergroups-operator:1"
OPERATOR_ARCHIVE = "/operator.tar"

# Ray and what it needs, which the machine lacks: its place in the image.
PACKAGES = "opt/packages"

# The driver's programs and libraries on the machine. The device plugin mounts them into pods at the same path.
DRIVER = "/usr/local/nvidia"

NODE = "nvidia"
RESOURCE = "nvidia.com/gpu"
