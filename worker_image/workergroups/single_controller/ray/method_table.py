"""Send registered methods to drivers that do not have their class."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from inspect import Parameter
from types import ModuleType
from typing import Any

from ray import cloudpickle
from ray.actor import ActorHandle

from workergroups.ray_private import actors
from workergroups.single_controller.base.decorator import Execute, RegisteredMethod


def pickle_methods(methods: Mapping[str, RegisteredMethod]) -> dict[str, bytes]:
    """Pickle each method on its own, since a method that a driver cannot load must not hide the others."""
    return {name: _pickle(registered) for name, registered in methods.items()}


def unpickle_methods(pickled: Mapping[str, bytes]) -> dict[str, RegisteredMethod]:
    """Load what ``pickle_methods`` made. A method that cannot be loaded here raises the reason when it is called."""
    return {name: _unpickle(name, data) for name, data in pickled.items()}


Signatures = Mapping[str, Sequence[tuple[str, Any, bool]]]
"""Per method, each parameter's name and kind, and whether it has a default."""


def signatures_of(actor_class: Any) -> Signatures:
    """Return the signatures of an actor class's methods, without types or values of the user."""
    return {
        method: [(parameter.name, parameter.kind, parameter.default is not Parameter.empty) for parameter in parameters]
        for method, parameters in actors.signatures_of(actor_class).items()
    }


def restore_signatures(handle: ActorHandle, signatures: Signatures) -> None:
    """Let a handle accept the arguments that its class accepts.

    In a driver that cannot import the class, Ray uses a placeholder whose methods accept only keyword arguments.
    """
    restored = {
        method: [
            Parameter(name, kind, default=None if has_default else Parameter.empty)
            for name, kind, has_default in parameters
        ]
        for method, parameters in signatures.items()
    }
    actors.set_signatures(handle, restored)


def _pickle(registered: RegisteredMethod) -> bytes:
    data: bytes
    with _by_value(registered):
        try:
            data = cloudpickle.dumps(registered)
            return data
        except Exception:
            # The user's functions use something that cannot be pickled. As references, they work in drivers that
            # have their module.
            pass
    data = cloudpickle.dumps(registered)
    return data


def _unpickle(name: str, data: bytes) -> RegisteredMethod:
    try:
        registered: RegisteredMethod = cloudpickle.loads(data)
    except Exception as error:
        return _unusable(f"the dispatch functions of {name!r} cannot be loaded in this process: {error!r}")
    return registered


def _unusable(reason: str) -> RegisteredMethod:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise ImportError(f"{reason}. Call it through execute_all_sync, or install the module here.")

    return RegisteredMethod({"dispatch_fn": refuse, "collect_fn": refuse}, Execute.ALL, blocking=True)


@contextlib.contextmanager
def _by_value(registered: RegisteredMethod) -> Iterator[None]:
    """Pickle the modules of the user's dispatch functions with their code, not as references."""
    with contextlib.ExitStack() as stack:
        for module in _modules_of_functions(registered):
            cloudpickle.register_pickle_by_value(module)
            stack.callback(cloudpickle.unregister_pickle_by_value, module)
        yield


def _modules_of_functions(registered: RegisteredMethod) -> set[ModuleType]:
    functions = [_innermost(function) for function in registered.dispatch_fns().values()]
    names = {getattr(function, "__module__", None) for function in functions}
    ours = {name for name in names if name is None or name.split(".")[0] == "workergroups"}
    return {sys.modules[name] for name in names - ours - {"__main__"} if name in sys.modules}


def _innermost(function: Any) -> Any:
    while isinstance(function, partial):
        function = function.func
    return function
