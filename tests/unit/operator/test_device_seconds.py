"""Each second of each device is booked once."""

from types import SimpleNamespace

import pytest

from workergroups_operator.device_seconds import DeviceSeconds
from workergroups_operator.status.devices import DeviceState

# Seconds, and how many devices are in which state during these: a pool of four devices that fails once.
SCHEDULE = [
    (30.0, {"Pending": 4}),
    (12.5, {"Pending": 2, "Starting": 2}),
    (8.0, {"Free": 4}),
    (3.25, {"Launching": 4}),
    (3600.0, {"Ready": 4}),
    (2.0, {"Launching": 2, "Ready": 2}),
    (100.0, {"Ready": 4}),
    (7.0, {"Unknown": 4}),
    (1800.0, {"Ready": 3, "Free": 1}),
]
EXPECTED = {
    "Pending": 145.0,
    "Starting": 25.0,
    "Free": 1832.0,
    "Launching": 17.0,
    "Ready": 20204.0,
    "Unknown": 28.0,
}


@pytest.fixture
def clock():
    return SimpleNamespace(now=1000.0)


@pytest.fixture
def booked(clock):
    return DeviceSeconds(lambda: clock.now)


def spent(booked, pool="gpu"):
    return {state: seconds for (_, name, state), seconds in booked.spent() if name == pool and seconds}


@pytest.mark.parametrize("notes", [1, 7])
def test_a_schedule_is_booked_without_an_error(booked, clock, notes):
    """However often a reconcile finds the same."""
    for seconds, devices in SCHEDULE:
        for _ in range(notes):
            booked.note("team", "gpu", dict(devices))
            clock.now += seconds / notes
    assert spent(booked) == pytest.approx(EXPECTED)
    assert sum(EXPECTED.values()) == 4 * sum(seconds for seconds, _ in SCHEDULE)


def test_a_scrape_between_two_notes_has_what_was_spent_until_then(booked, clock):
    booked.note("team", "gpu", {"Free": 2})
    clock.now += 10
    assert spent(booked) == {"Free": 20.0}
    clock.now += 5
    assert spent(booked) == {"Free": 30.0}


def test_a_counter_begins_with_zero(booked):
    booked.note("team", "gpu", {"Free": 2})
    assert dict(booked.spent()) == {("team", "gpu", state): 0.0 for state in DeviceState}


def test_a_pool_on_cpus_has_no_counter(booked):
    booked.note("team", "cpu", {})
    assert list(booked.spent()) == []


def test_a_state_that_has_ended_keeps_its_seconds(booked, clock):
    for devices in ({"Starting": 2}, {"Free": 2}, {}):
        booked.note("team", "gpu", devices)
        clock.now += 10
    assert spent(booked) == {"Starting": 20.0, "Free": 20.0}


def test_a_pool_that_is_created_again_begins_anew(booked, clock):
    booked.note("team", "gpu", {"Free": 2})
    clock.now += 10
    booked.forget("team", "gpu")
    assert spent(booked) == {}
    booked.note("team", "gpu", {"Free": 2})
    clock.now += 1
    assert spent(booked) == {"Free": 2.0}


def test_pools_have_accounts_of_their_own(booked, clock):
    booked.note("team", "gpu", {"Free": 1})
    booked.note("team", "other", {"Free": 3})
    clock.now += 1
    assert (spent(booked), spent(booked, "other")) == ({"Free": 1.0}, {"Free": 3.0})
