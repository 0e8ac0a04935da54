"""What the chart tells the operator, by environment variables."""

import os
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True)
class Settings:
    """Images, of clusters that do not run yet."""

    # Of pools that name none.
    worker_image: str
    # The operator's own: pods of Ray get the library from it.
    operator_image: str

    @classmethod
    def from_environment(cls) -> Self:
        """WORKER_IMAGE and OPERATOR_IMAGE are required."""
        return cls(worker_image=os.environ["WORKER_IMAGE"], operator_image=os.environ["OPERATOR_IMAGE"])
