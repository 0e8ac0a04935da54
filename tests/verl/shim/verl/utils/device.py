"""verl's names of this machine's device, without its table of platforms."""

import torch


def get_device_name():
    return "cuda" if torch.cuda.is_available() else "cpu"


def get_nccl_backend():
    return "nccl" if torch.cuda.is_available() else "gloo"
