"""verl's trainer saves a checkpoint when a node of its ranks is about to go, and the node waits until it is written.

After each step, the trainer asks a function of verl's whether its rented machine is about to expire, and saves if it is
(with ``trainer.save_freq`` above 0). Here the function also looks for notices.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache, wraps
from typing import Any

from workergroups.announcements.notices import NoticeReader

_ASK, _SAVE = "should_save_ckpt_esi", "_save_checkpoint"


def save_on_notice() -> None:
    """Change the trainers that this process has imported; those that were changed before stay as they are."""
    for module in [each for name, each in sys.modules.items() if name.startswith("verl.")]:
        ask = vars(module).get(_ASK)
        if ask is None or hasattr(ask, "__wrapped__"):
            continue
        setattr(module, _ASK, _or_on_notice(ask))
        for trainer in vars(module).values():
            if isinstance(trainer, type) and _SAVE in vars(trainer):
                setattr(trainer, _SAVE, _then_answer(vars(trainer)[_SAVE]))


@cache
def _reader() -> NoticeReader:
    """Return what looks for notices, from the end of the first step on: then all of verl's workers exist."""
    return NoticeReader()


def _or_on_notice(original: Callable[..., bool]) -> Callable[..., bool]:
    @wraps(original)
    def should_save_ckpt_esi(*args: Any, **kwargs: Any) -> bool:
        return original(*args, **kwargs) or _reader().look() is not None

    return should_save_ckpt_esi


def _then_answer(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def _save_checkpoint(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        _reader().answer()
        return result

    return _save_checkpoint
