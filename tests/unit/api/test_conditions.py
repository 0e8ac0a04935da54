"""Findings become conditions: the transition time moves with the status, and with nothing else."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from workergroups_api.bounded_text import MAX_TERM
from workergroups_api.conditions import MAX_MESSAGE, Condition, Finding, find, merge

THEN = datetime(2026, 1, 1, 12, tzinfo=UTC)
NOW = THEN + timedelta(minutes=5)


def finding(status: str = "False", reason: str = "Reserving", message: str = "0 of 4", type: str = "Ready") -> Finding:
    return Finding(type=type, status=status, reason=reason, message=message)


def before(status: str = "False") -> tuple[Condition, ...]:
    return merge((), [finding(status)], 1, THEN)


def test_a_new_condition_begins_now():
    (condition,) = merge((), [finding()], 3, NOW)
    assert condition.last_transition_time == NOW
    assert condition.observed_generation == 3


@pytest.mark.parametrize("status", ["True", "Unknown"])
def test_the_time_moves_with_the_status(status):
    (condition,) = merge(before(), [finding(status)], 1, NOW)
    assert condition.last_transition_time == NOW


def test_the_time_stays_with_another_reason_message_or_generation():
    (condition,) = merge(before(), [finding(reason="NodeLost", message="1 of 4")], 2, NOW)
    assert (condition.reason, condition.message, condition.observed_generation) == ("NodeLost", "1 of 4", 2)
    assert condition.last_transition_time == THEN


def test_what_is_found_no_more_goes():
    (condition,) = merge(before(), [finding(type="UpToDate")], 1, NOW)
    assert condition.type == "UpToDate"


def test_conditions_stand_in_the_order_of_their_findings():
    types = ["ClusterReady", "NodesReady", "Ready"]
    assert [each.type for each in merge(before(), [finding(type=type) for type in types], 1, NOW)] == types


def test_a_message_of_any_length_and_content_fits():
    (condition,) = merge((), [finding(message="boom \ud83d\0\n" * 10_000)], 1, NOW)
    assert len(condition.message) <= MAX_MESSAGE
    assert condition.message.encode()
    assert "\n" not in condition.message


@pytest.mark.parametrize("reason", ["", "x" * 2000, "a\0b"])
def test_a_reason_that_somebody_else_has_written_becomes_one_that_a_condition_may_have(reason):
    (condition,) = merge((), [finding(reason=reason)], 1, NOW)
    assert 0 < len(condition.reason) <= MAX_TERM
    assert "\0" not in condition.reason


def test_a_time_is_stored_as_the_api_server_stores_it():
    east = NOW.replace(microsecond=123456).astimezone(timezone(timedelta(hours=9)))
    (condition,) = merge((), [finding()], 1, east)
    assert condition.to_json()["lastTransitionTime"] == "2026-01-01T12:05:00Z"


def test_the_same_findings_are_the_same_conditions():
    stored = tuple(Condition.model_validate(each.to_json()) for each in before())
    assert merge(stored, [finding()], 1, NOW) == stored


def test_find():
    assert find(before(), "Ready") == before()[0]
    assert find(before(), "UpToDate") is None
