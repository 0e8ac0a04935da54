"""When the operator writes, and when it must not."""

import copy

import pytest
from make import KEY, decided, observed, pool

from workergroups_operator.apply import covers, is_applied
from workergroups_operator.desired import desired


@pytest.mark.parametrize(
    ("live", "wanted", "covered"),
    [
        ({"a": 1, "b": 2}, {"a": 1}, True),
        ({"a": 1}, {"a": 2}, False),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ({"a": [{"x": 1, "y": 2}]}, {"a": [{"x": 1}]}, True),
        ({"a": [1, 2]}, {"a": [1]}, False),
        ({}, {"a": {}}, True),
        ({}, {"a": []}, True),
        ({"a": [1]}, {"a": []}, False),
    ],
)
def test_what_others_added_is_no_difference(live, wanted, covered):
    assert covers(live, wanted) is covered


def applied():
    """The RayCluster as it is wanted, and as the API server has it after it was applied."""
    seen = observed(pools=(pool(),))
    (wanted,) = [each for each in desired(seen, decided(seen), "fresh") if each["kind"] == "RayCluster"]
    live = copy.deepcopy(wanted)
    fields = {"f:spec": {f"f:{key}": {} for key in wanted["spec"]}}
    entry = {"manager": "workergroups-operator", "operation": "Apply", "fieldsV1": fields}
    live["metadata"]["managedFields"] = [entry]
    return wanted, live


def test_what_is_applied_is_not_applied_again():
    wanted, live = applied()
    assert is_applied(live, wanted)
    assert KEY.name == live["metadata"]["name"]


def test_a_field_that_is_not_wanted_any_more_is_taken_away():
    wanted, live = applied()
    live["metadata"]["annotations"]["workergroups.dev/manifest"] = "of a manifest with one field more"
    assert not is_applied(live, wanted)


def test_a_value_that_somebody_changed_is_put_back():
    wanted, live = applied()
    live["spec"]["workerGroupSpecs"][0]["replicas"] = 9
    assert not is_applied(live, wanted)


def test_an_addition_to_a_list_that_is_ours_as_a_whole_is_put_back():
    wanted, live = applied()
    live["spec"]["workerGroupSpecs"][0]["template"]["spec"]["hostNetwork"] = True
    del live["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"]["f:workerGroupSpecs"]
    assert not is_applied(live, wanted)


def test_what_others_added_beside_ours_stays():
    wanted, live = applied()
    live["spec"]["suspend"] = False
    live["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "research"
    assert is_applied(live, wanted)
