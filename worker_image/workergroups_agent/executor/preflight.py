"""The process in a pool's pod that checks the pool's nodes: it asks them, judges the answers, and writes the record."""

from dataclasses import dataclass
from typing import Any

from workergroups.checking.answers import Answer, Question
from workergroups.checking.asking import answer
from workergroups.checking.judgement import judge
from workergroups.ray_private.gcs import Gcs
from workergroups.stacks.exception_text import exception_line
from workergroups_agent.preflight_records import MAX_MESSAGE, PreflightRecord, write
from workergroups_api.vocabulary import PreflightState
from workergroups_common.text import plain


@dataclass(frozen=True)
class PreflightOrder:
    """What the process must do."""

    uid: str
    question: Question
    # The record that says that this check has begun: what it has of earlier checks stays in the result.
    begun: PreflightRecord


class PreflightProcess:
    """Runs one check, and raises nothing."""

    def run(self, order: PreflightOrder) -> None:
        """Check the nodes."""
        try:
            record = judged(order, answer(order.question))
        except Exception as error:  # Ray may raise anything when nodes go away
            record = failed(order.begun, exception_line(f"{type(error).__name__}: {error}"))
        write(Gcs.of_driver(), order.uid, record)


def judged(order: PreflightOrder, said: Answer) -> PreflightRecord:
    """Return the record after the nodes have answered."""
    like: list[Any] = list(order.begun.like.values())
    question = Question(**{**order.question, "nodes": order.question["nodes"] + len(like)})
    findings = list(judge(question, Answer(**{**said, "nodes": [*said["nodes"], *like]})))
    wrong = [f"{each.subject}: {each.message}" for each in findings if not each.is_well]
    if wrong:
        return failed(order.begun, "; ".join(wrong))
    measured = [f"{each.subject}: {each.message}" for each in findings if each.subject == "all-reduce"]
    asked = dict(zip(order.begun.asked, said["nodes"], strict=False))
    return order.begun.model_copy(
        update={
            "state": PreflightState.PASSED,
            "message": plain("".join(measured), MAX_MESSAGE),
            "passed": (*order.begun.passed, *asked),
            "like": order.begun.like or dict(list(asked.items())[:1]),
        }
    )


def failed(begun: PreflightRecord, why: str) -> PreflightRecord:
    """Return the record of a check that failed."""
    return begun.model_copy(update={"state": PreflightState.FAILED, "message": plain(why, MAX_MESSAGE)})
