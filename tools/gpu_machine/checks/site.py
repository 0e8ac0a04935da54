"""Where a check runs: the cluster, and on how many nodes the GPUs are; and where it tells what it has found."""

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tools.demo.kubectl import Kubectl
from tools.gpu_machine.layout import RESULTS

TABLE = Path(RESULTS, "table.md")
_HEADER = "| GPUs | check | what must hold | held | seen |\n|---|---|---|---|---|\n"


@dataclass
class Report:
    """What a check says: to the terminal and to a file of the results, with the seconds since it began."""

    gpus: str
    check: str
    missed: int = 0
    _began: float = field(default_factory=time.monotonic)

    def __call__(self, text: str) -> None:
        """Say something."""
        line = f"[{time.monotonic() - self._began:6.1f}] {text}"
        print(line, flush=True)
        with Path(RESULTS, f"{self.check}-{self.gpus.replace(' ', '-')}.txt").open("a") as file:
            print(line, file=file)

    def row(self, what: str, held: bool, seen: object) -> None:
        """Judge one thing: a line of the table of all checks."""
        self.missed += not held
        verdict = "yes" if held else "**no**"
        self(f"{verdict}: {what}: {seen}")
        if not TABLE.exists():
            TABLE.write_text(_HEADER)
        cells = [self.gpus, self.check, what, verdict, str(seen).replace("|", "\\|").replace("\n", " ")[:300]]
        with TABLE.open("a") as file:
            print(f"| {' | '.join(cells)} |", file=file)


@dataclass(frozen=True)
class Site:
    """The cluster's GPUs, half of them on each node if there are two, and the report of one check."""

    kubectl: Kubectl
    gpus: int
    nodes: int
    say: Report

    def pool(self, name: str, *, gpus: int | None = None, **spec: Any) -> dict[str, Any]:
        """Return a pool, by default of all GPUs, one process for each."""
        count = self.gpus if gpus is None else gpus
        nodes = self.nodes if gpus is None else 1
        # A bundle of verl's has ten CPUs.
        cpus = 12 * count // nodes
        by_default = {
            "nodes": nodes,
            "processesPerNode": count // nodes,
            "accelerator": {"vendor": "nvidia"},
            "head": {"nodeSelector": {"workergroups.dev/node": "nvidia"}},
            "agent": {"nodeSelector": {"workergroups.dev/node": "nvidia"}},
            "resources": {"requests": {"cpu": 1, "memory": "8Gi"}, "limits": {"cpu": cpus, "memory": "100Gi"}},
            "sharedMemory": "16Gi",
        }
        return _object("ResourcePool", name, by_default | spec)


def group(name: str, **spec: Any) -> dict[str, Any]:
    """Return a group on the pool `gpu`, with the modules of `programs/` as its code."""
    by_default = {
        "pools": [{"name": "gpu"}],
        "worker": {"class": "ranks.Rank"},
        "code": {"configMap": {"name": "checks"}},
        "failurePolicy": {"restart": "Group", "maxRestarts": 30, "windowSeconds": 600, "backoffSeconds": 0},
    }
    return _object("WorkerGroup", name, by_default | spec)


def _object(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "workergroups.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec}
