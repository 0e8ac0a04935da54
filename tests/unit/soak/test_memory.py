"""When a soak says that memory rises."""

import pytest

from tests.soak.memory import MOST_MIB, Sample, rises

AT_REST = [100.0] * 100


def samples(*resident):
    return [Sample(float(number), {"Leases renewed": number}, mib) for number, mib in enumerate(resident)]


@pytest.mark.parametrize(
    ("resident", "expected"),
    [
        (AT_REST, False),
        ([60 + min(number, 25) for number in range(100)], False),
        ([100 + 8 * (number % 10 == 0) for number in range(100)], False),
        ([100 + MOST_MIB * number / 40 for number in range(100)], True),
        ([100 - number / 10 for number in range(100)], False),
    ],
    ids=["flat", "caches that fill", "peaks", "a leak", "falling"],
)
def test_memory_rises_if_the_last_quarter_is_above_the_second(resident, expected):
    assert rises(samples(*resident)) is expected
