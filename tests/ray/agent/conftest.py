"""The raylets that test files share, and an agent on them."""

from contextlib import contextmanager
from tempfile import TemporaryDirectory

import pytest

from tests.ray.agent.executor_process import EXECUTOR, Process
from tests.ray.agent.planned import Agent, pool
from tests.ray.agent.raylets import is_empty, patient_cluster, running_cluster
from workergroups_api.vocabulary import Variable


@pytest.fixture(scope="module")
def cluster(ray_environment, rays):
    return rays.use("cluster", three_raylets)


@contextmanager
def three_raylets():
    # What a pod would mount, the same on all nodes.
    with TemporaryDirectory() as group_env, pytest.MonkeyPatch.context() as environment:
        environment.setenv(Variable.GROUP_ENV_DIRECTORY.value, group_env)
        with running_cluster() as cluster:
            yield cluster


@pytest.fixture(scope="module")
def patient_raylets(ray_environment, rays):
    """Raylets that start processes as they do in pods, and wait for very long for those that do not start."""
    rays.stop()
    with patient_cluster() as cluster:
        yield cluster


@pytest.fixture
def agent(cluster, tmp_path):
    agent = Agent(tmp_path)
    agent.until(lambda _: is_empty(), pools=(pool(reserves=False),))  # of tests whose executor is a process of its own
    yield agent
    agent.until(lambda _: is_empty(), pools=(pool(reserves=False),))


@pytest.fixture
def executor(cluster, tmp_path, request):
    executor = Process(cluster, tmp_path, getattr(request, "param", "") + EXECUTOR)
    yield executor
    executor.until(lambda reports: True)
    for process in (executor.process, executor.observer):
        process.terminate()
        assert process.wait(20) == 0
    assert executor.exchange.read_heartbeat() is None
