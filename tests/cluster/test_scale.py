"""`kubectl scale resourcepool` on real pods, each with one of the NVIDIA node's devices."""

from tests.cluster.drivers import drive, look
from tests.cluster.kubectl import group, pool


def scale(namespace, nodes):
    namespace.run("scale", "resourcepool", "actors", f"--replicas={nodes}")


def until_size(namespace, nodes, seconds=120):
    """Wait until the pool has that many nodes, all of them ready, and no other pods."""

    def sizes():
        status = namespace.get("resourcepool", "actors")["status"]
        pods = namespace.get("pods", selector=status.get("selector", "none=none"))
        return status.get("nodes"), status.get("readyNodes"), len(pods)

    namespace.until(sizes, lambda seen: seen == (nodes, nodes, nodes), seconds)
    namespace.until_ready("resourcepool", "actors")


def test_a_pool_grows_and_shrinks_around_ranks_that_run(namespace, clean):
    last = [{"name": "actors", "bundles": {"start": 1, "count": 1}}]
    namespace.apply(pool(nodes=2, processes=1), group("fixed", last), group("whole", ["actors"], resize="Follow"))
    for name in ("fixed", "whole"):
        namespace.until_ready("workergroup", name)
    ((before,), _) = look(namespace, "actors", "fixed", "whole")
    drive(namespace, "actors", "group = workergroups.attach('fixed')", "group.execute_all_sync('add', x=[5])")

    scale(namespace, 3)
    until_size(namespace, 3)
    three = namespace.until(
        lambda: namespace.get("workergroup", "whole")["status"], lambda s: s.get("readyRanks") == 3, 60
    )
    assert three["incarnation"] == 2
    ((after,), ranks) = look(namespace, "actors", "fixed", "whole")
    assert after == before | {"value": 5}
    assert len({rank["pod"] for rank in ranks}) == 3

    scale(namespace, 1)
    said = namespace.until(
        lambda: namespace.condition("resourcepool", "actors", "UpToDate"), lambda c: c.get("reason") == "Shrinking", 30
    )
    assert "fixed (nodes 1)" in said["message"]
    until_size(namespace, 2)
    added = drive(namespace, "actors", "group = workergroups.attach('fixed')", "group.execute_all_sync('add', x=[1])")
    assert added == [6]
    assert namespace.get("resourcepool", "actors")["status"]["victims"] == [{"group": "fixed", "nodes": "1"}]

    namespace.run("delete", "workergroup", "fixed")
    until_size(namespace, 1)
    namespace.until(lambda: namespace.get("workergroup", "whole")["status"], lambda s: s.get("readyRanks") == 1, 60)
    assert "victims" not in namespace.get("resourcepool", "actors")["status"]
