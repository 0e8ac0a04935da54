"""A pytest plugin: verl's tests on CPUs, where Ray's GPUs are but numbers."""

import functools

import pytest
import ray
import torch

GPUS = 8


@pytest.fixture(autouse=True)
def logical_gpus(monkeypatch):
    """Every Ray that a test starts has CPUs and GPUs enough, and ends with the test."""
    resources = {"num_cpus": 100, "num_gpus": GPUS, "include_dashboard": False, "address": "local"}
    init = ray.init
    monkeypatch.setattr(ray, "init", functools.wraps(init)(lambda *args, **kwargs: init(*args, **kwargs | resources)))
    monkeypatch.setattr(torch.cuda, "device_count", lambda: GPUS)
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    monkeypatch.setenv("RAY_prestart_worker_first_driver", "0")
    monkeypatch.setenv("RAY_memory_monitor_refresh_ms", "0")
    yield
    ray.shutdown()
