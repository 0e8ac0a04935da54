"""The library in pods of any image, and what is said of images in which Ray cannot be run."""

import pytest

from tests.unit.operator.make import child, observed, pod, pool, ready_pool, reservation, status_of
from workergroups_operator.policy.found_versions import FoundVersions, conflict, found_versions
from workergroups_operator.policy.pod_trouble import pod_trouble
from workergroups_operator.templates.library import BASH_ENV, with_library

MAIN = {"name": "ray-worker", "image": "example.test/theirs:1"}


def looked_at(pod_, *, message="", exit_code=0, **more):
    state = {"terminated": {"exitCode": exit_code, "reason": "Error" if exit_code else "Completed", "message": message}}
    check = {"name": "check-image", "image": "theirs:1", "state": state} | more
    pod_["status"]["initContainerStatuses"] = [{"name": "other", "state": state}, check]
    return pod_


def made(**main):
    spec = with_library({"containers": [MAIN | main, {"name": "sidecar"}]}, "ray-worker", "operator:1")
    return spec["initContainers"], {each["name"]: each for each in spec["containers"]}


def test_the_operators_image_brings_the_code_and_the_pods_own_looks_at_itself():
    (copy, check), containers = made()
    assert (copy["image"], check["image"]) == ("operator:1", "example.test/theirs:1")
    (mount,) = containers["ray-worker"]["volumeMounts"]
    assert mount == copy["volumeMounts"][0] == check["volumeMounts"][0]
    assert containers["ray-worker"]["env"] == [{"name": "PYTHONPATH", "value": mount["mountPath"]}]
    assert containers["sidecar"] == {"name": "sidecar"}


def test_a_users_python_path_comes_after_the_librarys_and_in_its_place():
    """A variable may name those before it: `$(CODE)`."""
    code, user, last = ({"name": name, "value": f"/{name}"} for name in ("CODE", "PYTHONPATH", "TOOLS"))
    _, containers = made(env=[code, user, last])
    ours = {"name": "PYTHONPATH", "value": "/opt/workergroups-library:/PYTHONPATH"}
    assert containers["ray-worker"]["env"] == [code, ours, last]


def test_the_check_has_the_variables_that_decide_about_python_and_those_that_they_name():
    opt, ray_bin = {"name": "OPT", "value": "/opt"}, {"name": "RAY_BIN", "value": "$(OPT)/ray/bin"}
    path = {"name": "PATH", "value": "$(RAY_BIN):/usr/bin"}
    others = [{"name": "LARGE", "value": "x" * 1000}, {"name": ["odd"]}, BASH_ENV]
    (_, check), _ = made(env=[opt, *others, ray_bin, path, {"name": "AFTER", "value": "$(PATH)"}])
    assert check["env"] == [opt, ray_bin, path]


def test_init_containers_of_a_users_template_come_after_ours():
    spec = with_library({"containers": [MAIN], "initContainers": [{"name": "theirs"}]}, "ray-worker", "operator:1")
    assert [each["name"] for each in spec["initContainers"]] == ["workergroups-library", "check-image", "theirs"]


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"containers": "x"},
        {"containers": [MAIN], "volumes": {}} | {"volumes": {"a": 1}},
        {"containers": [MAIN], "initContainers": "x"},
        {"containers": [MAIN | {"env": {"A": "b"}}]},
        {"containers": [MAIN | {"volumeMounts": "x"}]},
        {"containers": [5, None, {"name": ["ray-worker"]}]},
    ],
)
def test_what_is_no_pod_is_left_to_the_api_server(spec):
    assert with_library(spec, "ray-worker", "operator:1") == spec


@pytest.mark.parametrize("env", [[5], [None], [{"value": "x"}], [{"name": "PYTHONPATH", "value": 5}]])
def test_variables_that_are_none_do_not_stop_it(env):
    assert made(env=env)


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("ray 2.60.0 python 3.11.7", FoundVersions("2.60.0", "3.11")),
        ("ray 3.0.0rc1 python 3.10.13", FoundVersions("3.0.0rc1", "3.10")),
        ("ray 2.60.0 python 3.11.7\n", None),
        ("ray \N{SNOWMAN} python 3.11.7", None),
        ("", None),
    ],
)
def test_versions_are_what_the_init_container_found(said, found):
    assert found_versions([looked_at(pod("worker"), message=said)]) == found


def test_pods_without_that_container_are_unknown():
    assert found_versions([pod("worker")]) is None
    assert conflict("actors", FoundVersions("2.60.0", "3.11"), None) is None


def test_the_version_is_in_the_status():
    pods = (
        pod("head"),
        *(looked_at(pod("worker", name), message="ray 2.55.1 python 3.10.1") for name in ("p-0", "p-1")),
    )
    assert status_of(observed(pools=(ready_pool(),), pods=pods)).after.ray_version == "2.55.1"
    assert status_of(observed(pools=(ready_pool(),))).after.ray_version is None


@pytest.mark.parametrize(
    "again",
    [
        {},
        {
            "state": {"waiting": {"reason": "CrashLoopBackOff"}},
            "lastState": {"terminated": {"exitCode": 1, "message": "old Ray"}},
        },
        {"state": {"running": {}}, "lastState": {"terminated": {"exitCode": 1, "message": "old Ray"}}},
    ],
)
def test_what_an_image_lacks_is_reported_also_while_it_is_retried(again):
    trouble = pod_trouble(looked_at(pod("worker", phase="Pending"), message="old Ray", exit_code=1, **again))
    assert (trouble.reason, trouble.message) == ("ImageUnfit", "pod actors-worker, image theirs:1: old Ray")


def test_an_image_without_python_is_reported():
    message = 'exec: "python3": executable file not found in $PATH: unknown'
    trouble = pod_trouble(looked_at(pod("worker", phase="Pending"), message=message, exit_code=128))
    assert (trouble.reason, message in trouble.message) == ("ImageUnfit", True)


def test_a_pool_with_another_ray_than_its_head_is_reported():
    head = looked_at(pod("head"), message="ray 2.60.0 python 3.11.7")
    worker = looked_at(pod("worker", "p-0"), message="ray 2.52.0 python 3.11.7")
    ready = status_of(observed(pools=(pool(status=reservation()),), pods=(head, worker))).ready
    assert ready.reason == "RayVersionConflict"
    assert "Ray 2.52.0 on Python 3.11, but the head of cluster actors runs Ray 2.60.0 on Python 3.11" in ready.message


@pytest.mark.parametrize(
    ("annotation", "spec", "reason"),
    [
        ("library-image", {}, "OldLibrary"),
        ("library-image", {"image": "theirs:1"}, "OldLibrary"),
        ("default-image", {}, "OldImage"),
        ("default-image", {"image": "theirs:1"}, "UpToDate"),
    ],
)
def test_what_a_cluster_was_started_with_before_the_operator_changed_is_reported(annotation, spec, reason):
    annotations = {f"workergroups.dev/{annotation}": "example.test/before:1"}
    cluster = child("RayCluster", "actors", metadata={"annotations": annotations})
    seen = observed(pools=(pool(**spec),), pods=(pod("head"),), children=cluster)
    up_to_date = next(each for each in status_of(seen).after.conditions if each.type == "UpToDate")
    assert up_to_date.reason == reason
    assert reason == "UpToDate" or "example.test/before:1" in up_to_date.message
