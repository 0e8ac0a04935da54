"""What `down` leaves."""

from tests.unit.client.fake_cluster import FakeCluster, group, pool
from workergroups_client.errors import ForbiddenError
from workergroups_client.objects.deletion import code_left
from workergroups_client.objects.names import GROUP, find_all


def test_the_configmaps_with_the_code_of_deleted_groups_are_named():
    code = {"kind": "ConfigMap", "metadata": {"name": "ppo-code", "namespace": "team"}}
    ppo = group("ppo", code={"configMap": {"name": "ppo-code"}})
    gone = group("sft", code={"configMap": {"name": "sft-code"}})
    cluster = FakeCluster(code, pool("ppo"), ppo, gone, group("eval"))
    groups = [target for name in ("ppo", "sft", "eval") for target in find_all(cluster, name)]
    assert code_left(cluster, groups) == ["ppo-code"]
    assert code_left(cluster, [target for target in groups if target.what != GROUP]) == []


def test_a_deletion_that_is_done_does_not_fail_for_who_may_not_read_configmaps():
    class Unreadable(FakeCluster):
        def get(self, kind, name):
            raise ForbiddenError("configmaps is forbidden")

    cluster = FakeCluster(group("ppo", code={"configMap": {"name": "ppo-code"}}))
    assert code_left(Unreadable(), find_all(cluster, "ppo")) == []
