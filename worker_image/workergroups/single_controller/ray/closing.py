"""What groups and pools have in common: a `with` block closes them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Self  # in typing since Python 3.11


class Closing(ABC):
    """A context that is closed at its end, also if the block raised."""

    @abstractmethod
    def close(self) -> None:
        """Release what this holds, and refuse further use."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
