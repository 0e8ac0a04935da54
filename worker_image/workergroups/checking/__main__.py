"""``python -m workergroups.checking QUESTION``: for those outside the cluster, JSON for JSON.

The command line runs it in the head's pod. It takes no resources of what runs on the cluster, but for an all-reduce a
share of each device, as a group does.
"""

from __future__ import annotations

import json
import logging
import signal
import sys

import ray

from workergroups.answering import give

from .all_reduce import measure
from .answers import Answer, Question, seconds_for
from .probes import look_at_all, nodes_of


def main(text: str) -> Answer:
    """Connect to Ray, and return the answer."""
    question: Question = json.loads(text)
    # Where Ray hangs, nobody waits for as long; this process must not be what stays.
    signal.alarm(2 * seconds_for(question))
    ray.init(address="auto", log_to_driver=False, logging_level=logging.ERROR)
    return answer(question)


def answer(question: Question) -> Answer:
    """What the nodes say, and then what they do together."""
    nodes = nodes_of(question["node_group"])
    found, silent = look_at_all(nodes, question)
    all_reduce, not_measured = measure(question, nodes, found) if question["fabric"] else (None, None)
    return Answer(nodes=found, silent=silent, all_reduce=all_reduce, not_measured=not_measured)


if __name__ == "__main__":
    give(main, *sys.argv[1:])
