from __future__ import annotations

import pytest

from workergroups.single_controller.ray.visible_devices import (
    bundle_devices,
    check_own_env,
    device_env,
    own_device_name,
    ray_name,
)


@pytest.mark.parametrize(
    ("device_name", "environ", "expected"),
    [
        pytest.param("cuda", {}, {"CUDA_VISIBLE_DEVICES": "2"}, id="nvidia"),
        pytest.param(
            "amd",
            {"CUDA_VISIBLE_DEVICES": "2"},
            {"HIP_VISIBLE_DEVICES": "2", "CUDA_VISIBLE_DEVICES": "2"},
            id="amd, where Ray found no AMD hardware",
        ),
        pytest.param(
            "cuda",
            {"HIP_VISIBLE_DEVICES": "2"},
            {"HIP_VISIBLE_DEVICES": "2", "CUDA_VISIBLE_DEVICES": "2"},
            id="amd, as Ray found",
        ),
        pytest.param(
            "cuda",
            {"WORKERGROUPS_ACCELERATOR_VENDOR": "amd", "CUDA_VISIBLE_DEVICES": "2"},
            {"HIP_VISIBLE_DEVICES": "2", "CUDA_VISIBLE_DEVICES": "2"},
            id="amd, as the pod says",
        ),
        pytest.param(
            "amd",
            {"WORKERGROUPS_ACCELERATOR_VENDOR": "nvidia", "CUDA_VISIBLE_DEVICES": "2"},
            {"CUDA_VISIBLE_DEVICES": "2"},
            id="the pod knows better than the program",
        ),
        pytest.param("npu", {}, {"ASCEND_RT_VISIBLE_DEVICES": "2"}, id="npu"),
        pytest.param(
            "cuda",
            {"RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES": "1"},
            {"LOCAL_RANK": "2"},
            id="all devices left visible",
        ),
        pytest.param(
            "cuda",
            {"RAY_EXPERIMENTAL_NOSET_HIP_VISIBLE_DEVICES": "True"},
            {"LOCAL_RANK": "2"},
            id="left visible in Ray's other word",
        ),
        *(
            pytest.param(
                "cuda",
                {"RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES": off},
                {"CUDA_VISIBLE_DEVICES": "2"},
                id=f"not left visible by {off!r}",
            )
            for off in ("0", "", "false", "no")
        ),
    ],
)
def test_a_rank_uses_its_own_device(device_name, environ, expected):
    assert device_env(["2"], device_name, environ) == expected


OTHER = {"WORKERGROUPS_ACCELERATOR_VENDOR": "other", "WORKERGROUPS_VISIBLE_DEVICES_ENV": "HABANA_VISIBLE_MODULES"}


@pytest.mark.parametrize(
    ("listed", "expected"),
    [
        pytest.param({}, "2,3", id="numbers from 0"),
        pytest.param({"HABANA_VISIBLE_MODULES": ""}, "2,3", id="an empty list"),
        pytest.param({"HABANA_VISIBLE_MODULES": "7,5,3,1"}, "3,1", id="the node's list, which Ray does not know"),
    ],
)
def test_a_rank_on_devices_of_another_vendor_sees_its_own_by_the_variable_that_the_pool_names(listed, expected):
    # Ray has set the variable of NVIDIA's devices, which nobody reads there.
    environ = {**OTHER, "CUDA_VISIBLE_DEVICES": "2", **listed}
    assert device_env(["2", "3"], "cuda", environ) == {"HABANA_VISIBLE_MODULES": expected}


def test_a_node_that_lists_too_few_devices_of_another_vendor():
    with pytest.raises(ValueError, match=r"HABANA_VISIBLE_MODULES of the rank's node lists 2 devices \(0,1\)"):
        device_env(["2"], "cuda", {**OTHER, "HABANA_VISIBLE_MODULES": "0,1"})


def test_ray_knows_the_devices_of_an_npu_itself():
    environ = {"WORKERGROUPS_VISIBLE_DEVICES_ENV": "ASCEND_RT_VISIBLE_DEVICES", "ASCEND_RT_VISIBLE_DEVICES": "6"}
    assert device_env(["6"], "npu", environ) == {"ASCEND_RT_VISIBLE_DEVICES": "6"}


def test_a_rank_is_not_given_the_variable_that_selects_its_devices():
    check_own_env({"HABANA_VISIBLE_MODULES": "0"}, {})
    check_own_env({"HF_HOME": "/data"}, OTHER)
    with pytest.raises(ValueError, match="must not set HABANA_VISIBLE_MODULES"):
        check_own_env({"HABANA_VISIBLE_MODULES": "0"}, OTHER)


@pytest.mark.parametrize(("device_name", "name"), [("cuda", "GPU"), ("amd", "GPU"), ("cpu", "GPU"), ("npu", "NPU")])
def test_ray_has_two_names_for_devices(device_name, name):
    assert ray_name(device_name) == name
    assert own_device_name(name) == (device_name if name == "NPU" else None)


def test_a_rank_without_devices_is_left_alone():
    assert device_env([], "amd", {"WORKERGROUPS_ACCELERATOR_VENDOR": "amd"}) == {}


def test_a_rank_with_several_devices_sees_them_all():
    assert device_env(["2", "3"], "amd", {}) == {"HIP_VISIBLE_DEVICES": "2,3", "CUDA_VISIBLE_DEVICES": "2,3"}
    assert device_env(["2", "3"], "cuda", {"RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES": "1"}) == {"LOCAL_RANK": "2"}


@pytest.mark.parametrize(
    ("assigned", "of_node", "count", "expected"),
    [
        pytest.param(["3"], None, 1, ["3"], id="one device: what Ray says"),
        pytest.param(["1", "3"], None, 1, ["1", "3"], id="the user's own num_gpus"),
        pytest.param([], None, 4, [], id="no share of any"),
        pytest.param(["0"], None, 2, ["0", "1"], id="the first of two"),
        pytest.param(["7"], None, 2, ["6", "7"], id="the second of two"),
        pytest.param(["6"], None, 4, ["4", "5", "6", "7"], id="the third of four"),
        pytest.param(["5"], None, 8, list("01234567"), id="all eight"),
        pytest.param(["4"], None, 3, ["3", "4", "5"], id="of three"),
        pytest.param(["3"], ["7", "5", "3", "1"], 2, ["3", "1"], id="in the order of the node's list"),
        pytest.param(["GPU-d"], ["GPU-a", "GPU-b", "GPU-c", "GPU-d"], 2, ["GPU-c", "GPU-d"], id="UUIDs"),
    ],
)
def test_one_device_tells_all_of_the_bundle(assigned, of_node, count, expected):
    assert bundle_devices(assigned, of_node, count) == expected


def test_a_node_without_devices_enough_for_its_bundles():
    with pytest.raises(ValueError, match=r"lists 3 devices \(5,6,7\): no bundles of 2"):
        bundle_devices(["7"], ["5", "6", "7"], 2)
