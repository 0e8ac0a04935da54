import pytest

from workergroups_api.pod_settings import ClaimingResources
from workergroups_operator.templates.pod_parts import resources, whole_cpus


@pytest.mark.parametrize(
    ("quantity", "count"),
    [
        ("28", 28),
        ("1.5", 1),
        ("500m", 1),
        ("4500m", 4),
        ("0", 1),
        ("0.001k", 1),
        ("2k", 2000),
        ("1.5k", 1500),
        ("1M", 10**6),
        ("1Ki", 1024),
        ("2Mi", 2 * 2**20),
        ("lots", 1),
        ("", 1),
    ],
)
def test_a_quantity_of_cpus_is_that_many_whole_ones_and_at_least_one(quantity, count):
    assert whole_cpus(quantity) == count


REQUESTS = {"cpu": "200m", "memory": "512Mi"}
LIMITS = {"cpu": "8", "memory": "16Gi"}


@pytest.mark.parametrize(
    ("asked", "requests", "limits"),
    [
        pytest.param({}, REQUESTS, LIMITS, id="nothing: the defaults"),
        pytest.param(
            {"requests": {"memory": "8Gi"}},
            {"cpu": "200m", "memory": "8Gi"},
            {"cpu": "8", "memory": "8Gi"},
            id="a request of memory is its limit",
        ),
        pytest.param(
            {"limits": {"memory": "8Gi", "cpu": 2}},
            {"cpu": "2", "memory": "8Gi"},
            {"cpu": "2", "memory": "8Gi"},
            id="a limit is its request, as in any pod",
        ),
        pytest.param(
            {"requests": {"memory": "8Gi", "cpu": 1}, "limits": {"memory": "12Gi", "cpu": "1500m"}},
            {"cpu": "1", "memory": "8Gi"},
            {"cpu": "1500m", "memory": "12Gi"},
            id="both",
        ),
        pytest.param(
            {"requests": {"cpu": "7500m"}},
            {"cpu": "7500m", "memory": "512Mi"},
            LIMITS,
            id="a small request of CPUs: the default limit",
        ),
        pytest.param(
            {"requests": {"cpu": "12500m"}},
            {"cpu": "12500m", "memory": "512Mi"},
            {"cpu": "13", "memory": "16Gi"},
            id="a large request of CPUs: a larger limit",
        ),
        pytest.param(
            {"requests": {"rdma/hca": 1}},
            REQUESTS | {"rdma/hca": "1"},
            LIMITS | {"rdma/hca": "1"},
            id="nobody can use more of a device",
        ),
    ],
)
def test_what_a_pool_leaves_out_is_completed(asked, requests, limits):
    found = resources(ClaimingResources.model_validate(asked), REQUESTS, LIMITS)
    assert found == {"requests": requests, "limits": limits}


def test_a_container_without_default_limits_has_only_those_of_the_pool():
    asked = ClaimingResources.model_validate({"requests": {"cpu": 28, "memory": "200Gi"}})
    assert resources(asked, REQUESTS)["limits"] == {"memory": "200Gi"}
    assert "limits" not in resources(ClaimingResources(), REQUESTS)


def test_what_the_template_sets_has_no_default_limit():
    assert resources(ClaimingResources(), REQUESTS, LIMITS, unlimited={"cpu"})["limits"] == {"memory": "16Gi"}
