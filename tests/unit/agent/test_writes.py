"""How far a status is behind what is reported, when it is written again, and when nobody can vouch for it."""

import pytest
from kubernetes.aio.dynamic.exceptions import DynamicApiError

from workergroups_agent.reporter.reach import Reach
from workergroups_agent.reporter.subtrees import StatusSubtree
from workergroups_agent.reporter.timings import ReporterTimings
from workergroups_agent.reporter.writes import Write, is_gone, next_failure
from workergroups_api.manifest import RESOURCE_POOL
from workergroups_kube import ReplacedError

A, B = (StatusSubtree(RESOURCE_POOL, "p", "u", {"joinedNodes": nodes}) for nodes in (1, 2))
TIMINGS = ReporterTimings()
LATE = TIMINGS.status_grace + 0.1


class Refusal:
    headers = None

    def __init__(self, status, body=""):
        self.status, self.reason, self.body = status, "why", body


FORBIDDEN = DynamicApiError(Refusal(403))


def answering(*times):
    """An API server that answered at these times."""
    reach = Reach()
    for time in times:
        reach.answered(time)
    return reach


def written(subtree=A):
    write = Write(subtree, 0.0, TIMINGS)
    write.succeed(write.begin())
    return write


def test_what_is_wanted_is_written_once():
    write = Write(A, 0.0, TIMINGS)
    assert write.is_due(0.0)
    assert write.begin() == A
    assert not write.is_due(0.1), "it is in flight"
    write.succeed(A)
    assert write.is_settled
    write.want(A, 1.0)
    assert not write.is_due(1.0)
    write.want(B, 2.0)
    assert write.is_due(2.0)


def test_what_changed_in_flight_is_written_after_it():
    write = written()
    write.want(B, 1.0)
    assert write.begin() == B
    write.want(A, 1.1)
    assert not write.is_due(1.1)
    write.succeed(B)
    assert write.is_due(1.2)
    assert write.begin() == A


def test_what_changed_back_before_it_was_written_needs_no_write():
    write = written()
    write.want(B, 1.0)
    write.want(A, 1.1)
    assert write.is_settled


def test_after_a_failure_nobody_knows_what_the_status_holds():
    write = written()
    write.want(B, 1.0)
    write.begin()
    write.fail(TimeoutError(), 1.1)
    write.want(A, 1.2)
    assert not write.is_settled
    assert write.is_due(10.0)


def test_a_status_is_vouched_for_until_it_has_been_behind_for_too_long():
    write = written()
    assert write.doubt(answering(0.0, 100.0)) is None
    write.want(B, 100.0)
    assert not write.is_late(100.0 + TIMINGS.status_grace)
    assert write.doubt(answering(0.0, 100.0 + TIMINGS.status_grace)) is None
    assert write.is_late(100.0 + LATE)
    assert "has not answered" in write.doubt(answering(0.0, 100.0 + LATE))
    write.succeed(write.begin())
    assert not write.is_late(1000.0)
    assert write.doubt(answering(0.0, 1000.0)) is None


def test_a_write_in_flight_for_too_long_counts_as_unwritten():
    write = Write(A, 0.0, TIMINGS)
    write.begin()
    assert write.doubt(answering(0.0, LATE)) is not None


def test_while_the_api_server_answers_nothing_there_is_no_new_doubt_nor_just_after():
    write, reach = written(), answering(0.0)
    write.want(B, 0.1)
    write.begin()
    assert write.doubt(reach) is None, "nobody knows yet whether it answers"
    reach.failed()
    assert write.doubt(reach) is None
    reach.answered(20.0)
    assert write.doubt(reach) is None
    reach.answered(20.0 + LATE)
    assert write.doubt(reach) is not None


def test_a_doubt_outlives_a_time_without_answers():
    write, reach = written(), answering(0.0, LATE)
    write.want(B, 0.0)
    assert write.doubt(reach) is not None
    reach.failed()
    assert write.doubt(reach) is not None
    reach.answered(20.0)
    assert write.doubt(reach) is not None
    write.succeed(write.begin())
    assert write.doubt(reach) is None
    write.want(A, 21.0)
    assert write.doubt(reach) is None


def test_reports_that_change_all_the_time_are_vouched_for_as_long_as_each_write_is_quick():
    write, now = written(), 0.0
    for subtree in [B, A] * 20:
        now += 0.5
        write.want(subtree, now)
        flying = write.begin()
        write.want(B if subtree == A else A, now + 0.2)
        write.succeed(flying)
        assert write.doubt(answering(0.0, now + 0.4)) is None


def test_the_reason_is_the_api_servers_and_stays_while_the_same_happens():
    write = written()
    write.want(B, 0.0)
    for number in range(3):
        write.begin()
        write.fail(DynamicApiError(Refusal(403, f"request {number}")), 1.0)
    first = write.doubt(answering(0.0, LATE))
    assert first.startswith("its status cannot be written: 403")
    write.begin()
    write.fail(DynamicApiError(Refusal(422)), 2.0)
    assert "422" in write.doubt(answering(0.0, LATE))


def test_a_failed_write_is_retried_later_and_later():
    failure, delays = None, []
    for _ in range(8):
        failure = next_failure(FORBIDDEN, failure, 100.0, TIMINGS.status_retry)
        delays.append(failure.retry_at - 100.0)
    assert delays == [0.5, 1, 2, 4, 8, 16, 30, 30]


def test_a_doubt_ends_with_the_write_also_if_the_report_has_changed_again_before_anybody_looks():
    write = written()
    write.want(B, 0.0)
    assert write.doubt(answering(0.0, LATE)) is not None
    write.succeed(write.begin())
    write.want(A, LATE)
    assert write.doubt(answering(0.0, LATE + 0.1)) is None


def test_what_failed_is_tried_again_as_soon_as_the_api_server_answers():
    write = written()
    write.want(B, 0.0)
    for _ in range(8):
        write.begin()
        write.fail(TimeoutError(), 1.0)
    assert not write.is_due(2.0)
    write.retry(2.0)
    assert write.is_due(2.0)


def test_another_report_is_tried_sooner_but_not_at_once():
    write = written()
    write.want(B, 0.0)
    for _ in range(8):
        write.begin()
        write.fail(FORBIDDEN, 1.0)
    write.want(A, 2.0)
    assert not write.is_due(2.4)
    assert write.is_due(2.5)


@pytest.mark.parametrize(
    ("status", "body", "gone"),
    [
        (404, "", True),
        (409, "the object has been modified; please apply your changes to the latest version", False),
        (422, "invalid", False),
        (500, "", False),
    ],
)
def test_an_object_that_is_gone_is_told_from_a_write_that_failed(status, body, gone):
    assert is_gone(DynamicApiError(Refusal(status, body))) is gone


def test_an_object_whose_name_another_one_has_is_gone():
    assert is_gone(ReplacedError("no ResourcePool p has the UID u any more"))


def test_connections_fail_without_meaning_that_the_object_is_gone():
    assert not is_gone(TimeoutError())
