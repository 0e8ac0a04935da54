"""Where Ray's head runs, and why it does not."""

import pytest

from tests.unit.client.fake_cluster import FakeCluster, condition, head, labels, pool
from workergroups_client.errors import NotRunningError
from workergroups_client.ray_cluster.heads import head_pod

MESSAGE = "spec.suspend is true; to start it: workergroups resume ppo"
SUSPENDED = pool(
    "ppo", status={"observedGeneration": 2, "conditions": [condition("Ready", "False", "Suspended", MESSAGE)]}
)
WAITS = "namespace team: workergroups status says what its pool waits for"
READY = pool("ppo", status={"observedGeneration": 2, "conditions": [condition("Ready", "True")]})


def test_a_head_that_runs_is_found():
    assert head_pod(FakeCluster(head(), READY), "ppo") == "ppo-head"


@pytest.mark.parametrize(
    ("objects", "said"),
    [
        ([SUSPENDED], f"is not running in namespace team: pool ppo: Suspended: {MESSAGE}"),
        ([SUSPENDED, pool("eval", clusterName="ppo")], "; pool eval: the operator has not seen it yet"),
        ([READY, head(labels=labels("head", "other"))], WAITS),
        ([READY, head(labels=labels("worker"))], WAITS),
        ([READY, pool("other")], WAITS),
        ([], WAITS),
    ],
)
def test_without_a_head_its_pools_say_why(objects, said):
    with pytest.raises(NotRunningError) as told:
        head_pod(FakeCluster(*objects), "ppo")
    assert str(told.value).startswith("the head of Ray cluster ppo is not running")
    assert str(told.value).endswith(said)
