"""The agent's real reporter in this process, with its ServiceAccount's token, through the proxy."""

from pathlib import Path

from kubernetes.aio.client.configuration import Configuration

from tests.simulation.process import Process
from workergroups_agent.exchange import Exchange
from workergroups_agent.liveness_file import LivenessFile
from workergroups_agent.reporter.timings import ReporterTimings
from workergroups_api.names import AGENT_FIELD_MANAGER
from workergroups_kube import Kube

# Each reporter that this process starts gets these.
timings = ReporterTimings()


def reporter(name: str, url: str, token: str, namespace: str, cluster: str, directory: Path) -> Process:
    """Return a reporter that is not started yet."""

    async def main() -> None:
        from workergroups_agent.reporter.serve import serve

        configuration = Configuration(host=url, api_key={"BearerToken": f"Bearer {token}"})
        configuration.proxy = None
        async with Kube.to(configuration, AGENT_FIELD_MANAGER, timings.request) as kube:
            alive = LivenessFile(directory / "alive")
            await serve(kube, namespace, cluster, Exchange(directory), alive, timings)

    return Process(name, main)
