"""What `down` deletes, and what it leaves."""

from tests.unit.client.fake_cluster import FakeCluster, group, pool
from workergroups_client.errors import ConflictError, ForbiddenError
from workergroups_client.objects.deletion import code_left, delete
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


def test_one_that_was_recreated_meanwhile_keeps_no_other_from_being_deleted():
    class Recreated(FakeCluster):
        deleted = ()

        def delete(self, kind, manifest):
            if manifest["metadata"]["name"] == "again":
                raise ConflictError("the UID in the precondition is another")
            self.deleted += (manifest["metadata"]["name"],)
            self.objects = tuple(each for each in self.objects if each is not manifest)

    cluster = Recreated(group("again"), group("ppo"))
    targets = [target for name in ("again", "ppo") for target in find_all(cluster, name)]
    cluster.objects = tuple(each for each in cluster.objects if each["metadata"]["name"] == "ppo")
    delete(cluster, targets, lambda _: None)
    assert cluster.deleted == ("ppo",)
