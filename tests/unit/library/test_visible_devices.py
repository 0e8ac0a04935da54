from __future__ import annotations

import pytest

from workergroups.single_controller.ray.visible_devices import bundle_devices, device_env


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
    ],
)
def test_a_rank_uses_its_own_device(device_name, environ, expected):
    assert device_env(["2"], device_name, environ) == expected


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
