import pytest

from workergroups_common.backoff import Backoff


@pytest.mark.parametrize(
    ("backoff", "lasted", "pause"),
    [
        (Backoff(0.5, 60.0), 0.0, 0.5),
        (Backoff(0.5, 60.0), 0.4, 0.5),
        (Backoff(0.5, 60.0), 3.0, 3.0),
        (Backoff(0.5, 60.0), 50.0, 50.0),
        (Backoff(0.5, 60.0), 500.0, 60.0),
        (Backoff(0.5, 2.0), 50.0, 2.0),
        (Backoff(2.0, 60.0, part=0.25), 0.0, 2.0),
        (Backoff(2.0, 60.0, part=0.25), 40.0, 10.0),
        (Backoff(2.0, 60.0, part=0.25), 4000.0, 60.0),
    ],
)
def test_a_pause_grows_with_the_time_between_its_bounds(backoff, lasted, pause):
    assert backoff.pause(lasted) == pause


def test_each_try_doubles_the_time_so_far():
    backoff, times = Backoff(0.5, 60.0), [0.0]
    while len(times) < 6:
        times.append(times[-1] + backoff.pause(times[-1]))
    assert times == [0.0, 0.5, 1.0, 2.0, 4.0, 8.0]
