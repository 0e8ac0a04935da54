"""The names that a group has for itself, so that no method of its ranks' class and no role can have them."""

from __future__ import annotations

from collections.abc import Iterable

from workergroups.errors import InvalidValueError

OF_HANDLES = frozenset(
    {
        *("resource_pool", "ray_cls_with_init", "name_prefix", "incarnation", "role"),
        *("_ranks", "_methods", "_handle", "_roles", "_present", "_find_next", "_whole", "_owns_ranks"),
        *("_dispatch_info", "_collect_info", "_mesh_plans"),
    }
)
"""What the constructors of groups set."""


def is_taken(name: str) -> bool:
    """Return whether a group has an attribute of that name, whatever its ranks' class."""
    from .rank_group import RoleGroup  # both check names when they are constructed
    from .worker_group import RayWorkerGroup

    return name in OF_HANDLES or hasattr(RayWorkerGroup, name) or hasattr(RoleGroup, name)


def check_methods(class_name: str, methods: Iterable[str]) -> None:
    """Check that a group can have these registered methods of a class.

    Raises:
        ValueError: A group has something else of that name.
    """
    for name in methods:
        if is_taken(name):
            raise InvalidValueError(
                f"{class_name} registers a method {name!r}, but groups have an attribute of that name: rename the "
                f"method, or remove @register and call execute_all_sync({name!r}, ...)"
            )
