"""An operator that may not watch definitions notices that KubeRay is installed."""

import asyncio

import pytest
from kubernetes.aio.client.exceptions import ApiException

from tests.unit.virtual_time import run
from workergroups_operator.handlers import _stop_with, _wait_for_kuberay
from workergroups_operator.timings import Timings
from workergroups_operator.watches import Watches

POOLS = "/apis/workergroups.dev/v1alpha1/namespaces/a/resourcepools"
CLUSTERS = "/apis/ray.io/v1/namespaces/a/rayclusters"
SECONDS = Timings().kuberay_check


class Discovery:
    """An API server that answers one question after another; the last answer stays."""

    def __init__(self, *answers):
        self._answers = list(answers)
        self.asked = 0

    async def is_installed(self, _):
        self.asked += 1
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


def ends_within(seconds, discovery, *watched):
    """Whether the wait ends, and the operator with it."""

    async def wait():
        watches, stop = Watches(Timings()), asyncio.get_running_loop().create_future()
        for path in watched:
            watches.of(path)
        task = asyncio.create_task(_wait_for_kuberay(discovery, watches, SECONDS), name="KubeRay")
        task.add_done_callback(lambda ended: _stop_with(stop, ended))
        await asyncio.sleep(seconds)
        is_over = stop.done()
        task.cancel()
        return is_over

    return run(wait())


def test_the_operator_ends_so_that_its_next_process_watches_ray_clusters(caplog):
    assert ends_within(4.5 * SECONDS, Discovery(False, False, False, True), POOLS)
    assert "KubeRay was installed after" in caplog.text
    assert not ends_within(3.5 * SECONDS, Discovery(False, False, False, True), POOLS)


def test_an_api_server_that_does_not_answer_is_asked_again():
    assert ends_within(3.5 * SECONDS, Discovery(ApiException(status=503), TimeoutError(), True), POOLS)


@pytest.mark.parametrize("watched", [[], [POOLS, CLUSTERS]], ids=["before kopf watches", "once it watches them"])
def test_nothing_is_asked_without_a_reason(watched):
    discovery = Discovery(True)
    assert not ends_within(100 * SECONDS, discovery, *watched)
    assert discovery.asked == 0
