"""Two processes of the operator in one namespace, with the rights that the chart gives them: one serves."""

import json
import signal
import time

import pytest

from tests.api.test_namespaces import NAME, POOL, grant, kubectl, namespaces
from tests.api.test_process import END_SECONDS, Operator

__all__ = ["kubectl", "namespaces"]
# After the loss of the process that serves. A busy machine needs some more to start another one.
TAKEN_OVER_SECONDS = 10
SLACK_SECONDS = 10


@pytest.fixture
def two(access, kubectl, namespaces, tmp_path):
    """The one that serves, and the one that waits."""
    served, _ = namespaces
    grant(kubectl, served)
    started = []

    def start(identity):
        named = f'operator.socket.gethostname = lambda: "{identity}"'
        environment = {"NAMESPACES": served, "LEASE_NAMESPACE": served}
        started.append(Operator(access, tmp_path, named, user="narrow", **environment))
        started[-1].until_healthy()
        return started[-1]

    first = start("a")
    until_holder(kubectl, served, "a")
    until_served(kubectl, served, "p")
    yield first, start("b"), start
    for operator in started:
        operator.process.kill()
        operator.process.wait()


def holder(kubectl, namespace):
    return json.loads(kubectl("get", "lease", NAME, "-n", namespace, "-o", "json"))["spec"]["holderIdentity"]


def until_holder(kubectl, namespace, identity, seconds=30):
    deadline = time.monotonic() + seconds
    while not kubectl("get", "lease", "-n", namespace) or holder(kubectl, namespace) != identity:
        assert time.monotonic() < deadline, holder(kubectl, namespace)
        time.sleep(0.2)


def until_served(kubectl, namespace, name, seconds=60):
    """Wait until the pool of this name, which may not exist yet, has conditions."""
    pool = POOL | {"metadata": {"name": name}}
    kubectl("apply", "-n", namespace, "-f", "-", stdin=json.dumps(pool))
    deadline = time.monotonic() + seconds
    while "conditions" not in json.loads(kubectl("get", "resourcepool", name, "-n", namespace, "-o", "json")).get(
        "status", {}
    ):
        assert time.monotonic() < deadline
        time.sleep(0.2)


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_when_the_process_that_serves_ends_the_other_one_takes_over(kubectl, namespaces, two, end):
    first, second, start = two
    assert holder(kubectl, namespaces[0]) == "a"
    first.process.send_signal(end)
    first.process.wait(END_SECONDS)
    bound = TAKEN_OVER_SECONDS if end is signal.SIGKILL else 3
    until_served(kubectl, namespaces[0], "q", bound + SLACK_SECONDS)
    assert holder(kubectl, namespaces[0]) == "b"
    assert second.is_healthy()
    third = start("a")
    third.process.send_signal(signal.SIGTERM)
    assert third.end(END_SECONDS)[0] == 0, "one that waits ends at once"


def test_a_process_that_was_frozen_ends_when_another_one_serves(kubectl, namespaces, two):
    first, _, _ = two
    first.process.send_signal(signal.SIGSTOP)
    until_holder(kubectl, namespaces[0], "b", TAKEN_OVER_SECONDS + SLACK_SECONDS)
    first.process.send_signal(signal.SIGCONT)
    status, _ = first.end(END_SECONDS)
    assert status != 0
    until_served(kubectl, namespaces[0], "q")
    assert holder(kubectl, namespaces[0]) == "b"
