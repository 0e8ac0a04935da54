"""Several roles in one process per rank: a class that holds an instance of each role's class.

The group of that class has a method ``{role}_{method}`` for each registered method of a role; ``group.spawn(roles)``
gives one handle per role, with the methods under their own names.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from workergroups.single_controller.base import Worker
from workergroups.single_controller.base.decorator import (
    MAGIC_ATTR,
    Dispatch,
    RegisteredMethod,
    registered_methods,
)

from .rank_class import RayClassWithInitArgs
from .taken_names import check_methods, is_taken

FUSED_WORKER_NAME = "FusedWorker"
_OWN_ATTRIBUTES = {"worker_dict", "fused_worker_dict"}


class ColocatedWorker(Worker):
    """A rank with several roles; `create_colocated_worker_raw_cls` makes subclasses with roles.

    Each role's instance is an attribute with the role's name, and an entry of the others' ``fused_worker_dict``.
    """

    role_classes: ClassVar[Mapping[str, RayClassWithInitArgs]] = {}

    def __init__(self) -> None:
        super().__init__()
        self.worker_dict: dict[str, Any] = {}
        for role, rank_class in self.role_classes.items():
            worker = rank_class.user_class(*rank_class.args, **rank_class.kwargs)
            worker.fused_worker_dict = self.worker_dict
            self.worker_dict[role] = worker
            setattr(self, role, worker)
        self.fused_worker_dict = self.worker_dict

    def call_role(self, role: str, method_name: str, /, *args: Any, **kwargs: Any) -> Any:
        """Run any method of a role."""
        return getattr(self.worker_dict[role], method_name)(*args, **kwargs)


def create_colocated_worker_cls(class_dict: Mapping[str, RayClassWithInitArgs]) -> RayClassWithInitArgs:
    """Return the class of ranks that have all these roles.

    Args:
        class_dict: Each role's class and the arguments of its constructor.

    Raises:
        ValueError: Two roles' methods would have the same name, or a role has the name of something else in a rank.
    """
    return RayClassWithInitArgs(_colocated_class("WorkerDict", class_dict))


def create_colocated_worker_cls_fused(class_dict: Mapping[str, RayClassWithInitArgs]) -> RayClassWithInitArgs:
    """Like ``create_colocated_worker_cls``, for groups on which ``fuse`` is called."""
    return RayClassWithInitArgs(create_colocated_worker_raw_cls(class_dict))


def create_colocated_worker_raw_cls(class_dict: Mapping[str, RayClassWithInitArgs]) -> type[ColocatedWorker]:
    """Return the class itself, to be subclassed: methods of the subclass use the roles as ``self.{role}``."""
    return _colocated_class("_".join([FUSED_WORKER_NAME, *class_dict]), class_dict)


def _colocated_class(name: str, class_dict: Mapping[str, RayClassWithInitArgs]) -> type[ColocatedWorker]:
    namespace: dict[str, Any] = {"role_classes": dict(class_dict), "__module__": __name__}
    for role, rank_class in class_dict.items():
        if hasattr(ColocatedWorker, role) or role in _OWN_ATTRIBUTES:
            raise ValueError(f"a role cannot be called {role!r}: ranks have an attribute of that name; rename the role")
        if is_taken(role) and role != "role":  # only the groups of roles have that attribute, and they have no roles
            raise ValueError(
                f"a role cannot be called {role!r}: groups have an attribute of that name; rename the role"
            )
        methods = registered_methods(rank_class.user_class)
        check_methods(rank_class.user_class.__name__, methods)
        for method_name, registered in methods.items():
            public_name = f"{role}_{method_name}"
            if registered.dispatch_mode is Dispatch.DIRECT_ROLLOUT_METHOD:
                public_name = method_name  # inference engines call these on the actor, by their own name
            if public_name in namespace:
                raise ValueError(
                    f"two roles have a method that would be called {public_name!r}; rename a role or a method"
                )
            if hasattr(ColocatedWorker, public_name) or public_name in class_dict:
                raise ValueError(
                    f"the method {method_name!r} of role {role!r} would be called {public_name!r} in ranks, which have "
                    "an attribute of that name; rename the role or the method"
                )
            method = getattr(rank_class.user_class, method_name)
            namespace[public_name] = _delegate(role, method_name, method, registered)
    return type(name, (ColocatedWorker,), namespace)


def _delegate(role: str, method_name: str, method: Callable[..., Any], registered: RegisteredMethod) -> Any:
    """Return a method of the colocated class that runs a role's method."""
    delegate: Any
    if inspect.iscoroutinefunction(method):

        async def run_async(self: ColocatedWorker, /, *args: Any, **kwargs: Any) -> Any:
            return await getattr(self.worker_dict[role], method_name)(*args, **kwargs)

        delegate = run_async
    else:

        def run(self: ColocatedWorker, /, *args: Any, **kwargs: Any) -> Any:
            return getattr(self.worker_dict[role], method_name)(*args, **kwargs)

        delegate = run
    delegate.__name__ = f"{role}_{method_name}"
    delegate.__doc__ = method.__doc__
    delegate.__signature__ = inspect.signature(method)  # Ray checks calls against it
    setattr(delegate, MAGIC_ATTR, dataclasses.replace(registered, role=role))
    return delegate
