"""What a node must have before the ranks of a group start there. The launching tasks see to it, in the pools' pods."""

import shutil
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from workergroups.node import group_env
from workergroups.ray_private.process import own_pod
from workergroups_agent.executor import launch_record
from workergroups_agent.executor.launch_record import LaunchStep, Record
from workergroups_agent.launch_state import LaunchKey

# The kubelet updates a mounted Secret within about a minute and a half.
DELIVERY_SECONDS = 240.0
POLL_SECONDS = 0.5


@dataclass(frozen=True)
class CodeDirectory:
    """The directory where the ranks of every node look for their code, and the ConfigMap's files that belong there."""

    path: str
    # Their texts, by path in the directory.
    files: Mapping[str, str]


@dataclass(frozen=True)
class Environment:
    """The variables that a group takes from Secrets and ConfigMaps: which version, and who waits for it."""

    group: str
    digest: str
    launch: LaunchKey
    attempt: str


@dataclass(frozen=True)
class Provisions:
    """What the ranks on one node need, apart from the ConfigMap's files, which all nodes have in common."""

    # The pool of the node, for messages.
    pool: str
    # The directory of the code, which the pool mounts.
    code_path: str | None = None
    environment: Environment | None = None

    @property
    def is_any(self) -> bool:
        """Whether the ranks need anything."""
        return self.code_path is not None or self.environment is not None


def provide(files: CodeDirectory | None, needed: Provisions) -> str | None:
    """Provide this node with what the ranks need; return what went wrong, None if nothing did."""
    if needed.code_path is not None and not Path(needed.code_path).is_dir():
        return (
            f"spec.code.path: there is no directory {needed.code_path} in pod {own_pod()}: mount it with spec.volumes "
            f"of pool {needed.pool}, or correct the path"
        )
    problem = None if files is None else _place(files)
    return problem if problem or needed.environment is None else _await_delivery(needed.environment)


def _await_delivery(needed: Environment) -> str | None:
    """Wait until this pod has the variables, and report that."""
    waiting = f"for the kubelet to deliver the environment of group {needed.group} to pod {own_pod()}"
    deadline = time.monotonic() + DELIVERY_SECONDS
    has_told = False
    while group_env.delivered(needed.group, needed.digest) is None:
        if time.monotonic() > deadline:
            return f"waited {DELIVERY_SECONDS:g} s {waiting}: see the events of the pod"
        if not has_told:
            record = Record(needed.attempt, LaunchStep.WAITING, f"waiting {waiting}")
            launch_record.write(needed.launch, record)
            has_told = True
        time.sleep(POLL_SECONDS)
    return None


def _place(code: CodeDirectory) -> str | None:
    try:
        _write(code)
    except (OSError, ValueError) as error:
        return f"the code cannot be written in pod {own_pod()}: {error}"
    return None


def _write(code: CodeDirectory) -> None:
    target = Path(code.path)
    if target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(dir=target.parent))
    try:
        for name, text in code.files.items():
            path = draft / _inside(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", errors="surrogatepass")
        draft.chmod(0o755)
        draft.rename(target)
    except OSError:
        # Another task on the same node was faster.
        if not target.exists():
            raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)  # it is there only if it has not become the target


def _inside(name: str) -> PurePosixPath:
    """Return the path of a file, which must not lead out of the directory of the code."""
    path = PurePosixPath(name)
    if path.is_absolute() or not path.parts or ".." in path.parts:
        raise ValueError(f"{name!r} is no path of a file in a directory")
    return path
