"""The nodes of a pool, as for verl's own classes."""

from tests.ray.conftest import ray_environment  # noqa: F401
from tests.verl.plugin.conftest import agent, cluster  # noqa: F401
