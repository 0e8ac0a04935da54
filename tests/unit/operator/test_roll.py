"""When a pool's pods get its present spec: not before somebody asks for it, and then node by node."""

import copy
from dataclasses import replace
from typing import Any

import pytest

from tests.unit.operator.make import (
    NODE_GROUP,
    SESSION,
    SETTINGS,
    built,
    child,
    decided,
    group,
    metadata,
    observed,
    of_kind,
    pod,
    pool,
    reservation,
    status_of,
    statuses,
    wanted,
)
from workergroups_api.conditions import Explanation, find
from workergroups_api.launch import digest
from workergroups_api.names import (
    MADE_FROM_ANNOTATION,
    REPLACED_HEAD_ANNOTATION,
    RESTARTED_AT_ANNOTATION,
    ROLL_ANNOTATION,
    TEMPLATE_ANNOTATION,
    TOKEN_ANNOTATION,
)
from workergroups_api.report import PoolReport, pods_digest
from workergroups_api.resource_pool import ResourcePool
from workergroups_api.roll_names import asked_roll
from workergroups_operator.apply import changes
from workergroups_operator.desired import desired
from workergroups_operator.desired.token import FreshSecrets
from workergroups_operator.failures import Failures
from workergroups_operator.observed import Observed, Queueing
from workergroups_operator.policy.roll import automatic_roll, has_begun, has_live_ranks, is_stuck, roll_of
from workergroups_operator.settings import Settings
from workergroups_operator.templates import templates_of
from workergroups_operator.templates.stamp import as_applied, changed_fields, with_roll
from workergroups_operator.try_pods import not_kept, separated, trials_of

READY = {"conditions": [{"type": "Ready", "status": "True"}]}
RUNS = {"containerStatuses": [{"name": "ray-worker", "state": {"running": {}}, "restartCount": 0}]}
ASKED = "2026-01-01"


def of_pool(restarted: str | None = None, status: Any = None, **spec: Any) -> ResourcePool:
    annotations = {"annotations": {RESTARTED_AT_ANNOTATION: restarted}} if restarted else {}
    body = pool(status=reservation("p-0", "p-1") | (status or {}), **spec)
    return body.model_copy(update={"metadata": metadata("actors", **annotations)})


def node(name: str, template: Any = None, *, ready: bool = True, node_name: str | None = "n", **status: Any) -> Any:
    """A pod that was created from this template."""
    body = pod("worker", name, **(RUNS | (READY if ready else {}) | status))
    body["metadata"]["annotations"] = dict((template or {"metadata": {}})["metadata"].get("annotations") or {})
    return body | {"spec": body["spec"] | ({"nodeName": node_name} if node_name else {})}


def applied(cluster: Any) -> Any:
    """The RayCluster as a child, without a token that it must have been started with."""
    annotations = {key: value for key, value in cluster["metadata"]["annotations"].items() if key != TOKEN_ANNOTATION}
    changed = cluster["metadata"] | {"uid": "uid", "annotations": annotations}
    return child("RayCluster", "actors", metadata=changed, spec=copy.deepcopy(cluster["spec"]))


def running(first: ResourcePool, *later: ResourcePool) -> Observed:
    """The cluster that was created for a pool, whose spec has changed since."""
    cluster = of_kind("RayCluster", wanted(observed(pools=(first,), pods=())))
    template, live = cluster["spec"]["workerGroupSpecs"][0]["template"], applied(cluster)
    pods = (pod("head"), node("p-0", template), node("p-1", template))
    return observed(pools=later or (first,), pods=pods, children=live)


def up_to_date(seen: Observed) -> Any:
    return find(status_of(seen).after.conditions, "UpToDate")


def ray_cluster(seen: Observed) -> Any:
    return of_kind("RayCluster", wanted(seen))


def templates(seen: Observed) -> list[Any]:
    spec = ray_cluster(seen)["spec"]
    return [spec["headGroupSpec"]["template"], *(each["template"] for each in spec["workerGroupSpecs"])]


def rays_own(seen: Observed) -> list[Any]:
    """What head and nodes are in Ray, which the RayCluster has next to the templates."""
    spec = ray_cluster(seen)["spec"]
    return [(each["rayStartParams"], each.get("labels")) for each in (spec["headGroupSpec"], *spec["workerGroupSpecs"])]


def pods_of(template: Any) -> Any:
    """What the pods of a template are, without the note of where it comes from."""
    annotations = {**template["metadata"]["annotations"], MADE_FROM_ANNOTATION: ""}
    return {**template, "metadata": template["metadata"] | {"annotations": annotations}}


def node_group(seen: Observed) -> Any:
    return ray_cluster(seen)["spec"]["workerGroupSpecs"][0]


