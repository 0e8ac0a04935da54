import pytest

from tests.unit.operator.make import pool
from workergroups_api.manifest import RESOURCE_POOL, WORKER_GROUP
from workergroups_operator.policy.spec_limits import excess, unfit_group_env, unfit_pool_env


def nested(levels):
    value = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        (WORKER_GROUP, {}),
        (WORKER_GROUP, {"worker": {"args": [nested(62)]}}),
        (WORKER_GROUP, {"worker": {"kwargs": {"text": "x" * 260_000}}}),
        (WORKER_GROUP, {"worker": {"args": [list(range(19_000))]}}),
        (RESOURCE_POOL, {"env": [{"name": f"A{n}", "value": "x" * 3_200} for n in range(150)]}),
        (RESOURCE_POOL, {"podTemplate": {"spec": {"containers": [{"name": "ray-worker"}]}}}),
    ],
)
def test_what_is_within_the_limits_is_served(kind, spec):
    assert excess(kind, spec) is None


@pytest.mark.parametrize(
    ("kind", "spec", "said"),
    [
        (WORKER_GROUP, {"worker": {"args": [nested(63)]}}, "spec.worker: the JSON is nested more than 64 levels"),
        (WORKER_GROUP, {"roles": [{"kwargs": {"text": "x" * 300_000}}]}, "spec.roles: the JSON has 300"),
        (WORKER_GROUP, {"worker": {"kwargs": {"text": "\u00e9" * 50_000}}}, "spec.worker: the JSON has 300"),
        (WORKER_GROUP, {"worker": {"args": [[{}] * 20_000]}}, "values"),
        (RESOURCE_POOL, {"podTemplate": {"spec": {"affinity": nested(63)}}}, "spec.podTemplate: the JSON is nested"),
        (RESOURCE_POOL, {"head": {"podTemplate": {"spec": {"affinity": nested(70)}}}}, "spec.head: the JSON is nested"),
        (
            RESOURCE_POOL,
            {"volumes": [{"csi": {"x": nested(70)}}]},
            "spec.volumes: the JSON is nested",
        ),
        (RESOURCE_POOL, {"env": [{"value": "x" * 3_200} for _ in range(250)]}, "spec.env: the JSON has 80"),
        (RESOURCE_POOL, {"env": [{"name": "A", "valueFrom": {"x": nested(70)}}]}, "spec.env: the JSON is nested"),
    ],
)
def test_what_is_more_is_explained_with_field_limit_and_way_out(kind, spec, said):
    why = excess(kind, spec)
    assert why is not None
    assert why.reason == "InvalidSpec"
    assert said in why.message
    assert any(word in why.message for word in ("put large", "remove what", "move large"))


@pytest.mark.parametrize(
    ("env", "fits"),
    [
        ({}, True),
        ({"A": "x" * 98_000}, True),
        ({"A": "x" * 99_000}, False),
        ({"A": "\u00e9" * 10_000}, True),
        ({"A": "\u00e9" * 20_000}, False),
        ({"A": '"' * 20_000}, True),
        ({"A": '"' * 30_000}, False),
        ({f"A{n}": "" for n in range(128)}, True),
    ],
    ids=["none", "fits", "long", "accents", "many accents", "quotes", "many quotes", "names"],
)
def test_an_environment_is_measured_as_ray_passes_it_on(env, fits):
    assert (unfit_group_env(env) is None) is fits


@pytest.mark.parametrize(
    ("value", "fits"),
    [("x" * 32_768, True), ("\U0001f600" * 32_000, True), ("\U0001f600" * 32_768, False), (None, True)],
)
def test_a_variable_of_a_pool_is_measured_in_bytes(value, fits):
    why = unfit_pool_env(pool(env=[{"name": "A", "value": value}]))
    assert (why is None) is fits
    assert why is None or "spec.env: A has 131075 bytes" in why.message
