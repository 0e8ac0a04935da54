import asyncio
import inspect
import itertools
import os
from contextlib import AsyncExitStack

import pytest

from tests.api.command_line import CommandLine
from tests.simulation.control_plane import control_plane

CLOSE_SECONDS = 120
_NUMBERS = itertools.count(1)


@pytest.fixture(scope="session")
def access():
    """The API server, with Kubernetes' controllers and KubeRay."""
    with control_plane() as running:
        yield running


@pytest.fixture
def runner():
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture
def namespace_labels():
    return {}


@pytest.fixture
def scene(access, runner, namespace_labels):
    """A namespace of the test's own, with an operator for it."""
    from tests.simulation.scene import Scene

    stack = AsyncExitStack()
    namespace = f"t{os.getpid()}-{next(_NUMBERS)}"
    opened = runner.run(stack.enter_async_context(Scene.open(access, namespace, labels=namespace_labels)))
    opened.start_operator()
    yield opened
    runner.run(asyncio.wait_for(stack.aclose(), CLOSE_SECONDS))
    assert opened.proxy.forbidden == [], "the chart, or the agent's Role, grants less than what is called"


@pytest.fixture
def command(scene, access, tmp_path):
    """The command line in the scene's namespace."""
    return CommandLine(scene, access, tmp_path)


def pytest_collection_modifyitems(items):
    """What takes longest comes first, so that no worker begins with it when the others end."""
    items.sort(key=lambda item: item.get_closest_marker("timeout") is None)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    """Tests that are coroutines run where their fixtures live."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    pyfuncitem.funcargs["runner"].run(pyfuncitem.obj(**arguments))
    return True
