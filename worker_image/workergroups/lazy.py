"""torch, tensordict and numpy, imported when they are first used: the library works without them."""

from __future__ import annotations

import importlib
from typing import Any


class _LazyModule:
    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        try:
            module = importlib.import_module(self._name)
        except ImportError as error:
            raise ImportError(
                f"this operation on batches needs {self._name}, which is not installed: pip install {self._name}"
            ) from error
        return getattr(module, attribute)


np: Any = _LazyModule("numpy")
torch: Any = _LazyModule("torch")
tensordict: Any = _LazyModule("tensordict")
