"""connect and dashboard: a tunnel for other tools, or for a browser."""

from __future__ import annotations

import shlex
import time
from typing import Annotated

import typer

from workergroups_client import Cluster, Pool, RayConnection
from workergroups_client.login import LoginPage

from . import local_command
from .options import Command, Context, Namespace, PoolName
from .output import Teller, note, print_text

_LOOK_SECONDS = 3600.0


def connect(
    pool: PoolName,
    command: Command = None,
    namespace: Namespace = None,
    context: Context = None,
) -> None:
    """Run a command with RAY_ADDRESS and RAY_AUTH_TOKEN of a pool.

    Without a command, print the variables and hold the tunnel until Ctrl-C.
    """
    with Teller() as tell, Pool(pool, Cluster(namespace, context), tell) as found:
        environment = found.ray.environment
        tell.quiet()
        if command:
            raise typer.Exit(local_command.run(command, environment))
        for name, value in environment.items():
            print_text(f"export {name}={shlex.quote(value)}")
        hold(f"The tunnel to pool {found.name} is open until Ctrl-C.")


def dashboard(
    pool: PoolName,
    job: Annotated[str | None, typer.Option(help="Open the page of this job.")] = None,
    port: Annotated[int, typer.Option(help="A port of this machine; 0 for a free one.")] = 0,
    namespace: Namespace = None,
    context: Context = None,
) -> None:
    """Open a tunnel to Ray's dashboard, and print its address.

    The address logs a browser in, once. The tunnel is open until Ctrl-C.
    """
    cluster = Cluster(namespace, context)
    with Teller() as tell:
        found = Pool(pool, cluster, tell)
        with RayConnection(cluster, found.ray_cluster, port, tell) as ray, LoginPage(ray, _page(job)) as page:
            tell.quiet()
            print_text(f"open {page.url}")
            hold(f"This address logs in once. The dashboard of pool {found.name} is at {ray.url} until Ctrl-C.")


def hold(sentence: str) -> None:
    """Wait for Ctrl-C."""
    note(sentence)
    try:
        while True:
            time.sleep(_LOOK_SECONDS)
    except KeyboardInterrupt:
        note("closed")


def _page(job: str | None) -> str:
    return f"/#/jobs/{job}" if job else "/"
