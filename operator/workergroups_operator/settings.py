"""The operator's settings, which the chart passes as environment variables."""

import os
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True)
class Settings:
    """Images of clusters that do not run yet."""

    # The default for pools that name no image.
    worker_image: str
    # The operator's own image: Ray's pods get the library from it.
    operator_image: str

    @classmethod
    def from_environment(cls) -> Self:
        """Read WORKER_IMAGE and OPERATOR_IMAGE, which are required."""
        return cls(worker_image=os.environ["WORKER_IMAGE"], operator_image=os.environ["OPERATOR_IMAGE"])
