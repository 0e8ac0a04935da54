"""A driver of GRPO: says 7 ever more often, with roles that the operator keeps, whichever of their ranks die."""

import json
import sys
import time
from itertools import pairwise

import torch

import workergroups
from workergroups import DataProto, RankDiedError, check_weights

STEPS, PROMPTS, RESPONSES = int(sys.argv[1]), 32, 8
# The tiny model's words, see tiny_model.py.
USER, ASSISTANT, PLEASE, SAY, ZERO = 3, 4, 5, 6, 7

policy = workergroups.attach("policy", timeout=60)
roles = policy.spawn(["actor", "reference"])
actor, reference = roles["actor"], roles["reference"]
rollout = workergroups.attach("rollout", timeout=60)


def tell(**what) -> None:
    """Print one line for the check."""
    print(json.dumps(what), flush=True)


def asks(step: int) -> DataProto:
    """Return the prompts of a step, each as often as it is answered: please say 12."""
    numbers = [ZERO + (step * PROMPTS + at) % 50 for at in range(PROMPTS)]
    prompts = torch.tensor([[USER, PLEASE, SAY, number, ASSISTANT] for number in numbers])
    return DataProto.from_dict({"prompts": prompts}).repeat(RESPONSES)


def learn(step: int) -> None:
    """Take one step, and save it."""
    times = [time.monotonic()]
    published = actor.publish(step)
    passports = rollout.receive(published)
    check_weights([*(each.passport for each in published), *passports])
    times.append(time.monotonic())
    batch = asks(step)
    batch = batch.union(rollout.generate(batch))
    times.append(time.monotonic())
    batch = batch.union(actor.old_log_probs(batch)).union(reference.reference_log_probs(batch))
    columns = batch.batch
    scores = (columns["responses"] == ZERO + 7).float().mean(-1)
    groups = scores.view(PROMPTS, RESPONSES)
    advantages = (groups - groups.mean(-1, keepdim=True)) / (groups.std(-1, keepdim=True) + 1e-6)
    columns["advantages"] = advantages.view(-1, 1).expand_as(columns["old"]).contiguous()
    apart = (columns["engine"] - columns["old"]).abs().mean().item()
    actor.update(batch)
    actor.save(step)
    times.append(time.monotonic())
    seconds = [round(later - earlier, 2) for earlier, later in pairwise(times)]
    tell(step=step, score=scores.mean().item(), apart=apart, seconds=seconds, bytes=passports[0].nbytes)


step = 0
while step < STEPS:
    try:
        tell(policy=actor.where(), rollout=rollout.where())
        if step:
            actor.restore(step)
        while step < STEPS:
            learn(step + 1)
            step += 1
    except RankDiedError as death:
        tell(died=death.group, rank=death.rank, reason=death.reason)
        began = time.monotonic()
        for group in (policy, rollout):
            group.renew(timeout=300)
        tell(renewed=time.monotonic() - began)
