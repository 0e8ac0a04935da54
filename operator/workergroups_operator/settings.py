"""What the chart tells the operator, by environment variables."""

import os
from dataclasses import dataclass
from typing import Self

# The Ray inside the default worker image.
RAY_VERSION = "2.60.0"


@dataclass(frozen=True)
class Settings:
    """Defaults for pools that do not say otherwise, on clusters that do not run yet."""

    worker_image: str
    ray_version: str = RAY_VERSION

    @classmethod
    def from_environment(cls) -> Self:
        """WORKER_IMAGE is required; RAY_VERSION goes with it."""
        return cls(
            worker_image=os.environ["WORKER_IMAGE"],
            ray_version=os.environ.get("RAY_VERSION", RAY_VERSION),
        )
