"""The task, in a pool's pod, that ends ranks, and tells those before that want to hear of it."""

import contextlib
import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import ray

from workergroups.announcements import notices
from workergroups.naming import NAMESPACE, RankName
from workergroups.node.notice import Notice
from workergroups.ray_private.actors import method_names
from workergroups.ray_private.gcs import Gcs
from workergroups.single_controller.ray.notice_method import NOTICE_METHOD

LOGGER = logging.getLogger(__name__)
REASON = "its group is changed, restarted, suspended or deleted"
LOOK_SECONDS = 0.1


def end(names: Sequence[RankName], seconds: float) -> None:
    """End ranks once they have answered a notice, and the drivers that look for notices, or after that many seconds.

    With 0 seconds, nobody is told. Those that are gone already are ignored.
    """
    handles = {name: handle for name in names if (handle := _handle(name)) is not None}
    if seconds:
        try:
            _tell_and_end(handles, Notice(REASON, time.time() + seconds))
        except Exception as error:  # the GCS does not answer
            LOGGER.warning("ending %d ranks untold: %s: %s", len(handles), type(error).__name__, error)
    _end(handles.values())


def _tell_and_end(handles: Mapping[RankName, Any], given: Notice) -> None:
    """End each incarnation as soon as its ranks and drivers have answered."""
    gcs = Gcs.of_driver()
    incarnations: dict[str, dict[RankName, Any]] = {}
    for name, handle in handles.items():
        incarnations.setdefault(name.incarnation_key, {})[name] = handle
    waiting, until = {}, {}
    for key, ranks in incarnations.items():
        # A task on a node that was lost has told them before: they have no more time than it gave them.
        earlier = notices.present(gcs, key)
        of_key = min(filter(None, (given, earlier)), key=lambda each: each.deadline)
        if earlier is None:
            notices.tell(gcs, key, of_key)
        until[key] = of_key
        waiting[key] = [_told(handle, of_key) for handle in ranks.values() if NOTICE_METHOD in method_names(handle)]
    while True:
        for key, answers in list(waiting.items()):
            _, left = ray.wait(answers, num_returns=len(answers), timeout=0) if answers else ([], [])
            if not until[key].seconds or not (left or _is_awaited(gcs, key)):
                _end(incarnations[key].values())
                notices.withdraw(gcs, key)
                del waiting[key]
        if not waiting:
            return
        time.sleep(LOOK_SECONDS)


def _is_awaited(gcs: Gcs, key: str) -> bool:
    try:
        return notices.is_awaited(gcs, key)
    except Exception:  # the GCS may be back before the time is over
        return True


def _told(handle: Any, given: Notice) -> Any:
    # By keyword: without the class, Ray knows no others.
    return getattr(handle, NOTICE_METHOD).options(name="on_notice").remote(given=given)


def _handle(name: RankName) -> Any:
    with contextlib.suppress(ValueError):
        return ray.get_actor(str(name), namespace=NAMESPACE)
    return None


def _end(handles: Iterable[Any]) -> None:
    for handle in handles:
        ray.kill(handle)