@pytest.mark.parametrize(
    ("asked", "last", "expected"),
    [
        (None, None, None),
        (None, digest("a"), None),
        ("a", None, digest("a")),
        ("a", digest("a"), None),
        ("b", digest("a"), digest("b")),
        ("a", f"{digest('a')}/template", None),
        ("a", "/template", digest("a")),
        ("", None, digest("")),
    ],
)
def test_which_restart_a_user_has_asked_for(asked, last, expected):
    annotations = {} if asked is None else {RESTARTED_AT_ANNOTATION: asked}
    assert asked_roll({"annotations": annotations}, last) == expected
    assert asked_roll({}, None) is None


def ranks(**status: Any) -> Any:
    report = {"session": SESSION, "incarnation": 2, "created": 2, "state": "Launched"} | status
    return group(status={"incarnation": 2, "session": SESSION, "ranks": report})


DEAD = [{"rank": 0, "reason": "ProcessDied", "message": "killed"}]


@pytest.mark.parametrize(
    ("group_", "is_live"),
    [
        (group(), False),
        (ranks(), True),
        (ranks(created=0), False),
        (ranks(failures=DEAD), False),
        (ranks(incarnation=1), False),
        (ranks(session="an older one"), False),
    ],
)
def test_which_groups_a_rolling_update_waits_for(group_, is_live):
    assert has_live_ranks(group_) is is_live
    rolling = pool(updateStrategy={"type": "RollingUpdate"})
    assert automatic_roll(rolling, "a", "t2", [group_]) == (None if is_live else "a/t2")
    assert automatic_roll(rolling, "a/t1", "t2", []) == "a/t2"
    assert automatic_roll(rolling, None, "t2", []) == "/t2"
    assert automatic_roll(pool(), "a", "t2", [group_]) is None


