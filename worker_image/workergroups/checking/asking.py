"""Ask a pool's nodes what they have, from any process that is connected to Ray."""

from __future__ import annotations

from .all_reduce import measure
from .answers import Answer, Question
from .probes import look_at_all, nodes_of


def answer(question: Question) -> Answer:
    """Return what the nodes report, and the result of the all-reduce if the question asks for one."""
    nodes = nodes_of(question["node_group"], question["node_ids"])
    found, silent = look_at_all(nodes, question)
    all_reduce, not_measured = measure(question, nodes, found) if question["fabric"] else (None, None)
    return Answer(nodes=found, silent=silent, all_reduce=all_reduce, not_measured=not_measured)
