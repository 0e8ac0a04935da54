"""init: write a first pool and group."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Annotated

import typer

from workergroups_api.resource_pool import DNS_1035, MAX_NAME
from workergroups_client.errors import ClientError

from .output import note

_FILE = "pool.yaml"
_OTHERWISE = "first"

_MANIFESTS = """\
# The class of the ranks. For more code, use a larger ConfigMap, or an image: see docs/groups.md.
apiVersion: v1
kind: ConfigMap
metadata:
  name: {name}-code
data:
  adder.py: |
    from workergroups import Worker


    class Adder(Worker):
        def add(self, x):
            return self.rank + x
---
# Processes that are reserved on nodes.
apiVersion: workergroups.dev/v1alpha1
kind: ResourcePool
metadata:
  name: {name}
spec:
  nodes: 1
  processesPerNode: {processes}
{accelerator}
---
# A rank for each process of the pool of the same name. Once they are ready, this calls all of them:
#   {call}
# For a program, use workergroups job submit {name} --working-dir . -- python driver.py.
apiVersion: workergroups.dev/v1alpha1
kind: WorkerGroup
metadata:
  name: {name}
spec:
  worker:
    class: adder.Adder
  code:
    configMap:
      name: {name}-code
"""
_CALL = (
    "workergroups exec {name} -- python -c "
    """"import workergroups; print(workergroups.attach('{name}').execute_all_sync('add', 10))\""""
)
_GPUS = """\
  # Each process has a GPU of NVIDIA. For only one product, such as H100, uncomment the line: its value is that of the
  # node label nvidia.com/gpu.product. For GPUs of AMD, write vendor: amd.
  accelerator:
    vendor: nvidia
    # product: NVIDIA-H100-80GB-HBM3"""
_CPUS = """\
  # The processes are on CPUs. For a GPU each, remove these lines.
  accelerator:
    vendor: none"""


def init(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="The name of both; by default that of this folder.")
    ] = None,
    file: Annotated[str, typer.Option("--file", "-f", metavar="FILE", help="The file, or - to print it.")] = _FILE,
    cpus: Annotated[bool, typer.Option("--cpus", help="A pool of processes on CPUs, without GPUs.")] = False,
    processes: Annotated[int, typer.Option(metavar="N", min=1, max=64, help="Processes of the node.")] = 2,
) -> None:
    """Write a file with a first pool and a group on it.

    It is for you to edit. It does not replace an existing file, and needs no cluster.
    """
    chosen = _name_of_folder() if name is None else name
    if not (re.fullmatch(DNS_1035, chosen) and len(chosen) <= MAX_NAME):
        raise typer.BadParameter(
            f"{chosen!r} cannot be the name of a pool: write at most {MAX_NAME} lower-case letters, digits and '-', "
            f"with a letter first, and a letter or a digit last",
            param_hint="NAME",
        )
    devices = _CPUS if cpus else _GPUS
    text = _MANIFESTS.format(name=chosen, processes=processes, accelerator=devices, call=_CALL.format(name=chosen))
    if file == "-":
        sys.stdout.write(text)
        return
    _write(Path(file), text)
    note(f"{file} has pool {chosen} and group {chosen}; edit it, and then: workergroups up -f {file}")


def _name_of_folder() -> str:
    """Return the folder's name as one of a pool, or another name."""
    name = re.sub("[^a-z0-9]+", "-", Path.cwd().name.lower()).strip("-")[:MAX_NAME].rstrip("-")
    return name if re.fullmatch(DNS_1035, name) else _OTHERWISE


def _write(path: Path, text: str) -> None:
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise ClientError(f"{path} exists, and is not replaced: choose another one with --file") from error
    except OSError as error:
        raise ClientError(f"{path} cannot be written: {error.strerror}") from error
