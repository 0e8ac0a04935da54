"""verl's trainer saves a checkpoint when a node of its ranks is about to go, and the node waits until it is written.

After each step, verl's older trainers ask a function of verl's whether their rented machine is about to expire, and
save if it is: here, it also looks for notices. Those of verl's V1 call a method of their own, and save before it here.
Both save only with ``trainer.save_freq`` above 0. Nothing waits for one that was told and did not save.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache, wraps
from typing import Any

from workergroups.announcements.notices import NoticeReader
from workergroups.node.notice import Notice

_ASK, _SAVE, _STEP_END = "should_save_ckpt_esi", "_save_checkpoint", "on_step_end"
_CHANGED = "_looks_for_notices"


def save_on_notice() -> None:
    """Change the trainers that this process has imported; those that were changed before stay as they are."""
    for module in [each for name, each in sys.modules.items() if name.startswith("verl.")]:
        _change(module, _ASK, _or_on_notice)
        for trainer in list(vars(module).values()):
            if isinstance(trainer, type) and hasattr(trainer, _SAVE):
                _change(trainer, _SAVE, _then_answer)
                _change(trainer, _STEP_END, _after_saving)


def _change(owner: Any, name: str, changed: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    original = vars(owner).get(name)
    if original is not None and not hasattr(original, _CHANGED):
        replacement = changed(original)
        setattr(replacement, _CHANGED, True)
        setattr(owner, name, replacement)


@cache
def _reader() -> NoticeReader:
    """Return what looks for notices, from the end of the first step on: then all of verl's workers exist."""
    return NoticeReader()


def _or_on_notice(original: Callable[..., bool]) -> Callable[..., bool]:
    told: Notice | None = None
    saves = True

    @wraps(original)
    def should_save_ckpt_esi(*args: Any, **kwargs: Any) -> bool:
        nonlocal told, saves
        before, told = told, _reader().look() if saves else None
        if told is not None and told == before:  # it was told after the step before, and has not saved
            saves, told = False, None
            _reader().stop()
        return original(*args, **kwargs) or told is not None

    return should_save_ckpt_esi


def _then_answer(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def _save_checkpoint(*args: Any, **kwargs: Any) -> Any:
        _reader().look()  # what is known by now is answered, and needs no other checkpoint of this step
        result = original(*args, **kwargs)
        _reader().answer()
        return result

    return _save_checkpoint


def _after_saving(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def on_step_end(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self.config.trainer.save_freq > 0 and _reader().look() is not None:
            self._save_checkpoint()
        return original(self, *args, **kwargs)

    return on_step_end
