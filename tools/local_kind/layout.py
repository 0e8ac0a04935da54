"""Paths and names. Nothing is kept: `down` removes all of it."""

from pathlib import Path

HERE = Path(__file__).resolve().parent
STATE = Path("/var/lib/workergroups-kind")

# Name of the control group that has all processes and containers.
CONTROL_GROUP = "workergroups-kind"

TOOLS = STATE / "bin"
DEBIAN = STATE / "debian"
SOCKET = STATE / "docker.sock"
KUBERAY_CHART = STATE / "kuberay-chart"

NODE_IMAGE = "localhost/workergroups-kind-node:1"
BASE_IMAGE = "localhost/workergroups-kind-base:1"
KUBERAY_IMAGE = "localhost/workergroups-kind-kuberay:1"
