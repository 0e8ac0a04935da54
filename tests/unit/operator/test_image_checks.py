"""A restart with new images: a pod pulls them first, and nothing that runs ends before it has."""

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.operator.make import NODE_GROUP, built, decided, observed, pool
from tests.unit.operator.test_roll import ASKED, of_pool, running
from workergroups_api.conditions import Explanation
from workergroups_operator.apply import changes
from workergroups_operator.image_checks import ImageCheck, image_checks, needed_pods, unpulled
from workergroups_operator.policy.pod_trouble import failed_pull
from workergroups_operator.try_pods import trials_of

NEW = "example.test/worker:2"


def restarting(**spec: Any) -> Any:
    return running(of_pool(), of_pool(ASKED, **({"image": NEW} | spec)))


def checks(seen: Any) -> tuple[ImageCheck, ...]:
    return image_checks(seen, built(seen))


def with_pod(seen: Any, states: list[Any], **status: Any) -> Any:
    """The same, with the pod that pulls, whose containers have these states."""
    (check,) = checks(seen)
    containers = [
        {"name": each["name"], "image": each["image"], "state": state}
        for each, state in zip(check.pod["spec"]["containers"], states, strict=False)
    ]
    body = check.pod | {"status": {"containerStatuses": containers} | status}
    return replace(seen, pods=(*seen.pods, body | {"metadata": body["metadata"] | {"uid": "u"}}))


def waiting(reason: str) -> dict[str, Any]:
    return {"waiting": {"reason": reason, "message": "m"}}


def test_a_new_image_is_pulled_by_a_pod_that_is_placed_as_the_pools_own():
    key = {"key": "k", "operator": "Exists"}
    affinity = {"nodeAffinity": {"a": 1}, "podAffinity": {"b": 2}}
    template = {"spec": {"affinity": affinity, "serviceAccountName": "trainer", "hostNetwork": True}}
    more = {"imagePullSecrets": [{"name": "s"}], "nodeSelector": {"n": "1"}, "tolerations": [key]}
    (check,) = checks(restarting(podTemplate=template, **more))
    spec = check.pod["spec"]
    assert check.node_group == NODE_GROUP
    assert [each["image"] for each in spec["containers"]] == [NEW]
    assert spec["affinity"] == {"nodeAffinity": {"a": 1}}
    assert (spec["nodeSelector"], spec["serviceAccountName"]) == ({"n": "1"}, "trainer")
    assert spec["imagePullSecrets"] == [{"name": "s"}]
    assert key in spec["tolerations"]
    assert "hostNetwork" not in spec
    assert spec["automountServiceAccountToken"] is False
    assert "nvidia.com/gpu" not in str(spec["containers"])


@pytest.mark.parametrize("spec", [{"image": None}, {"image": None, "env": [{"name": "A", "value": "1"}]}])
def test_without_a_new_image_nothing_is_pulled(spec):
    assert checks(restarting(**spec)) == ()


def test_what_has_not_run_needs_no_check():
    assert checks(observed(pools=(pool(image=NEW),), pods=())) == ()
    assert checks(running(of_pool(), of_pool(image=NEW))) == (), "nobody has asked for a restart"


@pytest.mark.parametrize("part", [5, "x", [5], {"a": 1}, [{"image": 5}], None])
@pytest.mark.parametrize("field", ["containers", "initContainers"])
def test_the_users_template_may_be_any_json(part, field):
    assert isinstance(checks(restarting(podTemplate={"spec": {field: part}})), tuple)


def test_the_head_and_other_containers_count():
    sidecar = {"name": "log", "image": "example.test/log:1"}
    (check,) = checks(restarting(image=None, podTemplate={"spec": {"containers": [sidecar]}}))
    assert [each["image"] for each in check.pod["spec"]["containers"]] == ["example.test/log:1"]
    (check,) = checks(restarting(image=None, head={"podTemplate": {"spec": {"containers": [sidecar]}}}))
    assert [each["image"] for each in check.pod["spec"]["containers"]] == ["example.test/log:1"]


