"""The hidden parts of Ray's actor classes, handles and errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from inspect import Parameter
from typing import Any

from ray._private import async_compat
from ray.actor import ActorClass, ActorHandle
from ray.exceptions import RayActorError


def actor_id(handle: ActorHandle) -> str:
    """Return the hexadecimal id of the actor."""
    found: str = handle._actor_id.hex()
    return found


def actor_of(ref: Any) -> str:
    """Return the hexadecimal id of the actor whose method computes this result; of no actor if none does."""
    found: str = ref.task_id().actor_id().hex()
    return found


def class_of(actor_class: ActorClass) -> type:
    """Return the class as the user wrote it, without ``@ray.remote``."""
    found: type = actor_class.__ray_metadata__.modified_class.__ray_actor_class__
    return found


def options_of(actor_class: ActorClass) -> Mapping[str, Any]:
    """Return the options that ``@ray.remote`` was given."""
    options: Mapping[str, Any] = actor_class._default_options
    return options


def has_async_methods(cls: type) -> bool:
    """Return whether Ray runs the methods of this class in an event loop."""
    return bool(async_compat.has_async_methods(cls))


def signatures_of(actor_class: ActorClass) -> Mapping[str, Sequence[Parameter]]:
    """Return the parameters of each method of an actor class, against which Ray checks calls."""
    signatures: Mapping[str, Sequence[Parameter]] = actor_class.__ray_metadata__.method_meta.signatures
    return signatures


def set_signatures(handle: ActorHandle, signatures: Mapping[str, Sequence[Parameter]]) -> None:
    """Let Ray check calls through this handle against these parameters."""
    handle._ray_method_signatures.update({method: list(parameters) for method, parameters in signatures.items()})


def method_names(handle: ActorHandle) -> list[str]:
    """Return the names of the methods that can be called through the handle."""
    return list(handle._ray_method_signatures)


def has_parameter(handle: ActorHandle, method: str, name: str) -> bool:
    """Return whether a method that can be called through the handle has a parameter of that name."""
    return any(parameter.name == name for parameter in handle._ray_method_signatures.get(method, ()))


def failed_in_constructor(error: RayActorError) -> bool:
    """Return whether the actor of this error died because its constructor raised."""
    return bool(error._actor_init_failed)
