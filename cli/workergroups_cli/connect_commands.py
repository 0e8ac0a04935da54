"""connect and dashboard: a tunnel for other tools, or for a browser."""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Mapping
from typing import Annotated
from urllib.parse import quote

import typer

from workergroups_client import Cluster, Pool, RayConnection
from workergroups_client.ray_cluster.dashboard import Dashboard

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
    job: Annotated[str | None, typer.Option(metavar="JOB", help="Open the page of this job.")] = None,
    port: Annotated[int, typer.Option(metavar="PORT", help="A port of this machine; 0 for a free one.")] = 0,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Only print the address.")] = False,
    namespace: Namespace = None,
    context: Context = None,
) -> None:
    """Open Ray's dashboard in the browser, and print its address.

    It opens no browser without a display. The address logs one browser in, once; no browser gets Ray's token. The
    dashboard is served until Ctrl-C.
    """
    cluster = Cluster(namespace, context)
    with Teller() as tell:
        found = Pool(pool, cluster, tell)
        ray_cluster = found.ray_cluster
        with RayConnection(cluster, ray_cluster, tell=tell) as ray, Dashboard(ray, _page(job), port) as served:
            tell.quiet()
            print_text(f"open {served.login_url}")
            if not no_browser and has_display(os.environ, sys.platform):
                import webbrowser

                webbrowser.open(served.login_url)
            hold(f"This address logs in once. The dashboard of pool {found.name} is at {served.url} until Ctrl-C.")


def has_display(environment: Mapping[str, str], platform: str) -> bool:
    """Return whether a browser can open a window: one that runs in the terminal would take the terminal away."""
    names = ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY")
    return platform in ("darwin", "win32") or any(environment.get(name) for name in names)


def hold(sentence: str) -> None:
    """Wait for Ctrl-C."""
    note(sentence)
    try:
        while True:
            time.sleep(_LOOK_SECONDS)
    except KeyboardInterrupt:
        note("closed")


def _page(job: str | None) -> str:
    return f"/#/jobs/{quote(job, safe='')}" if job else "/"
