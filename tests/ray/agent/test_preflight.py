"""The check of a pool's nodes before groups are launched, in a real Ray; and that nothing of it is left."""

import json

import ray
from ray.util import placement_group_table

from tests.ray.agent.planned import Group, pool
from workergroups_api.plan import PlannedPreflight


def processes():
    """Return the classes of the live actors."""
    table = ray._private.state.actors()
    return sorted(each["ActorClassName"] for each in table.values() if each["State"] == "ALIVE")


def reserved():
    return [each for each in placement_group_table().values() if each["state"] == "CREATED"]


def reported(reports):
    return reports.pools["actors"].report.preflight


def checked(level="Basic", writable=(), **more):
    planned = pool(devices=4, **more, preflight=PlannedPreflight(level=level, writable=writable))
    return planned.model_copy(update={"vendor": "none", "bundle": {"CPU": 10.0}, "devices_per_process": 1})


def test_a_group_waits_for_the_check_and_is_launched_when_it_has_passed(agent, tmp_path):
    group = Group(bundles=(("actors", 0, 2),))
    missing = str(tmp_path / "missing")
    reports = agent.until(
        lambda said: reported(said) and reported(said).state == "Failed",
        group,
        pools=(checked(writable=(missing,)),),
        seconds=90,
    )
    found = reported(reports)
    assert f"cannot write to {missing}" in found.message
    assert "has not passed its preflight" in reports.groups["trainer"].report.message
    agent.go_on_until(lambda _: processes() == [])
    # The spec is corrected.
    again = checked().model_copy(update={"generation": 2})
    reports = agent.until(lambda said: said.groups["trainer"].report.ready_count == 2, group, pools=(again,))
    assert (reported(reports).state, reported(reports).passed) == ("Passed", "0-1")


def test_an_all_reduce_is_measured_and_nothing_is_left(agent):
    reports = agent.until(
        lambda said: reported(said) and reported(said).state in ("Passed", "Failed"),
        pools=(checked("Fabric"),),
        seconds=240,
    )
    found = reported(reports)
    assert (found.state, found.passed) == ("Passed", "0-1"), json.dumps(found.to_json())
    assert "GB/s bus bandwidth (gloo, 2 processes" in found.message
    agent.go_on_until(lambda _: processes() == [])
    assert len(reserved()) == 2


def test_what_a_check_holds_is_free_as_soon_as_nobody_wants_it(agent):
    asked = checked("Fabric", reserves=False)
    # The check reserves bundles for itself, since the pool has none.
    agent.until(lambda _: "Adder" in " ".join(processes()), pools=(asked,), seconds=120)
    assert reserved()
    agent.until(lambda said: reported(said) is None, pools=(asked.model_copy(update={"preflight": None}),))
    agent.go_on_until(lambda _: processes() == [] and not reserved())
