"""The driver of the recording."""

import workergroups

print(workergroups.attach("recording", timeout=60).step(0.5))
