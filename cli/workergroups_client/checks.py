"""Check whether the nodes of a pool have what it asks for and reach each other: ask them, and judge the answers."""

from __future__ import annotations

import json
from dataclasses import dataclass

from workergroups.checking.answers import Answer, Question, seconds_for
from workergroups_api.names import node_group

from .check_findings import CheckFinding
from .cluster import Cluster
from .head_programs import ask_library
from .judgement import Requirements, judge
from .names import Target
from .reading import pool_spec

_MARGIN_SECONDS = 15
"""For the connection, and for the start of a process on the head."""


@dataclass(frozen=True)
class Check:
    """The result of a check of a pool."""

    findings: tuple[CheckFinding, ...]
    """The most important ones first."""
    answer: Answer
    """The answers of the nodes."""

    @property
    def is_well(self) -> bool:
        """Whether no finding is a problem."""
        return all(finding.is_well for finding in self.findings)


def check(cluster: Cluster, pool: Target, *, fabric: bool) -> Check:
    """Ask the nodes of a pool, and judge their answers.

    Raises:
        NotFoundError: The head of the Ray cluster is not running.
        ClientError: The program on the head failed.
        DeadlineError: The head did not answer in time.
    """
    required = Requirements.of(pool_spec(pool))
    question = question_about(pool, required, fabric=fabric)
    answer: Answer = ask_library(
        cluster, pool, "checking", json.dumps(question), what="nodes", seconds=seconds_for(question) + _MARGIN_SECONDS
    )
    return Check(tuple(judge(required, answer, fabric=fabric)), answer)


def question_about(pool: Target, required: Requirements, *, fabric: bool) -> Question:
    """Return the question for the head of the pool."""
    return Question(
        pool=pool.name,
        node_group=node_group(pool.name, pool.uid),
        vendor=required.vendor,
        processes=required.processes,
        devices=required.devices // required.processes,
        device=required.device,
        is_reserved=required.is_reserved,
        writable=list(required.writable),
        fabric=fabric,
    )
