"""Which labels and annotations of a pool its RayCluster gets."""

import pytest

from tests.unit.operator.make import metadata, observed, of_kind, pool, wanted
from workergroups_operator.policy.passed_on import ignored, is_passed_on

QUEUE = "kueue.x-k8s.io/queue-name"


@pytest.mark.parametrize(
    ("key", "is_it"),
    [
        (QUEUE, True),
        ("kueue.x-k8s.io/priority-class", True),
        ("kueue.x-k8s.io/max-exec-time-seconds", True),
        ("provreq.kueue.x-k8s.io/ValidUntilSeconds", True),
        ("scheduling.x-k8s.io/pod-group", True),
        ("volcano.sh/queue-name", True),
        ("scheduling.volcano.sh/queue-name", True),
        ("yunikorn.apache.org/queue", True),
        ("kai.scheduler/queue", True),
        ("ray.io/gang-scheduling-enabled", True),
        ("ray.io/priority-class-name", True),
        # Elastic jobs are not supported.
        ("kueue.x-k8s.io/elastic-job", False),
        # KubeRay's own, which change what the pods run or to whom they belong.
        ("ray.io/cluster", False),
        ("ray.io/overwrite-container-cmd", False),
        ("ray.io/ft-enabled", False),
        # Those by which tools know what they applied, and prune the rest.
        ("app.kubernetes.io/instance", False),
        ("argocd.argoproj.io/tracking-id", False),
        ("argocd.argoproj.io/sync-wave", False),
        ("applyset.kubernetes.io/part-of", False),
        ("kustomize.toolkit.fluxcd.io/name", False),
        ("meta.helm.sh/release-name", False),
        ("kubectl.kubernetes.io/last-applied-configuration", False),
        ("workergroups.dev/cluster", False),
        # No domains of queues, though they end or begin like them.
        ("notkueue.x-k8s.io/queue-name", False),
        ("kueue.x-k8s.io.example.com/queue-name", False),
        ("queue-name", False),
        ("", False),
    ],
)
def test_what_queues_and_schedulers_read_is_passed_on(key, is_it):
    assert is_passed_on(key) is is_it


def named(name, labels=None, annotations=None, **spec):
    found = pool(name, **spec)
    return found.model_copy(update={"metadata": metadata(name, labels=labels or {}, annotations=annotations or {})})


def ray_cluster(*pools):
    return of_kind("RayCluster", wanted(observed(pools=pools)))


def test_a_raycluster_has_the_labels_of_its_oldest_pool():
    oldest = named("actors", {QUEUE: "a", "team": "rl"}, {"scheduling.volcano.sh/group-min-member": "3", "note": "x"})
    made = ray_cluster(oldest, named("critics", {QUEUE: "b"}, clusterName="actors"))["metadata"]
    assert made["labels"] == {QUEUE: "a", "workergroups.dev/cluster": "actors"}
    assert made["annotations"]["scheduling.volcano.sh/group-min-member"] == "3"
    assert "note" not in made["annotations"]


def test_labels_of_a_pool_cannot_replace_the_operators_own():
    made = ray_cluster(named("actors", {"workergroups.dev/cluster": "other"}, {"workergroups.dev/token": "forged"}))
    assert made["metadata"]["labels"]["workergroups.dev/cluster"] == "actors"
    assert made["metadata"]["annotations"]["workergroups.dev/token"] != "forged"


@pytest.mark.parametrize(
    ("labels", "what"),
    [({}, None), ({QUEUE: "a"}, None), ({QUEUE: "b"}, f"{QUEUE}=b"), ({"volcano.sh/x": "y"}, "volcano.sh/x=y")],
)
def test_a_younger_pools_other_labels_are_ignored_and_named(labels, what):
    assert ignored(named("critics", labels), named("actors", {QUEUE: "a"})) == what
