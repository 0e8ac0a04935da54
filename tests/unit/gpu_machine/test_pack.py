"""Which packages are carried to the GPU machine."""

from tools.gpu_machine import pack

OF_THE_MACHINE = {"torch", "torchvision", "triton", "nvidia-cublas", "nvidia-nccl-cu13", "cuda-toolkit"}


def names(text):
    return {line.partition("==")[0] for line in text.splitlines() if "==" in line and not line.startswith(" ")}


def test_of_a_lock_the_wanted_packages_are_taken_with_their_hashes():
    text = pack._locked("requirements/dev.lock", ("tensordict", "pyvers"))
    assert names(text) == {"tensordict", "pyvers"}
    assert text.count("--hash=sha256:") >= 2


def test_with_verl_what_the_machine_has_is_left_out():
    found = names(pack._locked_but(pack._VERL_LOCK, pack._NOT_OF_VERL))
    assert found >= {"verl", "vllm", "ray", "debugpy", "torchdata", "nvidia-ml-py"}
    assert found.isdisjoint(OF_THE_MACHINE)


def test_pods_have_the_same_ray_with_verl_and_without():
    with_verl, without = (dict(pack._entries(lock))["ray"].split()[0] for lock in (pack._VERL_LOCK, pack._LOCKS[0]))
    assert with_verl == without
