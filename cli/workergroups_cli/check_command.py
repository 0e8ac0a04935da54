"""check: whether the nodes of a pool have what it asks for, and reach each other."""

from __future__ import annotations

from typing import Annotated

import typer

from workergroups_client import Cluster, Pool

from .exit_codes import FAILED
from .json_output import print_list
from .options import Context, Format, Namespace, PoolName
from .output import Output, Teller, print_text


def check(
    pool: PoolName,
    fabric: Annotated[
        bool, typer.Option("--fabric", help="Also measure an all-reduce over the processes, and check RDMA adapters.")
    ] = False,
    output: Format = Output.text,
    namespace: Namespace = None,
    context: Context = None,
) -> None:
    """Check the nodes of a pool: devices, versions, connections.

    It also checks shared memory and volumes, and names the nodes where something is wrong; then the exit code is 1.
    """
    with Teller() as tell, Pool(pool, Cluster(namespace, context), tell) as found:
        tell(f"asking the nodes of pool {found.name}" + (" and measuring an all-reduce" if fabric else ""))
        made = found.check(fabric=fabric)
    if output is Output.json:
        print_list("Finding", made.findings, pool=found.name, isWell=made.is_well, answer=made.answer)
    else:
        for each in made.findings:
            text = f"{each.subject:<12} {'ok' if each.is_well else 'wrong':<6} {each.message}"
            print_text(text, "green" if each.is_well else "red")
    raise typer.Exit(0 if made.is_well else FAILED)
