"""The parts of the model that create no actors and no placement groups: workers, dispatch modes, batches."""

from .worker import Worker
from .worker_group import ClassWithInitArgs, ResourcePool, WorkerGroup

__all__ = ["ClassWithInitArgs", "ResourcePool", "Worker", "WorkerGroup"]
