"""What ranks tell before they end themselves, and what the observer makes of it."""

import subprocess
import sys
from dataclasses import replace

from tests.unit.agent.ray_world import rank, state
from workergroups.announcements import told_ends
from workergroups.ray_private.death import Death
from workergroups.ray_private.death_cause import SILENT_END
from workergroups_agent.observer.silent_ends import ToldEnds

SILENT = Death("ProcessDied", SILENT_END, "")
TOLD = b"its code called os._exit(7) at /code/trainer.py:12 in step"


class Gcs:
    """What ranks have told, by actor id."""

    def __init__(self, **told):
        self.told = told
        self.questions = 0

    def get_many(self, namespace, keys):
        assert namespace == told_ends.KV_NAMESPACE
        self.questions += 1
        return {key: self.told[key] for key in keys if key in self.told}

    def keys(self, namespace):
        return list(self.told)

    def delete(self, namespace, key):
        del self.told[key]


def dead(number, death=SILENT):
    return replace(rank(number, "DEAD", death), actor_id=f"a{number}", worker_id=f"w-{number}")


def messages(ends, *ranks):
    return [each.death and each.death.message for each in ends.explained(state(ranks=ranks)).ranks]


def test_what_a_rank_told_is_the_message_of_its_death_if_ray_knows_none():
    other = Death("ConstructorFailed", "ValueError: no", "")
    ends = ToldEnds(Gcs(a0=TOLD, a1=TOLD, a3=b"\xff" + 5000 * b"x"))
    alive = replace(rank(4), actor_id="a4")
    said = messages(ends, dead(0), dead(1, other), dead(2), dead(3), alive)
    assert said == [TOLD.decode(), "ValueError: no", SILENT_END, "\N{REPLACEMENT CHARACTER}" + 1023 * "x", None]


def test_it_asks_once_after_each_death_and_forgets_what_ray_has_forgotten():
    gcs = Gcs(a0=TOLD, long_gone=TOLD)
    ends = ToldEnds(gcs)
    assert messages(ends) == []
    assert gcs.questions == 0
    for _ in range(3):
        assert messages(ends, dead(0)) == [TOLD.decode()]
    assert (gcs.questions, list(gcs.told)) == (1, ["a0"])
    messages(ends, dead(1))
    assert (gcs.questions, list(gcs.told)) == (2, [])


def run(code):
    begin = "import os, sys\nfrom workergroups.announcements import told_ends\ntold_ends.enable('a0')\n"
    return subprocess.run([sys.executable, "-c", begin + code], capture_output=True, text=True, timeout=60)


def test_a_process_says_where_it_calls_os_exit_and_ends_with_its_code_though_no_gcs_answers():
    done = run("def step():\n    os._exit(7)\nstep()")
    assert (done.returncode, done.stdout) == (7, "")
    assert done.stderr == "this process ends: its code called os._exit(7) at <string>:5 in step\n"


def test_a_process_that_it_has_forked_ends_in_silence():
    done = run("if os.fork() == 0:\n    os._exit(0)\nos.wait()")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_process_whose_standard_error_is_closed_ends_all_the_same():
    assert run("os.close(2)\nos._exit(3)").returncode == 3
