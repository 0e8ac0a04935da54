"""What fails is retried ever later; a launch whose task does not start not for ever."""

from workergroups_agent.executor.pod_tasks import MAX_TRIES, retry_seconds
from workergroups_common.backoff import Backoff


def test_a_launch_is_retried_ever_later_and_then_given_up():
    assert [retry_seconds(tries) for tries in range(1, MAX_TRIES + 1)] == [2, 4, 8, 16, 30, None]


def test_each_failure_doubles_the_pause_up_to_a_limit():
    assert [Backoff(0.5, 5.0).after(failures) for failures in range(7)] == [0.0, 0.5, 1.0, 2.0, 4.0, 5.0, 5.0]
    assert Backoff(0.5, 5.0).after(10**9) == 5.0
