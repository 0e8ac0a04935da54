"""examples/resilient-training ends as an undisturbed run does, whatever is killed on the way."""

import dataclasses
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import ray

from tests.ray.agent.planned import Group, launch
from tests.ray.agent.test_executor import all_ready
from workergroups.naming import NAMESPACE, RankName
from workergroups.ray_private.actors import actor_id
from workergroups.ray_private.cluster_state import actor_state

EXAMPLE = Path(__file__).parents[4] / "examples/resilient-training"
KILLS = 5
STEPS = 600
# Kills come before this step, so that none is left when a fast machine has ended the training.
LAST_KILL = 300


@dataclasses.dataclass
class Training(Group):
    name: str = "resilient-training"

    @property
    def files(self):
        return {name: (EXAMPLE / name).read_text() for name in ("checkpoints.py", "trainer.py")}


class Driver:
    """The example's driver as a job runs it, started again whenever it is killed."""

    def __init__(self, directory, steps=STEPS):
        self.directory = directory
        self.log = directory.with_suffix(".log")
        options = ["--attach", "--checkpoints", str(directory), "--steps", str(steps), "--steps-per-checkpoint", "10"]
        self.command = [sys.executable, str(EXAMPLE / "driver.py"), *options]
        self.environment = os.environ | {"RAY_ADDRESS": ray.get_runtime_context().gcs_address}
        self.start()

    def start(self):
        with self.log.open("a") as log:
            self.process = subprocess.Popen(self.command, env=self.environment, stdout=log, stderr=log)

    def kill(self):
        self.process.kill()
        self.process.wait(30)

    def step(self):
        """The step of the last checkpoint."""
        return max((int(file.stem) for file in self.directory.glob("*/*.json")), default=0)

    def has_ended(self):
        return self.process.poll() is not None

    def result(self):
        """The last checkpoint, to the bit."""
        assert self.process.wait(30) == 0, self.log.read_text()
        return max(self.directory.glob("*/*.json")).read_text()


@pytest.fixture
def drivers():
    started = []
    yield lambda *arguments: started.append(Driver(*arguments)) or started[-1]
    for driver in started:
        driver.kill()


def training():
    return Training(launch=launch("trainer.Trainer", init_kwargs={"batch_size": 200}))


def pids(group):
    """The processes of this incarnation's ranks, as far as there are any yet."""
    names = [RankName(group.name, group.uid, group.incarnation, rank, 2) for rank in range(2)]
    known = {actor["name"] for actor in ray.util.list_named_actors(all_namespaces=True)}
    handles = [ray.get_actor(str(name), namespace=NAMESPACE) for name in names if str(name) in known]
    states = [actor_state(actor_id(handle)) for handle in handles]
    return [state.pid for state in states if state is not None and state.state == "ALIVE"]


def look_for(agent, seconds):
    deadline = time.monotonic() + seconds
    agent.go_on_until(lambda _: time.monotonic() >= deadline, seconds=seconds + 30)


def test_ranks_and_driver_are_killed_at_random_moments(agent, drivers, tmp_path):
    seed = random.randrange(1_000_000)
    print(f"seed {seed}")  # pytest shows it if the test fails
    choice = random.Random(seed)
    group = training()
    agent.until(all_ready, group)
    undisturbed = drivers(tmp_path / "undisturbed")
    agent.go_on_until(lambda _: undisturbed.has_ended())
    driver = drivers(tmp_path / "disturbed")
    for number, step in enumerate(sorted(choice.sample(range(LAST_KILL), KILLS))):
        agent.go_on_until(lambda _, group=group: pids(group))
        agent.go_on_until(lambda _, step=step: driver.step() >= step or driver.has_ended())
        assert not driver.has_ended(), driver.log.read_text()
        if number == KILLS // 2:
            driver.kill()
            driver.start()
            continue
        os.kill(choice.choice(pids(group)), signal.SIGKILL)
        look_for(agent, choice.uniform(0, 0.5))  # for as long as the operator needs to decide
        group = dataclasses.replace(group, incarnation=group.incarnation + 1)
        agent.until(lambda _: True, group)
    agent.go_on_until(lambda _: driver.has_ended(), seconds=120)
    assert driver.result() == undisturbed.result()
    assert group.incarnation == KILLS
    assert len(list(driver.directory.iterdir())) >= 2, "nothing was disturbed"


def test_a_second_driver_takes_the_ranks_over_and_what_the_first_does_changes_nothing(agent, drivers, tmp_path):
    agent.until(all_ready, training())
    first = drivers(tmp_path / "shared")
    agent.go_on_until(lambda _: list(first.directory.glob("*/*.json")))
    second = drivers(first.directory)
    agent.go_on_until(lambda _: first.has_ended() and second.has_ended(), seconds=120)
    assert first.process.returncode == 1
    assert "attempt" in first.log.read_text()
    alone = drivers(tmp_path / "alone")
    agent.go_on_until(lambda _: alone.has_ended())
    assert second.result() == alone.result()
