"""Check whether the nodes of a pool have what it asks for and reach each other: ask them, and judge the answers."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from workergroups.checking.answers import Answer, Question, seconds_for
from workergroups.checking.findings import CheckFinding
from workergroups.checking.judgement import judge
from workergroups_api.names import node_group
from workergroups_common.quantities import bytes_of

from ..api_server.cluster import Cluster
from ..objects.names import Target
from ..objects.reading import pool_spec
from .head_programs import ask_library

if TYPE_CHECKING:
    from workergroups_api.resource_pool import ResourcePoolSpec

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
    question = question_about(pool, pool_spec(pool), fabric=fabric)
    answer: Answer = ask_library(
        cluster, pool, "checking", json.dumps(question), what="nodes", seconds=seconds_for(question) + _MARGIN_SECONDS
    )
    return Check(tuple(judge(question, answer)), answer)


def question_about(pool: Target, spec: ResourcePoolSpec, *, fabric: bool) -> Question:
    """Return the question for the head of the pool."""
    return Question(
        pool=pool.name,
        node_group=node_group(pool.name, pool.uid),
        nodes=spec.nodes,
        node_ids=None,
        vendor=spec.accelerator.vendor,
        processes=spec.processes_per_node,
        devices=spec.devices_per_node // spec.processes_per_node,
        device=spec.accelerator.ray_name,
        is_reserved=spec.is_reserved,
        placement_name="",
        shared_memory=None if spec.shared_memory is None else bytes_of(spec.shared_memory),
        writable=list(spec.writable_directories),
        fabric=fabric,
    )
