"""Roles that the operator keeps, with vLLM in a rank: a loop hands weights over, and learns, whichever ranks die.

The pieces must have been made with `--verl`.
"""

import json
import threading
from pathlib import Path
from typing import Any

from tools.gpu_machine.checks import pods, training
from tools.gpu_machine.checks.site import Site, group
from tools.gpu_machine.layout import RESULTS

_STEPS = 10
_KILLED_AFTER = {3: "rollout", 6: "policy"}
_START_SECONDS = 300
_LOOP_SECONDS = 600
# bf16 has eight bits: the engine's numbers and the trainer's differ by about a hundredth.
_SAME_MODEL = 0.05
_ROLES = (
    {"name": "actor", "class": "grpo.Actor", "kwargs": {"lr": 1e-3}},
    {"name": "reference", "class": "grpo.Reference"},
)


def check(site: Site) -> None:
    """Let it learn, and kill a rank of each group on the way."""
    training.have_pool(site)
    pods.have_code(site)
    pools = [{"name": training.POOL}]
    policy = group("policy", pools=pools, roles=_ROLES)
    del policy["spec"]["worker"]
    pods.apply(site, policy, group("rollout", pools=pools, worker={"class": "grpo.Rollout"}))
    for name in ("policy", "rollout"):
        pods.until_ready(site, f"workergroup/{name}", _START_SECONDS)
    code, told = _learn(site)
    steps = [each for each in told if "step" in each]
    curve = ", ".join(f"{each['step']}: {each['score']:.3f}" for each in steps)
    learned = code == 0 and steps[-1]["score"] > training.LEARNED
    what = f"GRPO learns, by FSDP2 and vLLM (tensor parallel {site.gpus}) in ranks of two groups"
    site.say.row(what, learned, curve)
    died = [f"{each['died']}: {each['reason']}" for each in told if "died" in each]
    site.say.row("a rank of each group is killed, and the loop goes on", len(died) == len(_KILLED_AFTER), died)
    numbers = [each["step"] for each in steps]
    site.say.row("no step is lost", numbers == list(range(1, _STEPS + 1)), numbers)
    apart = [round(each["apart"], 3) for each in steps]
    site.say.row("vLLM's log-probabilities are the policy's", max(apart, default=1) < _SAME_MODEL, apart)
    pods.clear(site.kubectl)


def _learn(site: Site) -> tuple[int | None, list[dict[str, Any]]]:
    """Run the driver, and kill as it tells its steps; return its exit status, and what it told."""
    told: list[dict[str, Any]] = []
    waiting = dict(_KILLED_AFTER)
    where: dict[str, list[str]] = {}
    log = Path(RESULTS, f"learn-{site.nodes}.log")
    with (
        log.open("wb") as errors,
        pods.driving(site, "learn", str(_STEPS), seconds=_LOOP_SECONDS, errors=errors) as driver,
    ):
        for line in driver.stdout or ():
            text = line.decode(errors="replace").strip()
            site.say(text)
            if text.startswith("{"):
                told.append(json.loads(text))
                where = where if "policy" not in told[-1] else told[-1]
                if victim := waiting.pop(told[-1].get("step", 0), None):
                    threading.Thread(target=pods.kill, args=(site, where[victim][-1])).start()
    if driver.returncode:
        site.say(log.read_text(errors="replace")[-4000:])
    return driver.returncode, told
