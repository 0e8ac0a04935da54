"""The named dispatch and execute modes: open enumerations, since users may register modes of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar

from workergroups.errors import InvalidValueError

if TYPE_CHECKING:
    from typing_extensions import Self  # in typing since Python 3.11


class _OpenEnumMeta(type):
    """Lets a class of named members be iterated and indexed as an ``enum`` is, and grow."""

    _registry: dict[str, Any]

    def __iter__(cls) -> Iterator[Any]:
        return iter(cls._registry.values())

    def __contains__(cls, item: object) -> bool:
        return item in cls._registry if isinstance(item, str) else item in cls._registry.values()

    def __getitem__(cls, name: str) -> Any:
        return cls._registry[name]

    def __getattr__(cls, name: str) -> Any:
        try:
            return cls._registry[name]
        except KeyError:
            known = ", ".join(cls._registry)
            raise AttributeError(f"{cls.__name__} has no mode {name!r}; it has {known}") from None

    def names(cls) -> list[str]:
        """Return the names of all members, in the order of registration."""
        return list(cls._registry)


class _OpenEnum(metaclass=_OpenEnumMeta):
    _registry: ClassVar[dict[str, Any]]

    def __init__(self, name: str, value: int) -> None:
        self.name = name
        self.value = value

    def __init_subclass__(cls) -> None:
        cls._registry = {}

    def __repr__(self) -> str:
        return f"<{type(self).__name__}.{self.name}: {self.value}>"

    def __reduce__(self) -> tuple[Callable[[str], Self], tuple[str]]:
        return type(self)._named, (self.name,)

    @classmethod
    def _named(cls, name: str) -> Self:
        """Return the member of that name, here and in every process that unpickles one."""
        member: Self = cls._registry[name]
        return member

    @classmethod
    def register(cls, name: str) -> Self:
        """Add a member; its name is made upper case.

        Raises:
            ValueError: The name is taken.
        """
        key = name.upper()
        if key in cls._registry:
            raise InvalidValueError(f"{cls.__name__}.{key} exists already; choose another name")
        member = cls(key, len(cls._registry))
        cls._registry[key] = member
        return member


class Dispatch(_OpenEnum):
    """How the driver's arguments are split over the ranks, and their results collected."""


class Execute(_OpenEnum):
    """Which ranks run the method."""


for _name in (
    "ONE_TO_ALL",
    "ALL_TO_ALL",
    "DP_COMPUTE",
    "DP_COMPUTE_PROTO",
    "DP_COMPUTE_PROTO_WITH_FUNC",
    "DP_COMPUTE_METRIC",
    "DIRECT_ROLLOUT_METHOD",
    # The names of verl's first documents; the first three are no identifiers, so they are written Dispatch["3D_PROTO"].
    "3D_PROTO",
    "3D_ALL_MICRO_DP",
    "3D_PP_ONLY",
    "DP_PROTO",
):
    Dispatch.register(_name)
for _name in ("ALL", "RANK_ZERO"):
    Execute.register(_name)
