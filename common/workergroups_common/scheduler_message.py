"""What the scheduler says of a pod that fits nowhere, as far as it helps."""

import re

# What follows says only that nothing can be preempted or deallocated for the pod.
_NO_WAY_OUT = re.compile(r"[.,]? *(?:no new claims to deallocate|preemption:)")


def shortened(scheduler_says: str) -> str:
    """Return the scheduler's message without the part that says that preemption does not help either."""
    return _NO_WAY_OUT.split(scheduler_says)[0].rstrip(".")
