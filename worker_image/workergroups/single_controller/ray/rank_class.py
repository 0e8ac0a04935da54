"""The actor class of a rank: a subclass of the user's class that sets its process up before the constructor runs."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import ray
from ray.actor import ActorClass

from workergroups.debugger import stopping
from workergroups.debugger.post_mortem import with_post_mortem
from workergroups.ray_private import actors
from workergroups.single_controller.base import ClassWithInitArgs
from workergroups.single_controller.base.call_forms import first_by_name
from workergroups.single_controller.base.decorator import registered_methods

from .notice_method import NOTICE_METHOD, listen, notice_method, wants_notice
from .rank_process import RankLaunch
from .run_method import RUN_METHOD, run_method
from .taken_names import check_methods

MAX_ERROR_CHARACTERS = 65536


class RayClassWithInitArgs(ClassWithInitArgs):
    """A rank's class with the arguments of its constructor.

    Args:
        cls: A class, with or without ``@ray.remote``; a `Worker` or any other. It may be given by keyword; if it is
            given by position, a keyword ``cls`` belongs to the constructor.
        *args: Positional arguments of its constructor, the same for each rank.
        **kwargs: Keyword arguments of its constructor, of any name.
    """

    @first_by_name("cls")
    def __init__(self, cls: Any, /, *args: Any, **kwargs: Any) -> None:
        super().__init__(cls, *args, **kwargs)
        self.options: dict[str, Any] = {}

    def update_options(self, options: dict[str, Any]) -> None:
        """Add Ray actor options, such as ``{"num_cpus": 2}``, for the ranks that are created from now on."""
        self.options.update(options)

    @property
    def user_class(self) -> type:
        """The class as the user wrote it, without ``@ray.remote``."""
        return user_class(self.cls)

    def check_arguments(self) -> None:
        """Check here, and not in every rank, what a group calls and what the constructor gets.

        Raises:
            TypeError: The constructor does not accept these arguments.
            ValueError: A registered method has a name that groups have for something else.
        """
        check_methods(self.user_class.__name__, registered_methods(self.user_class))
        try:
            signature = inspect.signature(self.user_class)
        except ValueError:
            return  # a class implemented in C may not say
        try:
            signature.bind(*self.args, **self.kwargs)
        except TypeError as error:
            shown = signature.replace(return_annotation=inspect.Signature.empty)
            said = "; ".join([str(error), *_unexpected(signature, error, self.args, self.kwargs)])
            raise TypeError(f"{self.user_class.__name__}{shown}: {said}") from None


def _unexpected(
    signature: inspect.Signature, error: TypeError, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> list[str]:
    """Return what Python's error does not say of keywords that the constructor does not have: what was meant."""
    parameters = signature.parameters.values()
    if any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters):
        return []
    named = [each for each in parameters if each.kind not in (each.POSITIONAL_ONLY, each.VAR_POSITIONAL)]
    unexpected = [name for name in kwargs if name not in {each.name for each in named}]
    free = [each for each in named[len(args) :] if each.name not in kwargs]
    missing = [each.name for each in free if each.default is each.empty]
    said = []
    for name in unexpected:
        likely = difflib.get_close_matches(name, [each.name for each in free], 1)
        likely = likely or (missing if len(missing) == len(unexpected) == 1 else [])
        meant = [f"did you mean {likely[0]!r}?"] if likely else []
        said.append(", ".join([*([] if repr(name) in str(error) else [f"unexpected {name!r}"]), *meant]))
    return list(filter(None, said))


def user_class(cls: Any) -> type:
    """Return the class as the user wrote it, with or without ``@ray.remote``."""
    if isinstance(cls, ActorClass):
        return actors.class_of(cls)
    if isinstance(cls, type):
        return cls
    raise TypeError(f"the class of a worker group must be a class, with or without @ray.remote, not {cls!r}")


@functools.lru_cache(maxsize=256)
def rank_actor_class(cls: Any, post_mortem: bool = False) -> Any:
    """Return the Ray actor class of the ranks of ``cls``, whose constructor takes what `launch_arguments` returns.

    It is cached, since Ray ships each actor class to the cluster once.

    Args:
        cls: The user's class.
        post_mortem: Whether a rank pauses for a debugger before an exception leaves its constructor or a method.
    """
    base: Any = user_class(cls)

    def __init__(self: Any, launch: RankLaunch, keywords: tuple[str, ...], /, *values: Any) -> None:
        launch()
        positional = len(values) - len(keywords)
        try:
            base.__init__(self, *values[:positional], **dict(zip(keywords, values[positional:], strict=True)))
        except Exception as error:
            if post_mortem:
                stopping.post_mortem(error)
            shortened = _shortened(error)
            if shortened is error:
                raise
            raise shortened.with_traceback(error.__traceback__) from None
        listen(self)

    def __repr__(self: Any) -> str:
        return _shown_name(self, base)

    namespace = {
        **(with_post_mortem(base, stopping.post_mortem) if post_mortem else {}),
        "__init__": __init__,
        "__repr__": __repr__,
        RUN_METHOD: run_method(base),
        **({NOTICE_METHOD: notice_method(base)} if wants_notice(base) else {}),
        "__doc__": base.__doc__,
        "__module__": base.__module__,
        "__qualname__": base.__qualname__,
    }
    rank_class = type(base)(base.__name__, (base,), namespace)
    options = actors.options_of(cls) if isinstance(cls, ActorClass) else {}
    return ray.remote(**options)(rank_class) if options else ray.remote(rank_class)


def _shown_name(rank: Any, base: Any) -> str:
    """Return what Ray shows before a rank's lines: what its class's ``__repr__`` returns, or else the class's name.

    It is never empty: by it, the agent knows that the constructor has returned. Ray asks for it only then, but briefly
    calls an actor alive even if its constructor has raised.
    """
    name = str(base.__name__)
    if base.__repr__ is object.__repr__:
        return name
    try:
        return str(base.__repr__(rank)) or name
    except Exception:  # an error in the user's __repr__ must not end the rank
        return name


def _shortened(error: Exception) -> Exception:
    """Return the error, or a shorter one, since Ray's control service stores the text of each rank's error."""
    text = str(error)
    if len(text) <= MAX_ERROR_CHARACTERS:
        return error
    return RuntimeError(f"{type(error).__name__}: {text[:MAX_ERROR_CHARACTERS]} ... (of {len(text)} characters)")


def launch_arguments(launch: RankLaunch, ray_cls_with_init: RayClassWithInitArgs) -> tuple[Any, ...]:
    """Return the arguments for the constructor of a rank's actor class.

    All are positional, since a user's keyword could have the name of one of Ray's parameters, such as ``self``. None is
    nested in another, so that Ray replaces object references by their values.
    """
    kwargs = ray_cls_with_init.kwargs
    return launch, tuple(kwargs), *ray_cls_with_init.args, *kwargs.values()
