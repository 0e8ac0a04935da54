"""A quicker pace: shorter timings, so that a history of seconds shows what otherwise takes minutes.

Histories hold faults that are noticed by waiting.
"""

from dataclasses import replace

from tests.simulation import operator, reporter
from workergroups_agent.reporter.timings import ReporterTimings
from workergroups_common.backoff import Backoff
from workergroups_operator.timings import Timings as OperatorTimings

# Timings are divided by this.
PACE = 3.0


def quicken() -> None:
    """Inject shorter timings into each operator and reporter that this process starts from now on."""
    operator.timings = of_operator(operator.timings)
    reporter.timings = of_reporter(reporter.timings)


def of_operator(usual: OperatorTimings) -> OperatorTimings:
    """Return the operator's timings at this pace.

    `agent_away` stays: an agent that returns needs this time for requests, which are not quicker here.
    """
    return replace(
        usual,
        lease_late=usual.lease_late / PACE,
        lease_check=usual.lease_check / PACE,
        lease_confirm=usual.lease_confirm / PACE,
        session_stale=usual.session_stale / PACE,
        watch_retry=usual.watch_retry / PACE,
        watch=usual.watch / PACE,
        watch_late=usual.watch_late / PACE,
        request=usual.request / PACE,
        retry=_quicker(usual.retry),
        urgent_retry=_quicker(usual.urgent_retry),
    )


def of_reporter(usual: ReporterTimings) -> ReporterTimings:
    """Return the reporter's timings at this pace."""
    return replace(
        usual,
        request=usual.request / PACE,
        renew=usual.renew / PACE,
        renew_again=usual.renew_again / PACE,
        heartbeat_stale=usual.heartbeat_stale / PACE,
        status_retry=_quicker(usual.status_retry),
    )


def _quicker(usual: Backoff) -> Backoff:
    return replace(usual, first=usual.first / PACE, last=usual.last / PACE)
