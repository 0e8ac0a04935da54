"""The parts of the model that create no actors: workers, dispatch modes and batches.

Of Ray they use only its object references and its errors.
"""

from .worker import Worker
from .worker_group import ClassWithInitArgs, ResourcePool, WorkerGroup

__all__ = ["ClassWithInitArgs", "ResourcePool", "Worker", "WorkerGroup"]
