"""A pool's present spec reaches its pods when somebody restarts the pool, and not before: on the same devices."""

import os

import pytest

from tests.cluster.drivers import look
from tests.cluster.kubectl import group, pool
from workergroups.client import Cluster, Pool
from workergroups_client.errors import ClientError

OLDEST = os.environ["OLDEST_RAY_IMAGE"]


def change(namespace, patch):
    namespace.run("patch", "resourcepool", "kept", "--type=merge", "--patch", patch)


def test_a_restart_gives_environment_and_image_to_the_same_devices(namespace, clean):
    namespace.apply(pool("kept", processes=4), group("kept"))
    namespace.until_ready("workergroup", "kept")
    (before,) = look(namespace, "kept", "kept")
    head = namespace.head("kept")
    change(namespace, '{"spec": {"env": [{"name": "FLAVOUR", "value": "mint"}]}}')
    said = namespace.until(
        lambda: namespace.condition("resourcepool", "kept", "UpToDate"), lambda seen: seen["status"] == "False", 10
    )
    assert said["message"].startswith("env: 1 of 1 nodes are older than the spec, and so is the head")
    assert look(namespace, "kept", "kept") == [before]
    restarted(namespace, incarnation=2)
    (after,) = look(namespace, "kept", "kept")
    assert [rank["FLAVOUR"] for rank in after] == ["mint"] * 4
    devices = [[rank["CUDA_VISIBLE_DEVICES"] for rank in ranks] for ranks in (before, after)]
    assert devices[0] == devices[1]
    assert namespace.head("kept") != head

    # An image that does not exist ends nothing.
    change(namespace, '{"spec": {"image": "localhost/no-such-image:1"}}')
    with pytest.raises(ClientError, match="ImagePullFailed: no pod is replaced before this has ended: cannot pull"):
        Pool("kept", Cluster(namespace.name)).restart()
    assert look(namespace, "kept", "kept") == [after]

    # Another Ray: old nodes cannot join the new head, and are replaced nevertheless.
    change(namespace, f'{{"spec": {{"image": "{OLDEST}"}}}}')
    restarted(namespace, incarnation=3)
    assert namespace.get("resourcepool", "kept")["status"]["rayVersion"] == "2.52.0"
    assert [rank["FLAVOUR"] for rank in look(namespace, "kept", "kept")[0]] == ["mint"] * 4


def restarted(namespace, incarnation):
    """Restart the pool, and wait until its group has ranks again."""
    Pool("kept", Cluster(namespace.name)).restart()
    namespace.until(
        lambda: namespace.condition("resourcepool", "kept", "UpToDate"), lambda seen: seen["status"] == "True", 240
    )
    namespace.until_ready("workergroup", "kept", 120)
    assert namespace.get("workergroup", "kept")["status"]["incarnation"] >= incarnation
