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

from .all_reduce import measure
from .answers import Answer, Question, seconds_for
from .probes import look_at_all, nodes_of


def main(text: str) -> Answer:
    """Connect to Ray, and return the answer."""
    question: Question = json.loads(text)
    # If Ray hangs, the caller gives up earlier, and this process must not stay behind.
    signal.alarm(2 * seconds_for(question))
    # In this namespace, the agent does not count the program as a user's driver.
    ray.init(address="auto", namespace=NAMESPACE, log_to_driver=False, logging_level=logging.ERROR)
    return answer(question)


def answer(question: Question) -> Answer:
    """Return what the nodes report, and the result of the all-reduce if the question asks for one."""
    nodes = nodes_of(question["node_group"])
    found, silent = look_at_all(nodes, question)
    all_reduce, not_measured = measure(question, nodes, found) if question["fabric"] else (None, None)
    return Answer(nodes=found, silent=silent, all_reduce=all_reduce, not_measured=not_measured)


if __name__ == "__main__":
    give(main, *sys.argv[1:])
