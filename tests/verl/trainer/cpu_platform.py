"""CPUs as verl's devices: named in VERL_USE_EXTERNAL_MODULES, and chosen by VERL_PLATFORM=cpu. verl itself has none."""

from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace

import torch
from verl.plugin.platform import PlatformBase, PlatformRegistry
from verl.utils import distributed


@PlatformRegistry.register(platform="cpu")
class PlatformCPU(PlatformBase):
    """A device is one of Ray's GPUs, which are only numbers here, and its memory is not counted."""

    device_name = "cpu"
    vendor_name = "cpu"
    device_module = SimpleNamespace(
        **{name: getattr(torch.cpu, name) for name in torch.cpu.__all__},
        empty_cache=lambda: None,
        get_device_name=lambda: "CPU",
        mem_get_info=lambda: (0, 0),
        **dict.fromkeys(
            ("memory_allocated", "memory_reserved", "max_memory_allocated", "max_memory_reserved"), lambda *_: 0
        ),
    )

    def is_available(self):
        return True

    def current_device(self):
        return "cpu"

    def device_count(self):
        return 1

    def set_device(self, device_index):
        pass

    def synchronize(self, device_index=None):
        pass

    def manual_seed(self, seed):
        torch.manual_seed(seed)

    manual_seed_all = manual_seed

    def set_allocator_settings(self, settings):
        pass

    def empty_cache(self):
        pass

    def get_device_capability(self, device_index=0):
        return None, None

    def communication_backend_name(self):
        return "gloo"

    def visible_devices_envvar(self):
        return "CUDA_VISIBLE_DEVICES"

    @contextmanager
    def nvtx_range(self, msg):
        yield

    def profiler_start(self):
        pass

    def profiler_stop(self):
        pass

    def ray_resource_name(self):
        return "GPU"

    def ray_noset_envvars(self):
        return ["RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES"]

    def is_ipc_supported(self):
        return False

    def cudart(self):
        return None


# verl asks for one backend for CPUs and one for devices, and torch refuses two for the same.
distributed.initialize_global_process_group_ray = partial(
    distributed.initialize_global_process_group_ray, backend="cpu:gloo"
)
