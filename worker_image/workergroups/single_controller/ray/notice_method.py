"""How a rank hears that it is about to end: by a call, and so between other calls.

Before its node ends, it calls itself. When the agent ends all ranks of its group, that calls them.
"""

from __future__ import annotations

import inspect
import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import ray

from workergroups.node import notice
from workergroups.ray_private.actors import has_async_methods

LOGGER = logging.getLogger(__name__)
NOTICE_METHOD = "_workergroups_notice"
"""The ranks of classes that want to hear of it have this method, and no user's method has this name."""
_USERS = "on_notice"


def wants_notice(cls: type) -> bool:
    """Return whether the class, or that of one of its roles, has a method for a notice."""
    roles: Mapping[str, Any] = getattr(cls, "role_classes", {})
    return callable(getattr(cls, _USERS, None)) or any(wants_notice(each.user_class) for each in roles.values())


def notice_method(cls: type) -> Callable[..., Any]:
    """Return the method for the ranks of this class; a coroutine if Ray runs the class's methods in an event loop."""

    def tell(self: Any, given: notice.Notice) -> None:
        for method in _listeners(self):
            method(given)

    async def tell_async(self: Any, given: notice.Notice) -> None:
        for method in _listeners(self):
            result = method(given)
            if inspect.isawaitable(result):
                await result

    return tell_async if has_async_methods(cls) else tell


def _listeners(rank: Any) -> Iterator[Callable[[notice.Notice], Any]]:
    """Yield the methods of a rank and of its roles that want to hear of a notice."""
    roles = getattr(rank, "__dict__", {}).get("fused_worker_dict", {})
    for each in (rank, *roles.values()):
        if callable(method := getattr(each, _USERS, None)):
            yield method


def listen(rank: Any) -> None:
    """Let the node's end wait for this rank, if it wants to hear of that; call it when the constructor has returned."""
    if not notice.is_expected() or not hasattr(rank, NOTICE_METHOD):
        return
    answered = notice.wait_for_me()
    own = ray.get_runtime_context().current_actor

    def tell(given: notice.Notice) -> None:
        try:
            # No ray.get, of which Ray would warn in ranks with coroutines.
            getattr(own, NOTICE_METHOD).options(name=_USERS).remote(given).future().result()
        except Exception as error:
            LOGGER.warning("%s: %s", _USERS, error)
        finally:
            answered()

    threading.Thread(target=notice.watch, args=[tell], name="notice", daemon=True).start()
