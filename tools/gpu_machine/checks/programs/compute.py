"""The ranks compute and wait for this driver in turn; the last line has the seconds that each computed."""

import sys
import time

import workergroups

rounds, seconds = int(sys.argv[1]), float(sys.argv[2])
group = workergroups.attach("gpu", timeout=60)
spent = [0.0] * group.world_size
for _ in range(rounds):
    spent = [before + now for before, now in zip(spent, group.compute(seconds), strict=True)]
    time.sleep(seconds / 2)
print(*spent)
