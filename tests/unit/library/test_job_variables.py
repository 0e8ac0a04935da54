"""Which attempt of its job a driver is."""

import pytest

import workergroups


@pytest.mark.parametrize(("value", "expected"), [(None, 1), ("1", 1), ("3", 3)])
def test_a_driver_knows_its_attempt(monkeypatch, value, expected):
    monkeypatch.delenv("WG_ATTEMPT", raising=False)
    if value is not None:
        monkeypatch.setenv("WG_ATTEMPT", value)
    assert workergroups.attempt() == expected


@pytest.mark.parametrize("value", ["", "-1", "first", "1.0"])
def test_what_is_no_number_is_named(monkeypatch, value):
    monkeypatch.setenv("WG_ATTEMPT", value)
    with pytest.raises(ValueError, match="WG_ATTEMPT must be the number of an attempt, and is"):
        workergroups.attempt()