@pytest.mark.parametrize(
    ("states", "status", "reason"),
    [
        ([], {}, "PullingImage"),
        ([waiting("ContainerCreating")], {}, "PullingImage"),
        ([waiting("ErrImagePull")], {}, "ImagePullFailed"),
        ([waiting("ImagePullBackOff")], {}, "ImagePullFailed"),
        ([waiting("InvalidImageName")], {}, "ImagePullFailed"),
        ([{"running": {}}], {}, None),
        ([{"terminated": {"exitCode": 0}}], {}, None),
        ([waiting("CrashLoopBackOff")], {}, None),
        ([waiting("RunContainerError")], {}, None),
        ([], {"phase": "Failed", "reason": "Evicted"}, None),
        ([], {"conditions": [{"type": "PodScheduled", "status": "False"}]}, None),
    ],
)
def test_what_the_pods_status_means(states, status, reason):
    (check,) = checks(with_pod(restarting(), states, **status))
    assert check.exists
    assert (check.why and check.why.reason) == reason
    if reason == "ImagePullFailed":
        assert f"cannot pull {NEW}; pod {check.name} goes on trying" in check.why.message


BACK_OFF = f'Back-off pulling image "{NEW}": ErrImagePull: '
DIAL = f'failed to pull and unpack image "{NEW}": failed to do request: Head "https://example.test/v2/": dial tcp '


@pytest.mark.parametrize(
    ("messages", "cause"),
    [
        ([f"{NEW}: not found", BACK_OFF + f"{NEW}: not found", "manifest unknown"], ": its registry has no such image"),
        (
            [DIAL + "10.0.0.7:443: connect: connection refused", DIAL + "10.0.0.7:35412: i/o timeout"],
            "cannot be reached",
        ),
        (["pull access denied", "401 Unauthorized", "no basic auth credentials"], ": its registry refuses access"),
        ([f'Back-off pulling image "{NEW}"', ""], f"cannot pull {NEW}"),
    ],
)
def test_why_an_image_cannot_be_pulled_is_one_sentence_for_all_messages_that_mean_it(messages, cause):
    said = {failed_pull({"image": NEW, "state": {"waiting": {"message": message}}}) for message in messages}
    assert len(said) == 1
    assert cause in said.pop()


def test_the_name_of_an_image_is_no_cause():
    image = "example.test/unauthorized:404"
    waits = {"message": f'Back-off pulling image "{image}"'}
    assert failed_pull({"image": image, "state": {"waiting": waits}}) == f"cannot pull {image}"


def test_a_corrected_image_is_pulled_by_another_pod_and_the_first_is_deleted():
    wrong = with_pod(restarting(image="example.test/wrong:1"), [waiting("ErrImagePull")])
    seen = replace(wrong, pools=restarting().pools)
    (check,) = checks(seen)
    assert not check.exists
    due = changes(seen, decided(seen), (), [check.pod])
    assert due.checks == (check.pod,)
    assert due.delete["metadata"]["uid"] == "u"


def test_a_pod_that_exists_is_neither_made_nor_tried_again():
    seen = with_pod(restarting(), [])
    (check,) = checks(seen)
    due = changes(seen, decided(seen), (), [check.pod])
    assert (due.checks, due.delete) == ((), None)
    assert check.name not in trials_of(seen, built(seen), [check])
    assert check.name in trials_of(restarting(), built(restarting()), checks(restarting()))


def test_a_restart_begins_if_its_images_cannot_be_checked():
    (check,) = found = checks(restarting())
    pending, refused = Explanation("AdmissionPending", ""), Explanation("PodsRefused", "quota")
    waiting = {NODE_GROUP: check.why}
    assert unpulled(found, {}) == (waiting, {})
    assert unpulled(found, {check.name: pending, "head": refused}) == (waiting, {"head": refused})
    assert unpulled(found, {check.name: refused}) == ({}, {})


def test_a_pod_is_made_for_a_restart_that_nothing_else_blocks_and_stays_until_it_has_begun():
    (check,) = made = checks(restarting())
    assert needed_pods(made, {NODE_GROUP}, {}) == [check.pod]
    assert needed_pods(made, {NODE_GROUP}, {NODE_GROUP}) == []
    assert needed_pods(made, {}, {}) == []
    (check,) = pulled = checks(with_pod(restarting(), [{"running": {}}]))
    assert [needed_pods(pulled, {}, blocked) for blocked in ({}, {NODE_GROUP})] == [[check.pod]] * 2
