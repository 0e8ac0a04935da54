"""A driver hands batches from the ranks of one group to those of another; the last line is what was seen."""

import json
import resource
import time

import torch

import workergroups
from workergroups import DataProto

ROWS, ROUNDS = 16, 10
one = workergroups.attach("gpu", timeout=60)
two = workergroups.attach("second", timeout=60)
rows = DataProto.from_dict({"row": torch.arange(ROWS)})


def memory() -> int:
    """Return the most memory that this process has had, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


def hand_over() -> tuple[float, list]:
    """Return the seconds that it took, and what the other ranks saw."""
    batch = one.make_batch(rows)
    began = time.monotonic()
    seen = two.sum_batch(batch)
    return time.monotonic() - began, seen


def cross(batch: DataProto) -> None:
    """Let each rank read what another one's device has."""
    sums = two.sum_rows(batch).batch["sum"]
    if not torch.equal(sums, torch.arange(len(sums)) << 23):
        raise ValueError(f"each row's sum should be 2^23 times its number: {sums}")


def cross_over() -> float:
    """Hand a batch over across devices; return the seconds."""
    batch = one.make_batch(rows)
    began = time.monotonic()
    cross(batch)
    return time.monotonic() - began


hand_over()
cross_over()
before = memory()
rounds = [hand_over() for _ in range(ROUNDS)]
crossed = [cross_over() for _ in range(ROUNDS)]
kept, small = one.make_batch(rows), one.make_batch(rows[:2])
captures = one.capture(5.0)
while_captured = []
until = time.monotonic() + 4
while time.monotonic() < until:
    while_captured.append(two.sum_batch(kept))
    cross(small)
seen = [each for _, each in rounds] + while_captured
captured = workergroups.get(captures)
del kept, small
time.sleep(5)  # until the ranks have let go of it
for group in (one, two):
    group.allocate(1)  # gives back what torch keeps for the next tensors
for group in (one, two):
    print(group.large_tensors())
print(
    json.dumps(
        {
            "seconds": min(seconds for seconds, _ in rounds),
            "crossed": min(crossed),
            "devices": sorted({device for each in seen for device, _ in each}),
            "right": all(sum(total for _, total in each) == sum(range(ROWS)) << 23 for each in seen),
            "rounds": len(seen),
            "captured": captured,
            "mib": memory() - before,
        }
    )
)
