from __future__ import annotations

import pytest

from workergroups.single_controller.ray.visible_devices import device_env


@pytest.mark.parametrize(
    ("device_name", "environ", "expected"),
    [
        pytest.param("cuda", {"CUDA_VISIBLE_DEVICES": "2"}, {}, id="nvidia: Ray has done it"),
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
            {},
            id="the pod knows better than the program",
        ),
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
