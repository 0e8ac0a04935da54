"""What a start's objects and logs are taken to say; the start itself is `make bench-start`."""

import json

import pytest

from bench.start.__main__ import comparison, timeline
from bench.start.facts import container_moments, facts, log_moments
from bench.start.rounds import ANSWERS, READY, Round, with_kuberays_probes

STARTED, ENDED = "2026-01-01T00:00:01Z", "2026-01-01T00:00:03Z"
POD = {
    "metadata": {"labels": {"workergroups.dev/component": "worker", "ray.io/node-type": "worker"}},
    "status": {
        "initContainerStatuses": [
            {"name": "check-image", "state": {"terminated": {"startedAt": STARTED, "finishedAt": ENDED}}}
        ],
        "containerStatuses": [
            {"name": "ray-worker", "state": {"running": {"startedAt": ENDED}}},
            {"name": "sidecar", "state": {"waiting": {"reason": "PodInitializing"}}},
        ],
    },
}
BEGIN = 1767225600.0


@pytest.mark.parametrize(
    ("kind", "status", "found"),
    [
        ("RayCluster", {}, []),
        ("RayCluster", {"state": "ready"}, [READY]),
        ("WorkerGroup", {"conditions": [{"type": "Ready", "status": "False"}]}, []),
        ("WorkerGroup", {"conditions": [{"type": "Ready", "status": "True"}]}, [ANSWERS]),
    ],
)
def test_an_object_tells_what_is_true_of_it(kind, status, found):
    assert list(facts({"kind": kind, "status": status})) == [f"{kind} is created", *found]


def test_a_pod_tells_when_its_containers_started_and_ended():
    assert list(container_moments(POD)) == [
        ("worker: container check-image starts", BEGIN + 1),
        ("worker: container check-image ends", BEGIN + 3),
        ("worker: container ray-worker starts", BEGIN + 3),
    ]


def test_a_log_tells_when_something_was_printed():
    log = "2026-01-01T00:00:02.500000001Z INFO creating placement group x\n\nnoise\n"
    assert list(log_moments("ray-head", log)) == [("the executor creates the placement group", BEGIN + 2.5)]


def test_the_same_pods_get_kuberays_probes_and_a_token_of_their_own():
    env = [{"name": "BASH_ENV", "value": "ours"}, {"name": "A", "value": "b"}]
    container = {"name": "ray-worker", "readinessProbe": {}, "livenessProbe": {}, "image": "x", "env": env}
    group = {"template": {"spec": {"containers": [container, {"name": "sidecar"}]}}}
    spec = {"authOptions": {"mode": "token", "secretName": "s"}, "headGroupSpec": group, "workerGroupSpecs": [group]}
    before = json.dumps(spec)
    bare = with_kuberays_probes(spec)
    assert bare["headGroupSpec"]["template"]["spec"]["containers"] == [
        {"name": "ray-worker", "image": "x", "env": env[1:]},
        {"name": "sidecar"},
    ]
    assert bare["authOptions"] == {"mode": "token"}
    assert json.dumps(spec) == before


def test_rounds_are_compared_pair_by_pair_and_by_their_medians():
    lines = comparison([Round({ANSWERS: 12.0}), Round({ANSWERS: 14.0})], [Round({READY: 20.0}), Round({READY: 20.0})])
    assert lines.splitlines()[2:] == [
        "| 1 | 12.0 s | 20.0 s | 0.60x |",
        "| 2 | 14.0 s | 20.0 s | 0.70x |",
        "| median | 13.0 s | 20.0 s | 0.65x of at most 0.8x |",
    ]


def test_the_timeline_has_what_every_round_told_in_order():
    rounds = [Round({"late": 3.0, "early": 1.0, "once": 2.0}), Round({"late": 5.0, "early": 1.0})]
    assert timeline(rounds).splitlines()[2:] == ["| 1.0 | 1.0 | early |", "| 4.0 | 3.0 | late |"]
