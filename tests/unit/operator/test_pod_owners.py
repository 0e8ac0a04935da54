"""Pods belong to a cluster by their owners' UIDs; labels and names can be copied."""

import pytest

from tests.unit.operator.make import KEY, child, observed, pod, pool, statuses
from workergroups_operator.policy.pod_owners import mistaken_heads, mistaken_nodes, pods_by_owner, replica_sets_of

CLUSTER = {"kind": "RayCluster", "metadata": {"name": "actors", "uid": "cluster-1"}}
DEPLOYMENT = {"kind": "Deployment", "metadata": {"name": "actors-agent", "uid": "deployment-1"}}


def owner(kind, uid, name="actors", **more):
    return {"kind": kind, "name": name, "uid": uid, "controller": True} | more


def replica_set(uid, *owners):
    return {"kind": "ReplicaSet", "metadata": {"name": uid, "uid": uid, "ownerReferences": list(owners)}}


def made(component, *owners, node_type=None, name=None):
    body = pod(component, name)
    body["metadata"]["ownerReferences"] = list(owners)
    if component != "agent":
        body["metadata"]["labels"] |= {"ray.io/cluster": "actors", "ray.io/node-type": node_type or component}
    return body


KUBERAYS = owner("RayCluster", "cluster-1")
AGENTS = owner("ReplicaSet", "set-1", "set-1")
SETS = (
    replica_set("set-1", owner("Deployment", "deployment-1", "actors-agent")),
    replica_set("set-old", owner("Deployment", "deployment-0", "actors-agent")),
    replica_set("set-loose"),
)


def sort(body, cluster=CLUSTER, deployment=DEPLOYMENT):
    found = pods_by_owner("actors", [body], cluster, deployment, SETS)
    (where,) = [name for name in ("own", "previous", "foreign") if getattr(found, name)]
    return where


@pytest.mark.parametrize(
    ("body", "where"),
    [
        (made("head", KUBERAYS), "own"),
        (made("worker", KUBERAYS), "own"),
        (made("agent", AGENTS), "own"),
        # kubectl debug POD --copy-to=x --keep-labels
        (made("head"), "foreign"),
        (made("worker"), "foreign"),
        (made("agent"), "foreign"),
        (made("head", owner("RayCluster", "cluster-0")), "foreign"),
        (made("head", owner("RayCluster", "cluster-1", controller=False)), "foreign"),
        (made("head", {"kind": "RayCluster", "name": "actors", "uid": "cluster-1"}), "foreign"),
        # A worker's pod whose label was changed is not the head.
        (made("head", KUBERAYS, node_type="worker"), "foreign"),
        (made("worker", owner("ReplicaSet", "set-1", "set-1")), "foreign"),
        (made("agent", KUBERAYS), "foreign"),
        (made("agent", owner("ReplicaSet", "invented", "set-1")), "foreign"),
        (made("agent", owner("ReplicaSet", "set-1", "set-1", controller=False)), "foreign"),
        (made("agent", owner("ReplicaSet", "set-old", "set-old")), "foreign"),
        (made("agent", owner("ReplicaSet", "set-loose", "set-loose")), "foreign"),
    ],
)
def test_a_pod_is_the_clusters_if_the_chain_of_its_owners_uids_leads_there(body, where):
    assert sort(body) == where


@pytest.mark.parametrize(
    ("body", "where"),
    [
        (made("head", owner("RayCluster", "cluster-0")), "previous"),
        (made("worker", owner("RayCluster", "cluster-0")), "previous"),
        (made("worker", owner("RayCluster", "cluster-0", "another")), "foreign"),
        (made("worker", owner("RayCluster", "cluster-0", controller=False)), "foreign"),
        (made("head"), "foreign"),
    ],
)
def test_without_a_ray_cluster_pods_of_the_one_before_are_waited_for(body, where):
    assert sort(body, cluster=None) == where


def test_without_a_deployment_no_pod_is_the_agents():
    assert sort(made("agent", AGENTS), deployment=None) == "foreign"


def test_only_the_replica_sets_of_agents_are_read():
    pods = [made("head", KUBERAYS), made("worker", AGENTS), made("agent", AGENTS), made("agent", KUBERAYS)]
    assert replica_sets_of(pods) == {"set-1"}


def test_a_foreign_pod_changes_no_status():
    alone = observed(pools=(pool(),))
    copies = tuple(made(component, name=f"x-{component}") for component in ("head", "worker", "agent"))
    assert statuses(observed(pools=(pool(),), foreign_pods=copies)) == statuses(alone)


def test_kuberay_deletes_a_copy_of_a_node_and_not_one_of_the_nodes():
    copy, managed = made("worker", name="x"), made("worker", owner("ReplicaSet", "set-9"), name="y")
    group = copy["metadata"]["labels"]["ray.io/group"]
    assert mistaken_nodes(KEY.name, group, [copy, managed, made("head")]) == ["x"]
    assert mistaken_nodes(KEY.name, "another", [copy]) == []


def test_a_copy_that_kuberay_takes_for_the_head_is_named():
    copy = made("head", name="x")
    assert mistaken_heads(KEY.name, [copy]) == ["x"]
    seen = observed(pools=(pool(),), pods=(), foreign_pods=(copy,), children=child("RayCluster", "actors"))
    ready = statuses(seen).updates[0].ready
    assert ready.reason == "HeadStarting"
    assert "takes pod x for the head" in ready.message
