"""`RoleGroup`: one role of a group whose ranks have several."""

from __future__ import annotations

from typing import Any

from ray.actor import ActorHandle

from workergroups.single_controller.base import WorkerGroup
from workergroups.single_controller.base.bound_methods import bind_methods

from .worker_group import RayWorkerGroup


class RoleGroup(RayWorkerGroup):
    """One role of a group whose ranks have several; closing it leaves the ranks alone.

    ``execute_all`` and ``execute_rank_zero`` run methods of the role.
    """

    def __init__(self, whole: RayWorkerGroup, role: str) -> None:
        methods = {
            name.removeprefix(f"{role}_"): registered
            for name, registered in whole._methods.items()
            if registered.role == role
        }
        if not methods:
            roles = sorted({registered.role for registered in whole._methods.values()} - {""})
            raise ValueError(
                f"this group has no role {role!r} with registered methods; it has {', '.join(roles) or 'none'}"
            )
        WorkerGroup.__init__(self)  # this is a view on ranks that exist
        self.role = role
        self._whole = whole
        self.resource_pool = whole.resource_pool
        self.ray_cls_with_init = whole.ray_cls_with_init
        self.name_prefix = whole.name_prefix
        self.incarnation = whole.incarnation
        self._record_timeout = whole._record_timeout
        self._master = whole._master
        self._workers, self._worker_names = whole._workers, whole._worker_names
        self._call_timeout = whole._call_timeout
        self._closed, self._owns_ranks = False, False
        self._methods = methods
        bind_methods(self, methods)

    def _start(self, worker: ActorHandle, method_name: str, args: Any, kwargs: Any) -> Any:
        self._closed = self._closed or self._whole._closed
        if method_name in self._methods:
            return super()._start(worker, f"{self.role}_{method_name}", args, kwargs)
        return super()._start(worker, "call_role", (self.role, method_name, *args), kwargs)
