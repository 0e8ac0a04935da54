"""The condition Complete: whether the method that a group runs has returned on all ranks. Other groups have none."""

from functools import partial

from workergroups_api.conditions import Explanation, Finding
from workergroups_api.report import GroupReport, RunReport
from workergroups_api.vocabulary import ConditionType, Reason
from workergroups_api.worker_group import WorkerGroup
from workergroups_operator.status.conclusion import StatusInputs, finding

_complete_finding = partial(finding, ConditionType.COMPLETE)


def group_complete(
    group: WorkerGroup, report: GroupReport, unknown: Explanation | None, inputs: StatusInputs
) -> tuple[Finding, ...]:
    """Return the condition of a group with `spec.run`; none of others.

    Args:
        group: The group.
        report: What the agent reports of the present incarnation.
        unknown: Why Ray's state is unknown.
        inputs: What the earlier steps found.
    """
    if group.spec.run is None:
        return ()
    ended = how_ended(group, inputs)
    if ended is not None:
        return (_complete_finding("True" if ended.reason == Reason.COMPLETE else "False", ended),)
    if unknown is not None:
        return (_complete_finding("Unknown", unknown),)
    run, method = report.run or RunReport(), group.spec.run.method
    incarnation = inputs.decisions.groups.incarnations.get(group.name)
    total = incarnation.world_size if incarnation is not None else 0
    if not run.begun:
        why = Explanation(Reason.RUN_NOT_BEGUN, f"{method} is called on all ranks once they are ready")
    else:
        count = f"{method} has begun on {run.begun} of {total} ranks, and returned on {run.returned}"
        why = Explanation(Reason.RUN_BEGUN, count)
    return (_complete_finding("False", why),)


def how_ended(group: WorkerGroup, inputs: StatusInputs) -> Explanation | None:
    """Explain how the run of a group has ended; None if it has not, or if there is none."""
    return inputs.decisions.groups.finished.get(group.name)
