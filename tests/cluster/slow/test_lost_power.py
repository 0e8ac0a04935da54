"""A head whose machine loses its power closes no connection. What the next head knows of ranks that die then."""

import random
import time

import pytest

from tests.kills.judge import RANK
from tests.kills.killing import kill
from tests.kills.scene import Scene
from tests.truth import machine
from tests.truth.judge import first_denial
from tests.truth.watch import GROUPS
from workergroups_api.heads import SILENT_SECONDS
from workergroups_api.vocabulary import Component

pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def scene():
    with Scene() as opened:
        yield opened


def test_a_rank_that_dies_after_a_head_was_lost_without_a_word_is_missed(scene):
    (head,) = scene.pods(Component.HEAD)
    (status,) = scene.kubectl.json(f"pod/{head}")["status"]["containerStatuses"]
    began = time.monotonic()
    machine.cut_off_pod(status["containerID"])
    scene.kubectl("delete", "pod", head, "--wait=false", "--grace-period=0", "--force")
    assert scene.watch.wait(lambda: bool(first_denial(scene.history(GROUPS, began))), 30)
    scene.wait_until_ready()
    killed = kill(scene, RANK, random.Random(1))
    assert killed is not None
    assert scene.watch.wait(lambda: bool(first_denial(scene.history(GROUPS, killed.began))), SILENT_SECONDS)
