"""Whether a pool's nodes have what it asks for, and reach each other: asked of the nodes, and judged here."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from workergroups.checking.answers import Answer, Question, seconds_for
from workergroups_api.names import node_group
from workergroups_api.vocabulary import Reservation

from .check_findings import CheckFinding
from .cluster import Cluster
from .head_programs import ask_library
from .judgement import Asked, judge
from .names import Target
from .reading import pool_spec

if TYPE_CHECKING:
    from workergroups_api.resource_pool import ResourcePoolSpec

_MARGIN_SECONDS = 15
"""For the connection, and for the head to start a process."""


@dataclass(frozen=True)
class Check:
    """What was found."""

    findings: tuple[CheckFinding, ...]
    """In the order in which they are worth reading."""
    answer: Answer
    """What the nodes said."""

    @property
    def is_well(self) -> bool:
        """Whether nothing is wrong."""
        return all(finding.is_well for finding in self.findings)


def check(cluster: Cluster, pool: Target, *, fabric: bool) -> Check:
    """Ask a pool's nodes, and judge what they say.

    Raises:
        NotFoundError: There is no head to ask.
        ClientError: The head cannot say.
        DeadlineError: It does not answer.
    """
    spec = pool_spec(pool)
    asked = Asked.by(spec)
    question = question_about(pool, spec, fabric=fabric)
    answer: Answer = ask_library(
        cluster, pool, "checking", json.dumps(question), what="nodes", seconds=seconds_for(question) + _MARGIN_SECONDS
    )
    return Check(tuple(judge(asked, answer, fabric=fabric)), answer)


def question_about(pool: Target, spec: ResourcePoolSpec, *, fabric: bool) -> Question:
    """What the head is asked."""
    asked = Asked.by(spec)
    return Question(
        pool=pool.name,
        node_group=node_group(pool.name, pool.uid),
        vendor=asked.vendor,
        processes=asked.processes,
        devices=asked.devices // asked.processes,
        is_reserved=Reservation(spec.reservation) is Reservation.EAGER,
        writable=list(asked.writable),
        fabric=fabric,
    )
