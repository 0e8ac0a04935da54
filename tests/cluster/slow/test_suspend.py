"""Pools that give back their devices: suspended by hand, or since they wait for each other."""

from tests.cluster.kubectl import group, pool


def suspend(namespace, kind, name, value):
    namespace.run("patch", kind, name, "--type=merge", "--patch", f'{{"spec": {{"suspend": {value}}}}}')


def suspended(namespace, kind, name, reason, seconds=90):
    return namespace.until(
        lambda: namespace.condition(kind, name, "Suspended"),
        lambda seen: (seen.get("status"), seen.get("reason")) == ("True", reason),
        seconds,
    )


def test_a_group_is_suspended_and_its_pool_gives_back_its_devices_to_another_one(namespace, clean):
    namespace.apply(pool("first", processes=4), group("first"))
    namespace.until_ready("workergroup", "first")
    suspend(namespace, "workergroup", "first", "true")
    suspended(namespace, "workergroup", "first", "Suspended", 30)
    assert namespace.ready("resourcepool", "first")["status"] == "True"
    suspend(namespace, "workergroup", "first", "false")
    namespace.until_ready("workergroup", "first", 60)
    assert namespace.get("workergroup", "first")["status"]["incarnation"] == 2

    # The second pool needs the devices of the first.
    namespace.apply(pool("second", processes=4, onDeadline="Release", progressDeadlineSeconds=20), group("second"))
    suspended(namespace, "resourcepool", "second", "Released")
    assert namespace.get("pods", selector="workergroups.dev/cluster=second") == []
    suspend(namespace, "resourcepool", "first", "true")
    suspended(namespace, "resourcepool", "first", "Suspended")
    assert namespace.get("pods", selector="workergroups.dev/cluster=first") == []
    namespace.until_ready("workergroup", "second")

    suspend(namespace, "resourcepool", "second", "true")
    suspend(namespace, "resourcepool", "first", "false")
    namespace.until_ready("workergroup", "first")
    assert namespace.get("workergroup", "first")["status"]["incarnation"] == 3
