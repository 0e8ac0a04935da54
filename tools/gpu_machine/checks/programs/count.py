"""The ranks of a group sum over NCCL; they are killed, and sum again; the last line says how long that took."""

import sys
import time

import workergroups

name = sys.argv[1]
group = workergroups.attach(name, timeout=60)
expected = [sum(range(1, group.world_size + 1))] * group.world_size
assert group.total() == expected
if hasattr(group, "gib"):
    print("GiB of weights:", group.gib())
began = time.monotonic()
try:
    group.exit_at_once()
except workergroups.RankDiedError as error:
    print(f"{time.monotonic() - began:.1f} s: {error}")
group.renew(timeout=90)
renewed = time.monotonic() - began
assert group.total() == expected
print(f"new ranks after {renewed:.1f} s, their first sum after {time.monotonic() - began:.1f} s")
