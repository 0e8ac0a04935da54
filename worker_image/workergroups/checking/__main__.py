"""Answer a JSON question about a pool's nodes in JSON: ``python -m workergroups.checking QUESTION``.

The command line runs this in the head's pod. It takes no resources of the cluster, except for an all-reduce: that takes
a share of each device, like a group.
"""

from __future__ import annotations

import json
import logging
import signal
import sys

import ray

from workergroups.answering import give
from workergroups.naming import NAMESPACE

from .answers import Answer, Question, seconds_for
from .asking import answer


def main(text: str) -> Answer:
    """Connect to Ray, and return the answer."""
    question: Question = json.loads(text)
    # If Ray hangs, the caller gives up earlier, and this process must not stay behind.
    signal.alarm(2 * seconds_for(question))
    # In this namespace, the agent does not count the program as a user's driver.
    ray.init(address="auto", namespace=NAMESPACE, log_to_driver=False, logging_level=logging.ERROR)
    return answer(question)


if __name__ == "__main__":
    give(main, *sys.argv[1:])
