import pytest

from workergroups_operator.templates.pod_parts import whole_cpus


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
