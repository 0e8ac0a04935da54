"""A driver on a node: each rank holds some GiB of its device, and all sum over NCCL until standard input ends."""

import json
import sys
import threading
import time

import workergroups

gib = int(sys.argv[1])
group = workergroups.attach("gpu", timeout=60)
group.hold(gib)
group.total()
print(json.dumps({"ranks": group.held()}), flush=True)
ended = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
calls, longest = 0, 0.0
while not ended.is_set():
    began = time.monotonic()
    group.total()
    longest, calls = max(longest, time.monotonic() - began), calls + 1
    time.sleep(0.05)
print(json.dumps({"ranks": group.held(), "calls": calls, "longest": longest}), flush=True)
