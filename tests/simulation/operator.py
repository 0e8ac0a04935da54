"""The operator in this process: kopf with our handlers, for some namespaces, through the proxy."""

import asyncio
import json
import os
from collections.abc import Sequence
from pathlib import Path

import kopf
import kubernetes.aio.config.kube_config
import kubernetes.config.kube_config

from tests.simulation.control_plane import kubeconfig
from tests.simulation.process import Process
from workergroups_operator.timings import Timings

WORKER_IMAGE = "example.test/worker:default"
OPERATOR_IMAGE = "example.test/operator:default"
# Each operator that this process starts gets these.
timings = Timings()


def use_api_server(url: str, token: str, directory: Path) -> None:
    """Point KUBECONFIG to this API server, for the whole process."""
    path = directory / "operator.kubeconfig"
    path.write_text(json.dumps(kubeconfig({"server": url}, token)))
    # The clients use plain HTTP here. Otherwise each loads the machine's authorities: a sixth of a history's CPU time.
    os.environ |= {"KUBECONFIG": str(path), "SSL_CERT_FILE": os.devnull}
    os.environ |= {"WORKER_IMAGE": WORKER_IMAGE, "OPERATOR_IMAGE": OPERATOR_IMAGE}
    # The clients read the variable when they are imported.
    kubernetes.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION = str(path)
    kubernetes.aio.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION = str(path)


def operator(namespaces: Sequence[str]) -> Process:
    """Return an operator that is not started yet."""
    return Process("operator", lambda: serve(namespaces))


async def serve(namespaces: Sequence[str]) -> None:
    """Run the operator for some namespaces until it is told to end."""
    from workergroups_operator import handlers  # noqa: F401 (registers the handlers with kopf)
    from workergroups_operator.metrics import Metrics
    from workergroups_operator.settings import Settings

    settings = kopf.OperatorSettings()
    settings.process.ultimate_exiting_timeout = None  # it would also end the simulation
    settings.scanning.disabled = True  # all kinds exist, and the namespaces are named
    stop = asyncio.get_running_loop().create_future()
    await kopf.operator(
        namespaces=list(namespaces),
        standalone=True,
        settings=settings,
        registry=kopf.get_default_registry(),
        stop_flag=stop,
        memo=kopf.Memo(
            stop=stop, timings=timings, settings=Settings.from_environment(), metrics=Metrics(), leadership=None
        ),
    )
