"""From an earlier version to this one by Helm, and back: pods, ranks and the driver in its loop stay as they are."""

import ast
import subprocess
import threading
import time
from pathlib import Path

import pytest

from tests.cluster.conftest import ACCUMULATOR
from tests.cluster.drivers import look
from tests.cluster.kubectl import config_map, group, new_namespace, pool
from tests.truth.watch import ABSENT, GROUPS, POOLS, Watch
from tests.upgrade.versions import earlier_checkout, install, operator_images, roll_back
from tools.console import REPOSITORY

# Calls all ranks, again and again, and prints the processes; ends at the first error.
LOOP = """
import time, workergroups
group, turn = workergroups.attach("actors"), 0
while True:
    turn += 1
    print("TURN", turn, [each["pid"] for each in group.execute_all_sync("look")], flush=True)
    time.sleep(0.2)
"""
HEAL_SECONDS = 60


class Driver:
    """A program on the head that calls all ranks in a loop."""

    def __init__(self, namespace):
        command = ["kubectl", "-n", namespace.name, "exec", "-i", namespace.head("actors"), "--", "python", "-"]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self._process.stdin.write(LOOP)
        self._process.stdin.close()
        self.lines = []
        threading.Thread(target=lambda: self.lines.extend(self._process.stdout), daemon=True).start()

    def turns(self):
        """How many it has made, and which processes have answered in all of them."""
        assert self._process.poll() is None, "".join(self.lines[-20:])
        found = [line.split(" ", 2)[2] for line in list(self.lines) if line.startswith("TURN ")]
        return len(found), {tuple(ast.literal_eval(processes)) for processes in found}

    def end(self):
        self._process.kill()
        self._process.wait()


def denials(watch):
    """When pool and group were not ready; Unknown is what they are while an agent is replaced."""
    histories = {plural: watch.history(plural, "actors") for plural in (POOLS, GROUPS)}
    assert all(histories.values()), histories
    return [seen for history in histories.values() for seen in history if seen.status in ("False", ABSENT)]


def pods(namespace):
    """Ray's pods: an agent's is replaced with its operator."""
    found = namespace.get("pods", selector="workergroups.dev/component in (head, worker)")
    return sorted((pod["metadata"]["name"], pod["metadata"]["uid"]) for pod in found)


def unharmed(namespace, change):
    """Change the operator's version, and see that nothing of the users' has ended or said that it did."""
    before, ranks, driver = pods(namespace), look(namespace, "actors", "actors"), Driver(namespace)
    try:
        namespace.until(lambda: driver.turns()[0], lambda turns: turns > 3, 30)
        with Watch(namespace.name) as watch:
            images = operator_images()
            change()
            # A pod of the version before may still be ending.
            namespace.until(operator_images, lambda now: now.isdisjoint(images), 60)
            for kind in ("resourcepool", "workergroup"):
                namespace.until_ready(kind, "actors", 60)
            turns, _ = driver.turns()
            time.sleep(5)
            assert driver.turns()[0] > turns
            assert denials(watch) == []
        assert driver.turns()[1] == {tuple(rank["pid"] for rank in ranks[0])}
    finally:
        driver.end()
    assert (pods(namespace), look(namespace, "actors", "actors")) == (before, ranks)


def heals(namespace):
    """A rank that is killed is recreated: operator, agent and the library in the pods understand each other."""
    before = namespace.get("workergroup", "actors")["status"]["incarnation"]
    (rank,) = look(namespace, "actors", "actors")[0][:1]
    namespace.run("exec", rank["pod"], "-c", "ray-worker", "--", "sh", "-c", f"kill -9 {rank['pid']}")
    namespace.until(lambda: namespace.get("workergroup", "actors")["status"]["incarnation"], lambda n: n > before, 30)
    namespace.until_ready("workergroup", "actors", HEAL_SECONDS)
    assert rank["pid"] not in [each["pid"] for each in look(namespace, "actors", "actors")[0]]


@pytest.fixture(scope="module")
def earlier(tmp_path_factory):
    with earlier_checkout(tmp_path_factory.mktemp("earlier") / "checkout") as checkout:
        yield checkout
    install(REPOSITORY)


@pytest.mark.timeout(1500)
def test_from_the_earlier_version_to_this_one_and_back(earlier: Path):
    install(earlier)
    with new_namespace("upgrade") as namespace:
        namespace.apply(config_map("accumulator", accumulator=ACCUMULATOR), pool(), group("actors"))
        namespace.until_ready("workergroup", "actors")

        unharmed(namespace, lambda: install(REPOSITORY))
        old = namespace.condition("resourcepool", "actors", "UpToDate")
        assert (old["status"], old["reason"]) == ("False", "OldTemplate"), old["message"]
        assert "older" in old["message"]
        assert "the head" in old["message"]
        heals(namespace)

        unharmed(namespace, lambda: roll_back(earlier))
        heals(namespace)

        unharmed(namespace, lambda: install(REPOSITORY))
        namespace.run("annotate", "resourcepool", "actors", "workergroups.dev/restarted-at=now")
        namespace.until(
            lambda: namespace.condition("resourcepool", "actors", "UpToDate"),
            lambda found: found["status"] == "True",
            120,
        )
        namespace.until_ready("workergroup", "actors")
        heals(namespace)
