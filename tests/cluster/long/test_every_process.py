"""Plain actors, tasks and drivers of a job on pods, from outside the cluster: where they hang, and where they pause."""

import json
import re
import time

import pytest

from tests.cluster.command_line import CommandLine
from tests.cluster.dial import dial
from tests.cluster.kubectl import pool
from workergroups.debugger.dap import Attached

# The bundles of the pool hold the actors, as verl's do; nothing else in the programs is ours.
PROGRAM = """
import os, sys, time, ray, workergroups
from workergroups.single_controller.ray.part import scheduling_strategy

bundles = workergroups.attach_pool("plain").get_placement_groups(device_name="cpu")[0]
place = scheduling_strategy(bundles, placement_group_bundle_index=0)

@ray.remote(num_cpus=0, scheduling_strategy=place)
class Rollout:
    def generate(self):
        time.sleep(600)

    def die(self):
        print("the end", flush=True)
        os._exit(3)

@ray.remote(num_cpus=0)
class TaskRunner:
    def run(self, rollout):
        return ray.get(rollout.generate.remote())

@ray.remote(num_cpus=0, scheduling_strategy=place)
def fit(total):
    breakpoint()
    return total
"""
HANG = PROGRAM + "ray.get(TaskRunner.remote().run.remote(Rollout.options(name='rollout', namespace='rl').remote()))"
PAUSE = PROGRAM + "print(ray.get(fit.remote(40)))"
DIE = PROGRAM + "ray.get(Rollout.remote().die.remote())"
SECONDS = 10


@pytest.fixture(scope="module")
def run(namespace, tmp_path_factory):
    """The command, and a pool without groups."""
    folder = tmp_path_factory.mktemp("laptop")
    (folder / "pool.yaml").write_text(json.dumps(pool("plain", accelerator={"vendor": "none"})))
    (folder / "jobs").mkdir()
    for name, program in {"hang": HANG, "pause": PAUSE, "die": DIE}.items():
        (folder / "jobs" / f"{name}.py").write_text(program)
    command = CommandLine(namespace, folder)
    command("up", "--yes", "-f", "pool.yaml")
    return command


def start(run, program):
    """A job; its id."""
    words = ("job", "submit", "plain", "--working-dir=jobs", "--no-wait", "--", "python", f"{program}.py")
    return run(*words, stderr=None).strip()


def until(look, seconds=90):
    deadline = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < deadline
        time.sleep(1)
    return found


def test_a_hang_in_a_plain_actor_is_found_with_who_waits_for_it(run):
    job = start(run, "hang")
    until(lambda: "Rollout.generate" in run("calls", "--all"))
    began = time.monotonic()
    text = run("stacks", f"job/{job}")
    assert time.monotonic() - began < SECONDS
    assert re.search(r"suspect: actor Rollout rollout \(pid \d+ in plain-\S+\) in hang\.py:\d+ in generate\n", text)
    assert re.search(r"  runs Rollout\.generate, running for \d+ s, for actor TaskRunner \(pid \d+ in ", text)
    assert re.search(r"  waits for TaskRunner\.run, running for \d+ s, on actor TaskRunner", text)  # the driver
    found = run.json("stacks", "actor/rollout", "--pool", "plain")
    (process,) = found["processes"]
    assert (process["kind"], process["label"], process["namespace"], process["job"]) == ("actor", "Rollout", "rl", job)
    assert run("exec", "actor/Rollout", "--", "hostname") == f"{process['pod']}\n"
    (occupant,) = [each for each in run.items("status", "pool/plain")[0]["occupants"] if each["className"] == "Rollout"]
    assert (occupant["who"], occupant["node"], occupant["processes"]) == (f"job {job}", 0, 1)
    assert abs(time.time() - occupant["since"]) < 300
    run("job", "stop", job)


def test_a_breakpoint_in_a_task_of_a_job_is_continued_from_here_and_no_other_pod_reaches_it(run):
    job = start(run, "pause")
    (pause,) = until(lambda: [each for each in run.items("debug", f"job/{job}") if each["port"]])
    assert (pause["who"], pause["job"], pause["attached"]) == ("task fit", job, False)
    assert re.search(r"pause\.py:\d+ in fit$", pause["where"])
    address = run.namespace.get("pod", pause["pod"])["status"]["podIP"]
    assert run("exec", "pool/plain", *dial(address, pause["port"])) == "ConnectionRefusedError\n"  # from the head's pod
    with run.start("debug", f"job/{job}", "--attach") as command:
        assert command.stdout.readline().startswith("task fit is paused at ")
        editor = Attached(int(command.stdout.readline().removeprefix("127.0.0.1:")))
        thread = editor.wait_until_stopped()
        frame = editor.frames(thread)[0]
        assert (frame.name, editor.evaluate("total", frame)) == ("fit", "40")
        editor.ask("continue", threadId=thread)
        editor.close()
        rest, _ = command.communicate(timeout=30)
        assert rest.endswith("task fit continues\n")
        assert command.returncode == 0
    assert run("job", "logs", job, "-f").endswith("40\n" + f"job {job}: SUCCEEDED\n")
    assert run.items("debug", "--all") == []


def test_an_actor_that_died_leaves_its_last_lines(run):
    job = start(run, "die")
    run("job", "logs", job, "-f", code=1)
    text = run("logs", f"job/{job}", "--previous")
    assert re.search(rf"^actor Rollout of job {job} \(pid \d+\) died in pod plain-\S+ at ", text, re.MULTILINE)
    assert re.search(r"^\[actor Rollout \d+\] the end$", text, re.MULTILINE)
