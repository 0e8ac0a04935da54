"""What the reporter knows of the API server's objects."""

from dataclasses import dataclass, field

from workergroups_api.manifest import Manifest
from workergroups_api.plan import ClusterPlan


@dataclass(frozen=True)
class Unreadable:
    """Nothing could be read yet; why."""

    why: str


@dataclass(frozen=True)
class CodeFiles:
    """The present content of a code ConfigMap."""

    files: dict[str, str]
    digest: str


# An object, None if there is none.
Found = Manifest | Unreadable | None
FoundCode = CodeFiles | Unreadable | None


@dataclass
class Known:
    """The plan, the groups that it names, and their code, each as last read; who changes it counts `version` up."""

    plan: ClusterPlan | None = None
    # By name; absent as long as nothing is known.
    groups: dict[str, Found] = field(default_factory=dict)
    code: dict[str, FoundCode] = field(default_factory=dict)
    # Why the plan does not reach the observer, if it does not.
    trouble: str | None = None
    version: int = 0
