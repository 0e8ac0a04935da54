"""Kill at random while examples/resilient-training runs: `python -m tests.kills --kills N [--seed S] [--steps N]`.

It needs the local cluster with the operator, whose nodes share this machine's files.
"""

from __future__ import annotations

import argparse
import random
import sys
import time

from tests.truth import machine
from tests.truth.judge import first_denial
from tests.truth.watch import GROUPS, POOLS
from tools.console import ToolError, end_when_told, say

from .judge import BOUND_SECONDS, KINDS, Kill, steps_lost, unowned, untruths
from .killing import kill
from .scene import Job, Scene

# For so long at most, the training runs before the next kill.
PAUSE_SECONDS = 10.0
# How often the next kill comes before all is ready again, and after how many seconds at most.
HASTE, HASTE_SECONDS = 0.25, 5.0
# After so much more than the bound, a kill counts as never reported.
PATIENCE_SECONDS = 20.0
# For how long to watch what must stay Ready.
CALM_SECONDS = 6.0
# Of that many kills, some are of each kind.
ENOUGH = 100
# If nothing could be killed for so long, something is wrong.
IDLE_SECONDS = 300.0


def main() -> int:
    """Kill, compare, and print what is wrong; return 1 if something is."""
    arguments = _parser().parse_args()
    say(f"seed {arguments.seed}: to try the same choices again, use --seed={arguments.seed}")
    if not machine.is_local():
        print("error: this needs the local cluster: run it by `make kills`, as root", file=sys.stderr)
        return 1
    end_when_told()  # Remove the namespace.
    wrong: list[str] = []
    try:
        with Scene() as scene:
            wrong = _suffer(scene, random.Random(arguments.seed), arguments.kills, arguments.steps)
            wrong += _what_is_left(scene)
    except ToolError as error:
        wrong.append(str(error))
    for each in wrong:
        print(f"wrong: {each}")
    print(f"{arguments.kills} kills from seed {arguments.seed}: {f'{len(wrong)} errors' if wrong else 'all is right'}")
    return 1 if wrong else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.kills", description=__doc__)
    parser.add_argument("--kills", type=int, default=200, help="how often to kill something")
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000), help="the number that decides what")
    parser.add_argument("--steps", type=int, default=2000, help="steps of each training")
    return parser


def _suffer(scene: Scene, choice: random.Random, number: int, steps: int) -> list[str]:
    """Train undisturbed, and then as often as there are kills left; return what was wrong."""
    undisturbed = scene.train("undisturbed", steps).result()
    scene.wait_until_ready()
    wrong: list[str] = []
    killed, rounds, by_kind = 0, 0, dict.fromkeys(KINDS, 0)
    while killed < number:
        rounds += 1
        job = scene.train(f"round{rounds}", steps)
        before = killed
        while job.runs() and killed < number:
            printed = len(job.output())
            kills = _episode(scene, job, choice, number - killed)
            killed += len(kills)
            for each in kills:
                by_kind[each.kind] += 1
            wrong += _judged(scene, kills) + _lost(job, kills, printed)
        if job.result() != undisturbed:
            wrong.append(f"{job.name} has another result than the undisturbed training")
            say(f"  {wrong[-1]}")
        say(f"{job.name}: {killed - before} kills, {job.attempts()} attempts")
    say(", ".join(f"{count} of {kind.name}" for kind, count in by_kind.items()))
    never = [kind.name for kind, count in by_kind.items() if not count and number >= ENOUGH]
    return [*wrong, *(f"nothing was killed of the kind {name}" for name in never)]


def _episode(scene: Scene, job: Job, choice: random.Random, at_most: int) -> list[Kill]:
    """Wait for a moment, and kill something; sometimes go on before all is ready again. Return what was killed."""
    time.sleep(choice.uniform(0, PAUSE_SECONDS))
    kills: list[Kill] = []
    deadline = time.monotonic() + IDLE_SECONDS
    while job.runs() and len(kills) < at_most:
        if time.monotonic() > deadline:
            raise ToolError(f"nothing could be killed for {IDLE_SECONDS:.0f} s")
        done = kill(scene, choice.choice(KINDS), choice)
        if done is None:
            time.sleep(0.5)
            continue
        say(f"{done.kind.name}: {done.target}")
        kills.append(done)
        if choice.random() >= HASTE:
            break
        time.sleep(choice.uniform(0, HASTE_SECONDS))
    return kills


def _judged(scene: Scene, kills: list[Kill]) -> list[str]:
    """Wait until all is ready again after these kills; return what the statuses said meanwhile that was untrue."""
    if not kills:
        return []
    began = kills[0].began
    ended = {plural for each in kills for plural in each.kind.ends if plural in each.lives}

    def is_said() -> bool:
        return all(first_denial(scene.history(plural, began)) for plural in ended)

    if ended:
        scene.watch.wait(is_said, BOUND_SECONDS + PATIENCE_SECONDS)
    else:
        time.sleep(CALM_SECONDS)
    scene.wait_until_ready()
    wrong = untruths(kills, {plural: scene.history(plural, began) for plural in (POOLS, GROUPS)})
    if wrong:
        say("\n".join([*wrong, scene.evidence()]))
    return wrong


def _lost(job: Job, kills: list[Kill], printed: int) -> list[str]:
    """Return the steps that a training has repeated, although it was told before; wait until it goes on."""
    if len(kills) != 1 or not kills[0].kind.is_told:
        return []
    deadline = time.monotonic() + PATIENCE_SECONDS
    while job.runs() and "from step" not in job.output()[printed:] and time.monotonic() < deadline:
        time.sleep(0.5)
    if not (lost := steps_lost(job.output()[printed:])):
        return []
    say(f"  {lost} steps are lost")
    return [f"{kills[0].kind.name} of {kills[0].target}: {lost} steps are lost"]


def _what_is_left(scene: Scene) -> list[str]:
    """Return what is held without an owner: now, without the group, and without the pool."""
    scene.wait_until_ready()
    pool, group = scene.body("resourcepool"), scene.body("workergroup")
    uids = pool["metadata"]["uid"], group["metadata"]["uid"]
    nodes, incarnation = pool["spec"]["nodes"], group["status"]["incarnation"]
    world_size = group["status"]["worldSize"]
    wrong = unowned(scene.held(), uids[0], nodes, uids[1], incarnation, world_size)
    scene.delete("workergroup")
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (left := unowned(scene.held(), uids[0], nodes, uids[1], incarnation, 0)) and time.monotonic() < deadline:
        time.sleep(1)
    scene.delete("resourcepool")
    scene.wait_until_gone()
    return [*wrong, *(f"without the group: {each}" for each in left)]


if __name__ == "__main__":
    sys.exit(main())
