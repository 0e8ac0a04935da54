import pytest

from workergroups_api.manifest import RESOURCE_POOL, WORKER_GROUP
from workergroups_operator.policy.spec_limits import excess


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
        (RESOURCE_POOL, {"env": [{"name": f"A{n}", "value": "x" * 3_200} for n in range(250)]}),
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
        (RESOURCE_POOL, {"env": [{"name": "A", "valueFrom": {"x": nested(70)}}]}, "spec.env: the JSON is nested"),
    ],
)
def test_what_is_more_is_explained_with_field_limit_and_way_out(kind, spec, said):
    why = excess(kind, spec)
    assert why is not None
    assert why.reason == "InvalidSpec"
    assert said in why.message
    assert any(word in why.message for word in ("put large", "remove what", "move large"))
