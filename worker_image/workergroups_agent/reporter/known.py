"""What the reporter knows of the API server's objects."""

from dataclasses import dataclass, field

from workergroups_api.manifest import Manifest
from workergroups_api.plan import ClusterPlan


@dataclass(frozen=True)
class Unreadable:
    """Why the object could not be read yet."""

    why: str


@dataclass(frozen=True)
class CodeFiles:
    """The current content of a code ConfigMap."""

    files: dict[str, str]
    digest: str


# An object, None if there is none.
Found = Manifest | Unreadable | None
FoundCode = CodeFiles | Unreadable | None


@dataclass
class Known:
    """The plan, its groups and their code, each as last read. Each change must increment `version`."""

    plan: ClusterPlan | None = None
    # By name; absent while nothing is known.
    groups: dict[str, Found] = field(default_factory=dict)
    code: dict[str, FoundCode] = field(default_factory=dict)
    # Why the plan cannot be handed to the observer, if it cannot.
    trouble: str | None = None
    version: int = 0
