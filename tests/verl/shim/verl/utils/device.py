"""verl's device on a machine without any."""


def get_device_name():
    return "cpu"


def get_nccl_backend():
    return "gloo"