@pytest.mark.parametrize(
    ("containers", "expected"),
    [
        ([], False),
        ([{"state": {"waiting": {"reason": "ContainerCreating"}}, "restartCount": 0}], False),
        ([{"state": {"waiting": {"reason": "ImagePullBackOff"}}}], False),
        ([{"state": {"running": {}}}], True),
        ([{"state": {"terminated": {"exitCode": 1}}}], True),
        ([{"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "restartCount": 3}], True),
        ([{"state": {"waiting": {}}, "lastState": {"terminated": {}}}], True),
    ],
)
def test_which_pods_have_ever_run(containers, expected):
    assert has_begun({"status": {"containerStatuses": containers}}) is expected


def marked(name: str, roll: str | None, **more: Any) -> Any:
    notes = {TEMPLATE_ANNOTATION: "t"} | ({ROLL_ANNOTATION: roll} if roll else {})
    return node(name, {"metadata": {"annotations": notes}}, **more)


PENDING: Any = {"containerStatuses": [{"name": "c", "state": {"waiting": {"reason": "ImagePullBackOff"}}}]}


@pytest.mark.parametrize(
    ("pods", "heads", "last", "expected"),
    [
        ([marked("a", None), marked("b", "r1", **PENDING)], [], "r1", True),
        ([marked("a", None), marked("b", "r1")], [], "r1", False),
        ([marked("a", None), marked("b", "r1", **PENDING), marked("c", "r1")], [], "r1", False),
        ([marked("a", None)], [pod("head", **PENDING)], "r1", True),
        ([marked("a", None)], [pod("head", **RUNS)], "r1", False),
        ([marked("a", None)], [], "r1", False),
        ([marked("b", "r1", **PENDING)], [pod("head", **PENDING)], "r1", False),
        ([marked("a", None, **PENDING)], [pod("head", **PENDING)], None, False),
    ],
    ids=["node", "runs", "one runs", "head", "head runs", "not begun", "no restart goes on", "never restarted"],
)
def test_a_restart_is_stuck_if_nothing_that_it_created_has_ever_run(pods, heads, last, expected):
    assert is_stuck(pods, heads, last) is expected


def joined(*names: str, reserved: int | None = None) -> PoolReport:
    count = len(names) if reserved is None else reserved
    return PoolReport(joined_nodes=len(names), joined_pods=pods_digest(names), reserved_nodes=count)


OLD = (marked("a", None), marked("b", "r0"), marked("c", None))
ONE_NEW = (marked("b", "r0"), marked("c", None), marked("d", "r1"))
ALL = joined("b", "c", "d")
CRASHES = {"containerStatuses": [{"name": "ray-worker", "state": {"waiting": {}}, "restartCount": 1}]}
OTHER_RAY = (marked("b", None, ready=False, **CRASHES), marked("c", None), ONE_NEW[2])


@pytest.mark.parametrize(
    ("pods", "report", "following", "new"),
    [
        (OLD, joined("a", "b", "c"), ("a",), 0),
        # Its nodes need not serve before the first one is replaced: a restart may be the cure.
        (OLD, joined(), ("a",), 0),
        (OLD, None, (), 0),
        (OLD[:2], joined("a", "b"), (), 0),
        # The new node serves: all nodes are in Ray, and all bundles are reserved.
        (ONE_NEW, ALL, ("b",), 1),
        (ONE_NEW, None, (), 1),
        (ONE_NEW, joined("b", "c", "d", reserved=2), (), 1),
        # The agent has not noticed it.
        (ONE_NEW, joined("b", "c"), (), 1),
        (ONE_NEW, joined("a", "b", "c"), (), 1),
        ((*ONE_NEW[:2], marked("d", "r1", ready=False)), ALL, (), 1),
        # Old nodes that cannot join the new head, since it has another Ray, are no reason to wait.
        (OTHER_RAY, joined("d", reserved=0), ("b",), 1),
        (OTHER_RAY, joined(reserved=0), (), 1),
        # Pods without a Kubernetes node hold no devices, and so go at once.
        ((*OLD[:2], marked("c", None, node_name=None, ready=False)), joined(), ("c",), 0),
        # What stopped an earlier restart goes first.
        ((*OLD[:2], marked("c", "r0", ready=False, containerStatuses=[])), joined("a", "b"), ("c",), 0),
        # If nothing has ever run, there is nothing to keep.
        (tuple(marked(n, None, ready=False, containerStatuses=[]) for n in "abc"), None, ("a", "b", "c"), 0),
    ],
)
def test_which_node_is_replaced_next(pods, report, following, new):
    roll = roll_of(pool(nodes=3), pods, "r1", report)
    assert roll is not None
    assert (roll.next, len(roll.new)) == (following, new)


def test_a_roll_is_over_when_no_node_is_older():
    assert roll_of(pool(nodes=3), [marked(name, "r1") for name in "abc"], "r1", ALL) is None
    assert roll_of(pool(nodes=3), OLD, None, ALL) is None
    # A webhook that removes annotations would make it go on for ever.
    assert roll_of(pool(nodes=3), [node(name) for name in "abc"], "r1", ALL) is None


def leaving(name: str, roll: str | None, **more: Any) -> Any:
    found = marked(name, roll, **more)
    return found | {"metadata": found["metadata"] | {"deletionTimestamp": "2026-01-01T00:00:00Z"}}


@pytest.mark.parametrize(
    ("pods", "report", "is_over"),
    [
        # The last old node may still serve, whether or not the new one does.
        ((leaving("a", None),), joined("a"), False),
        ((leaving("a", None), marked("b", "r1")), joined("a"), False),
        ((leaving("a", None), marked("b", "r1")), joined("a", "b"), False),
        ((leaving("a", None), marked("b", "r1")), None, False),
        ((leaving("a", "r0"), marked("b", "r1")), joined("b"), True),
        # It has left Ray, and the new one does not run yet.
        ((leaving("a", None),), joined(), True),
        ((leaving("a", None), marked("b", "r1", phase="Pending", ready=False)), joined(), True),
        # Its machine is lost, so that its pod may stay for ever.
        ((leaving("a", None, ready=False), marked("b", "r1")), joined(), True),
        # Nodes that leave for another reason.
        ((leaving("a", "r1"), marked("b", "r1")), joined("a"), True),
    ],
)
def test_a_roll_goes_on_until_the_last_old_node_has_left_ray(pods, report, is_over):
    roll = roll_of(pool(nodes=1), pods, "r1", report)
    assert (roll is None) == is_over
    assert roll is None or roll.next == ()


def test_nothing_is_reserved_in_a_pool_without_reservation():
    roll = roll_of(pool(nodes=3, reservation="None"), ONE_NEW, "r1", joined("b", "c", "d", reserved=0))
    assert roll is not None
    assert roll.next == ("b",)


CHANGES: list[tuple[dict[str, Any], str, bool]] = [
    (
        {"image": "example.test/worker:2"},
        "image: runs example.test/worker:1, the spec says example.test/worker:2",
        True,
    ),
    ({"env": [{"name": "A", "value": "1"}]}, "env", True),
    ({"envFrom": [{"secretRef": {"name": "a"}}]}, "envFrom", True),
    ({"volumes": [{"mountPath": "/d", "emptyDir": {}}]}, "volumes", True),
    ({"volumes": [{"mountPath": "/d", "emptyDir": {}, "pods": "Nodes"}]}, "volumes", False),
    ({"resources": {"requests": {"cpu": 2}}}, "resources", False),
    ({"sharedMemory": "1Gi"}, "sharedMemory", True),
    ({"nodeSelector": {"a": "b"}}, "nodeSelector", True),
    ({"nodeSelector": {"a": "b"}, "head": {"nodeSelector": {}}}, "nodeSelector", False),
    ({"tolerations": [{"key": "a", "operator": "Exists"}]}, "tolerations", True),
    ({"priorityClassName": "high"}, "priorityClassName", True),
    ({"imagePullSecrets": [{"name": "a"}]}, "imagePullSecrets", True),
    ({"podTemplate": {"metadata": {"labels": {"a": "b"}}}}, "podTemplate", False),
    ({"head": {"resources": {"requests": {"cpu": 4}}}}, "head", True),
    ({"head": {"spareCpus": 2}}, "head", True),
    ({"ray": {"resources": {"teacher": 2}}}, "ray", False),
    ({"ray": {"labels": {"zone": "a"}}}, "ray", False),
]


@pytest.mark.parametrize(("spec", "fields", "in_head"), CHANGES)
def test_a_change_is_reported_by_field_and_restarts_nothing(spec, fields, in_head):
    before = running(of_pool())
    assert up_to_date(before).status == "True"
    seen = running(of_pool(), of_pool(**spec))
    said = up_to_date(seen)
    assert (said.status, said.reason) == ("False", "OldImage" if "image" in spec else "OldTemplate")
    assert said.message.startswith(f"{fields}: ")
    assert said.message.endswith("workergroups restart pool/actors -n team; to keep it, set the spec back")
    is_head_alone = "head" in spec and fields == "head"
    assert ("nodes are older than the spec, and so is the head, with which" in said.message) is (
        in_head and not is_head_alone
    )
    assert ("the nodes are as the spec says, but the head is older, with which" in said.message) is is_head_alone
    assert [pods_of(each) for each in templates(seen)] == [pods_of(each) for each in templates(before)]
    assert rays_own(seen) == rays_own(before)
    assert decided(seen).rolls == {}
    assert status_of(seen).ready.status == status_of(before).ready.status


@pytest.mark.parametrize("spec", [spec for spec, _, _ in CHANGES])
@pytest.mark.parametrize("pods", [(), (pod("head"),)])
def test_a_pool_of_which_no_pod_has_run_gets_a_change_at_once(spec, pods):
    seen = running(of_pool(), of_pool(**spec))
    fresh = ray_cluster(observed(pools=(of_pool(**spec),), pods=()))["spec"]
    idle = replace(seen, pods=pods)
    assert ray_cluster(idle)["spec"]["workerGroupSpecs"] == fresh["workerGroupSpecs"]
    if not pods:
        assert ray_cluster(idle)["spec"] == fresh


def test_a_pool_whose_pods_are_all_lost_gets_them_back_as_they_were():
    seen = running(of_pool())
    ran = status_of(seen).after.template
    assert ran == node_group(seen)["template"]["metadata"]["annotations"][TEMPLATE_ANNOTATION]
    changed = of_pool(image="example.test/worker:2", status={"template": ran})
    lost = replace(running(of_pool(), changed), pods=())
    assert ray_cluster(lost)["spec"] == ray_cluster(seen)["spec"]


def test_a_restart_begins_with_the_head_if_it_has_changed():
    seen = running(of_pool(), of_pool(ASKED, image="example.test/worker:2"))
    assert trials_of(seen, built(seen)).keys() == {"head", NODE_GROUP}
    cluster = ray_cluster(seen)
    assert cluster["metadata"]["annotations"][REPLACED_HEAD_ANNOTATION] == "uid-actors-head"
    assert cluster["metadata"]["annotations"]["workergroups.dev/head-image"] == "example.test/worker:2"
    assert "scaleStrategy" not in node_group(seen)
    after = replace(seen, children=applied(cluster))
    assert not built(after).replaces_head
    due = changes(after, decided(after), ())
    assert due.delete["metadata"] == {"name": "actors-head", "uid": "uid-actors-head", "namespace": "team"}
    other = pod("head", "actors-head-2")
    gone = replace(after, pods=(other, *after.pods[1:]))
    assert changes(gone, decided(gone), ()).delete is None
    assert up_to_date(gone).message.endswith(
        "2 of 2 nodes are older than the spec; a restart has begun to replace them"
    )


def with_critics(restarted: str | None, **spec: Any) -> Observed:
    """A cluster whose oldest pool has another image now and no pods, while the nodes of another pool run."""
    critics = pool("critics", clusterName="actors")
    cluster = ray_cluster(observed(pools=(of_pool(), critics), pods=()))
    template = cluster["spec"]["workerGroupSpecs"][1]["template"]
    theirs = node("c-0", template)
    theirs["metadata"]["labels"]["ray.io/group"] = cluster["spec"]["workerGroupSpecs"][1]["groupName"]
    oldest = of_pool(restarted, image="example.test/worker:2", **spec)
    return observed(pools=(oldest, critics), pods=(pod("head", **RUNS), theirs), children=applied(cluster))


def without_head(seen: Observed) -> Observed:
    return replace(seen, pods=seen.pods[1:])


def with_edited_head(seen: Observed) -> Observed:
    cluster = copy.deepcopy(seen.ray_cluster)
    cluster["spec"]["headGroupSpec"]["template"]["spec"]["hostNetwork"] = True
    return replace(seen, children=applied(cluster))


@pytest.mark.parametrize("change", [lambda seen: seen, without_head, with_edited_head])
@pytest.mark.parametrize("is_suspended", [False, True])
def test_a_restart_of_the_pool_that_shapes_the_head_replaces_an_old_head_though_none_of_its_pods_has_run(
    change, is_suspended
):
    seen = change(with_critics(ASKED, suspend=is_suspended))
    assert built(seen).replaces_head
    assert built(seen).roll(seen.pools[0]) == digest(ASKED)
    assert ray_cluster(seen)["spec"]["headGroupSpec"]["template"]["spec"]["containers"][0]["image"].endswith(":2")
    noted = of_pool(ASKED, image="example.test/worker:2", suspend=is_suspended, status={"roll": digest(ASKED)})
    after = replace(seen, pools=(noted, seen.pools[1]), children=applied(ray_cluster(seen)))
    assert not built(after).replaces_head
    assert up_to_date(after).status == "True"


def test_a_restart_counts_as_done_only_if_it_has_replaced_an_old_head():
    seen = with_critics(ASKED)
    oldest, head = seen.pools[0], seen.ray_cluster["spec"]["headGroupSpec"]["template"]
    blocked = templates_of(seen, SETTINGS, {NODE_GROUP})
    assert not blocked.replaces_head
    assert blocked.head == head
    assert blocked.roll(oldest) is None


NOT_WRITTEN = [Failures({}, frozenset({"RayCluster"})), Failures({"RayCluster": Explanation("ApplyFailed", "no")})]


def without_node_group(seen: Observed) -> Observed:
    cluster = copy.deepcopy(seen.ray_cluster)
    del cluster["spec"]["workerGroupSpecs"][0]
    return replace(seen, children=applied(cluster))


@pytest.mark.parametrize("failures", NOT_WRITTEN, ids=["under way", "refused"])
@pytest.mark.parametrize("change", [lambda seen: seen, without_node_group])
def test_a_restart_is_noted_in_the_status_once_the_ray_cluster_has_it(change, failures):
    seen = change(with_critics(ASKED))
    assert statuses(seen).updates[0].after.roll == digest(ASKED)
    said = statuses(seen, failures).updates[0].after
    assert said.roll is None
    # A reconcile that reads the RayCluster as it was before the write decides the same again.
    again = seen.pools[0].model_copy(update={"status": said})
    assert built(replace(seen, pools=(again, seen.pools[1]))).replaces_head


def test_pods_of_a_new_pool_are_created_although_its_new_head_is_refused():
    seen = with_critics(ASKED)
    tried = {"head": Explanation("PodsRefused", "no account")}
    refused, blocked = separated(tried, seen, built(seen))
    assert (refused, list(blocked)) == ({}, [NODE_GROUP])
    assert not_kept(blocked, tried, templates_of(seen, SETTINGS, blocked.keys())) == {}


def test_a_restart_replaces_the_nodes_only_if_the_head_has_not_changed():
    seen = running(of_pool(), of_pool(ASKED))
    assert REPLACED_HEAD_ANNOTATION not in ray_cluster(seen)["metadata"]["annotations"]
    assert node_group(seen)["scaleStrategy"] == {"workersToDelete": ["p-0"]}
    assert node_group(seen)["template"]["metadata"]["annotations"][ROLL_ANNOTATION] == digest(ASKED)
    ready = status_of(seen).ready
    assert (ready.status, ready.reason) == ("False", "Rolling")
    assert "0 of 2 new pods created" in ready.message
    assert status_of(seen).after.roll == digest(ASKED)


def test_groups_have_no_ranks_until_the_last_node_is_replaced():
    launched = group(status={"incarnation": 3, "session": SESSION, "revision": "r"})
    seen = running(of_pool(), of_pool(ASKED))
    with_group = replace(seen, groups=(launched,), launch_revisions={"trainer": "w"})
    decisions = decided(with_group)
    assert decisions.groups.incarnations["trainer"].number == 4
    plan = of_kind("ConfigMap", wanted(with_group))
    assert '"launchRevision"' not in plan["data"]["plan.json"]
    created = find(statuses(with_group).updates[-1].after.conditions, "RanksCreated")
    assert created.message == "0 of 4 ranks created: waiting until the nodes of pool actors are restarted"
    # When it is over, the number stays.
    template = node_group(seen)["template"]
    over = replace(
        with_group,
        groups=(group(status=statuses(with_group).updates[-1].after.to_json()),),
        children=applied(ray_cluster(seen)),
        pods=(pod("head"), node("p-2", template), node("p-3", template)),
    )
    assert decided(over).rolls == {}
    assert decided(over).groups.incarnations["trainer"].number == 4


def test_a_restart_that_admission_refuses_changes_nothing():
    seen = running(of_pool(), of_pool(ASKED, env=[{"name": "A", "value": "1"}]))
    templates = built(seen)
    why = Explanation("PodsRefused", "no account")
    for name in (NODE_GROUP, "head"):
        refused, blocked = separated({name: why, "other": why}, seen, templates)
        assert (refused, list(blocked)) == ({"other": why}, [NODE_GROUP])


@pytest.mark.parametrize(("spec", "is_blocked"), [({}, False), ({"resources": {"requests": {"cpu": 9}}}, True)])
def test_a_full_quota_blocks_only_a_restart_that_needs_more(spec, is_blocked):
    seen = running(of_pool(), of_pool(ASKED, **spec))
    full = Explanation("PodsRefused", "pods is forbidden: exceeded quota: q")
    refused, blocked = separated({NODE_GROUP: full}, seen, built(seen))
    assert (refused, bool(blocked)) == ({}, is_blocked)


@pytest.mark.parametrize("is_alone", [True, False])
def test_a_pool_that_is_alone_gets_the_operators_images_at_a_restart(is_alone):
    first, others = of_pool(), () if is_alone else (pool("critics", clusterName="actors"),)
    new = observed(pools=(first,), pods=())
    earlier = Settings(worker_image="example.test/worker:0", operator_image="example.test/operator:0")
    made = desired(new, templates_of(new, earlier), decided(new), earlier.network, fresh=FreshSecrets("t", "ab"))
    cluster = of_kind("RayCluster", made)
    template = cluster["spec"]["workerGroupSpecs"][0]["template"]
    parts = {"pods": (pod("head"), node("p-0", template), node("p-1", template)), "children": applied(cluster)}
    before = observed(pools=(first, *others), **parts)
    said = find(statuses(before).updates[0].after.conditions, "UpToDate")
    assert said.reason == "OldImage"
    assert ("workergroups restart pool/actors" if is_alone else "delete RayCluster actors") in said.message
    after = observed(pools=(of_pool(ASKED), *others), **parts)
    noted = ray_cluster(after)["metadata"]["annotations"]
    images = {noted[f"workergroups.dev/{name}-image"] for name in ("head", "default", "library")}
    version = 1 if is_alone else 0
    assert images == {f"example.test/worker:{version}", f"example.test/operator:{version}"}
    assert built(after).replaces_head is is_alone


def test_a_head_that_never_ran_makes_room_for_one_of_the_present_template():
    pending = pod("head", phase="Pending")
    old = ray_cluster(observed(pools=(of_pool(),), pods=()))["spec"]["headGroupSpec"]["template"]
    pending["metadata"]["annotations"] = dict(old["metadata"]["annotations"])
    seen = running(of_pool(image="example.test/worker:2"))
    stuck = replace(seen, pods=(pending,))
    assert changes(stuck, decided(stuck), ()).delete["metadata"]["name"] == "actors-head"


def test_a_cluster_of_an_earlier_version_goes_on_as_it_is():
    """Neither its head nor its templates have the notes of this version."""
    seen = running(of_pool())
    spec = seen.ray_cluster["spec"]
    for template in (spec["headGroupSpec"]["template"], spec["workerGroupSpecs"][0]["template"]):
        del template["metadata"]["annotations"][MADE_FROM_ANNOTATION]
    del spec["headGroupSpec"]["template"]["metadata"]["annotations"][TEMPLATE_ANNOTATION]
    assert up_to_date(seen).status == "True"
    assert changes(seen, decided(seen), ()).delete is None
    assert decided(seen).rolls == {}
    cluster = ray_cluster(seen)
    assert REPLACED_HEAD_ANNOTATION not in cluster["metadata"]["annotations"]
    assert cluster == ray_cluster(running(of_pool()))


def test_a_template_that_somebody_changed_is_not_kept():
    template = node_group(running(of_pool()))["template"]
    assert as_applied(template) == template
    assert as_applied(with_roll(template, "r")) is not None
    assert as_applied(None) is None
    assert as_applied({"metadata": {"annotations": [1]}, "spec": 3}) is None
    assert as_applied({**template, "spec": {**template["spec"], "hostNetwork": True}}) is None
    head = ray_cluster(running(of_pool()))["spec"]["headGroupSpec"]["template"]
    (container, *others) = head["spec"]["containers"]
    ports = [{**port, "protocol": "TCP"} for port in container["ports"]]
    stored = {**head, "spec": {**head["spec"], "containers": [{**container, "ports": ports}, *others]}}
    assert as_applied(stored) == head


def test_fields_are_unknown_if_another_pool_or_an_earlier_version_made_the_template():
    mine = node_group(running(of_pool()))["template"]
    assert changed_fields(mine, mine) == []
    assert changed_fields({"metadata": {"annotations": {MADE_FROM_ANNOTATION: "{"}}}, mine) is None
    assert changed_fields({"metadata": {}}, mine) is None


@pytest.mark.parametrize(
    ("spec", "begins"),
    [({}, False), ({"env": [{"name": "A"}]}, True), ({"head": {"resources": {"requests": {"cpu": 2}}}}, True)],
)
def test_a_rolling_update_begins_after_a_change_of_nodes_or_head(spec, begins):
    rolling = {"updateStrategy": {"type": "RollingUpdate"}}
    seen = running(of_pool(**rolling), of_pool(**rolling, **spec))
    assert bool(built(seen).beginning) is begins
    assert built(seen).replaces_head is begins
    # The same change does not begin another one.
    cluster = ray_cluster(seen)
    after = replace(seen, children=applied(cluster))
    assert not built(after).beginning
    assert bool(decided(after).rolls) is begins


def test_a_restart_asks_the_api_server_even_if_nothing_has_changed():
    seen = running(of_pool(), of_pool(ASKED))
    assert trials_of(seen, built(seen)).keys() == {NODE_GROUP}


def test_a_restart_to_a_template_that_is_too_large_says_so():
    large = {"metadata": {"annotations": {"note": "x" * 70_000}}}
    seen = running(of_pool(), of_pool(ASKED, podTemplate=large))
    said = up_to_date(seen)
    assert said.reason == "PodsRefused"
    assert "no pod is replaced before this has ended: spec.podTemplate has" in said.message
    assert decided(seen).refused_pods == {}


CHANGED = {"image": "example.test/worker:2"}


def resting(restarted: str | None = None, **spec: Any) -> ResourcePool:
    """A changed pool of which pods of the first template have run."""
    ran = status_of(running(of_pool())).after.template
    return of_pool(restarted, status={"template": ran}, **CHANGED, **spec)


def held(seen: Observed, *, suspend: bool = False) -> Observed:
    """The same cluster in a queue, which has admitted it if it is not suspended, with what a queue adds to pods."""
    ((key, cluster),) = seen.children.items()
    spec = copy.deepcopy(cluster["spec"]) | {"suspend": suspend}
    for group_ in (spec["headGroupSpec"], *spec["workerGroupSpecs"]):
        group_["template"]["spec"]["nodeSelector"] = {"flavor": "a100"}
    about = cluster["metadata"] | {"resourceVersion": "7"}
    workload = {"metadata": {"name": "w"}, "spec": {"queueName": "q"}, "status": {}}
    return replace(seen, children={key: cluster | {"spec": spec, "metadata": about}}, queueing=Queueing(workload))


def asked_image(template: Any) -> str:
    return str(template["spec"]["containers"][0]["image"])


@pytest.mark.parametrize("restarted", [None, ASKED])
def test_a_suspended_pool_has_only_the_head_to_restart_and_starts_again_with_its_present_spec(restarted):
    other = pool("critics", 1, 1, clusterName="actors")
    seen = running(of_pool(), resting(restarted, suspend=True), other)
    assert decided(seen).rolls == {}
    assert built(seen).replaces_head is (restarted is not None)
    assert [each["replicas"] for each in ray_cluster(seen)["spec"]["workerGroupSpecs"]] == [1, 0]
    said = statuses(seen).updates[0].after
    assert said.template is None
    assert find(said.conditions, "UpToDate").status == "True"
    assert said.roll == (digest(restarted) if restarted else None)
    again = resting(restarted).model_copy(update={"status": said})
    live = applied(ray_cluster(seen))
    resumed = observed(pools=(again, other), pods=(pod("head"),), children=live)
    assert asked_image(templates(resumed)[1]) == "example.test/worker:2"
    assert (decided(resumed).rolls, built(resumed).beginning) == ({}, frozenset())


def test_a_restart_waits_while_a_queue_runs_the_cluster_as_it_was_admitted():
    seen = held(running(of_pool(), of_pool(ASKED)))
    assert (decided(seen).rolls, built(seen).beginning, decided(seen).old_head) == ({}, frozenset(), None)
    assert [each for each in wanted(seen) if each["kind"] == "RayCluster"] == []
    said = status_of(seen).after
    assert said.roll is None
    found = find(said.conditions, "UpToDate")
    assert (found.reason, found.message.split(",")[0]) == ("ChangesWait", "the restart is pending")


@pytest.mark.parametrize("restarted", [None, ASKED])
@pytest.mark.parametrize("spec", [CHANGED, {"head": {"priorityClassName": "first"}}])
def test_a_change_waits_while_a_queue_runs_the_cluster_as_it_was_admitted(restarted, spec):
    rolling = {"updateStrategy": {"type": "RollingUpdate"}}
    seen = held(running(of_pool(**rolling), of_pool(restarted, **rolling, **spec)))
    assert (decided(seen).rolls, built(seen).beginning) == ({}, frozenset())
    assert up_to_date(seen).message.startswith("the change of the pods' template waits, since the queue runs")


def test_a_restart_that_was_written_too_late_for_the_admission_takes_no_ranks():
    before = running(of_pool())
    noted = of_pool(ASKED, status={"roll": digest(ASKED)})
    seen = replace(held(before), pools=(noted,), groups=(group(),), launch_revisions={"trainer": "w"})
    assert decided(seen).rolls == {}
    assert find(statuses(seen).updates[0].after.conditions, "UpToDate").reason == "ChangesWait"


def test_a_cluster_that_its_queue_has_suspended_starts_again_with_the_present_spec():
    seen = held(running(of_pool(), resting(ASKED)), suspend=True)
    assert decided(seen).rolls == {}
    assert status_of(seen).after.template is None
    assert [asked_image(each) for each in templates(seen)] == ["example.test/worker:2"] * 2
    assert node_group(seen)["template"]["metadata"]["annotations"][ROLL_ANNOTATION] == digest(ASKED)


@pytest.mark.parametrize("restarted", [None, ASKED])
def test_a_pool_that_is_being_restarted_gives_back_no_nodes_at_its_deadline(restarted):
    late = {"observedGeneration": 1, "deadline": "2020-01-01T00:00:00Z"}
    seen = running(of_pool(), of_pool(restarted, status=late, onDeadline="Release"))
    lacking = replace(seen, pods=seen.pods[:2])
    assert (decided(lacking).releases == {}) is bool(restarted)


def test_a_pool_that_shrinks_while_it_is_restarted_names_both_kinds_of_pods():
    seen = running(of_pool(nodes=3), of_pool(ASKED, nodes=2, status={"nodes": 3}))
    template = seen.live_node_group(NODE_GROUP)["template"]
    leaving = node("p-2", template, ready=False, node_name=None)
    leaving["status"] = {"phase": "Pending"}
    shrinking = replace(seen, pods=(*seen.pods, leaving))
    wanted_group = node_group(shrinking)
    assert wanted_group["replicas"] == 2
    assert wanted_group["scaleStrategy"] == {"workersToDelete": ["p-2"]}
    replaced = node("p-3", templates(shrinking)[1])
    later = replace(seen, pods=(*seen.pods[:2], replaced, leaving))
    assert decided(later).rolls[NODE_GROUP].new == (replaced,)


def test_a_group_that_is_suspended_itself_is_not_held_back_by_a_restart():
    seen = running(of_pool(), of_pool(ASKED))
    with_group = replace(seen, groups=(group(suspend=True),), launch_revisions={"trainer": "w"})
    assert decided(with_group).rolls
    plan = of_kind("ConfigMap", wanted(with_group))
    assert '"launchRevision": "w"' in plan["data"]["plan.json"]
    assert find(statuses(with_group).updates[-1].after.conditions, "Ready").reason == "Suspended"


def test_the_end_of_ranks_for_a_restart_is_no_failure_that_counts():
    policy = {"maxRestarts": 1}
    lost = {"rank": 0, "reason": "NodeLost", "message": ""}
    ended = {"session": SESSION, "incarnation": 3, "created": 3, "failures": [lost]}
    launched = {"incarnation": 3, "session": SESSION, "revision": "r", "ranks": ended}
    seen = running(of_pool(), of_pool(ASKED))
    seen = replace(seen, groups=(group(status=launched, failurePolicy=policy),), launch_revisions={"trainer": "w"})
    then = decided(seen).groups.incarnations["trainer"]
    assert (then.number, then.restarts.count) == (4, 0)
