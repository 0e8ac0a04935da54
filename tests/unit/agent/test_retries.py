"""A launch whose task does not start is retried ever later, and not for ever."""

from workergroups_agent.executor.pod_tasks import MAX_TRIES, retry_seconds


def test_a_launch_is_retried_ever_later_and_then_given_up():
    assert [retry_seconds(tries) for tries in range(1, MAX_TRIES + 1)] == [2, 4, 8, 16, 30, None]
