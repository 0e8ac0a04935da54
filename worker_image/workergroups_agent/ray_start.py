"""A faster `ray start` for head and workers.

Ray does these things in sequence, and need not:

- On the head, Ray starts the dashboard and waits for its address in the GCS before it starts the raylet. The dashboard
  first imports its modules, for seconds. Here its address is written as soon as it is started.
- Since Ray 2.60, a worker asks the GCS every two seconds for the head's node, and reads two directories from it. Here
  the head announces them before its raylet has joined, so that both raylets start at the same time.
- A worker imports Ray while the head's GCS starts.
- A worker process with environment variables of its own imports Ray twice, with `worker_process.setup_worker` once.
- Ray gives up on a node that has not joined after 30 s, and its container starts again. Where the CPUs are busy, the
  next try takes as long. Here a node has more time.

A raylet also lets more processes start at once than Ray would, so that those that hang keep no other waiting.

A worker process can be asked for its stacks, whatever it runs, and `breakpoint()` pauses it on its loopback: see
`worker_process.default_worker`.

It also watches whether the kernel ends processes of a worker's container for lack of memory, which Ray does not know,
and ends what ranks leave behind: see `left_processes`.

Ray has no options for this, so three functions of Ray are replaced: see `workergroups.ray_private.start`.
"""

import hashlib
import logging
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from subprocess import Popen
from typing import Any, NamedTuple

from workergroups.node import memory_kills, notice
from workergroups.ray_private import start as ray_private
from workergroups.ray_private.process import own_pod
from workergroups.worker_process import default_worker, setup_worker
from workergroups_agent import head_directories, left_processes
from workergroups_agent.check_image import TERMINATION_LOG
from workergroups_agent.gcs_storage import OPTION, GcsStorage
from workergroups_agent.listening import wait_for_gcs
from workergroups_agent.next_head import wait_for_next_head
from workergroups_api.heads import HEAD_AWAY_SECONDS, KEEPALIVE
from workergroups_api.vocabulary import Variable

_WHEN_IDLE = str(Path(__file__).parent / "when_idle.py")
# No node, placement group or rank depends on these processes of Ray, nor do the last lines of a rank that dies soon.
# They start when a CPU is idle, and after WAIT_SECONDS at the latest.
_MAY_WAIT = {"dashboard", "monitor", "ray_client_server"}
WAIT_SECONDS = 10.0
NICE = 10
# After this, a worker asks for the head's node in Ray's own way, which reports what is wrong.
SECONDS = 20.0
POLL_SECONDS = 0.1
# For so long, a node may take to join.
JOIN_SECONDS = 180.0
# After the end of a raylet, Ray needs up to two seconds to end by itself and say why.
RAY_ENDS_SECONDS = 4.0
# So long, a node that is about to go tries to reach the GCS.
GCS_SECONDS = 2.0
# That many processes may hang while they start without keeping others from starting. A launch has one.
HANGING_STARTS = 64
_STARTS = re.compile("^(--maximum_startup_concurrency=)([0-9]+)")
_LOCAL = ("127.0.0.1", "localhost")
# Where Ray keeps the dashboard's address, in the GCS's key-value store.
_KEY = _NAMESPACE = b"dashboard"
RAYLET_OUTPUT = Path("/tmp/ray/session_latest/logs/raylet.out")
_LAST_LINES = 8
_LAST_BYTES = 4096


class DashboardProcess(NamedTuple):
    """What the command line of a dashboard says."""

    gcs_address: str
    session_dir: str
    address: str
    """The address that it is going to write into the GCS."""


def dashboard_of(command: Sequence[str]) -> DashboardProcess | None:
    """Return what a dashboard's command line says; None if an option is missing, as in another version of Ray."""
    options = dict(each[2:].split("=", 1) for each in command if each.startswith("--") and "=" in each)
    host, port, gcs, session = (options.get(name) for name in ("host", "port", "gcs-address", "session-dir"))
    ip = host if host in _LOCAL else options.get("node-ip-address")
    return DashboardProcess(gcs, session, f"{ip}:{port}") if ip and port and gcs and session else None


def announce(dashboard: DashboardProcess) -> None:
    """Write the session's directories, and the dashboard's address; the dashboard writes that again when it listens."""
    try:
        gcs = ray_private.connect(dashboard.gcs_address)
        head_directories.announce(gcs, dashboard.session_dir)
        ray_private.put(gcs, _NAMESPACE, _KEY, dashboard.address.encode(), overwrite=True)
    except Exception as error:
        print(f"Ray waits for its dashboard, since the GCS refuses its address: {type(error).__name__}", flush=True)


def our_start_process(theirs: Callable[..., Any], raylets: list[Popen[bytes]] | None = None) -> Callable[..., Any]:
    """Return our start of a process of Ray: some wait for an idle CPU, and a raylet gets our workers' programs.

    Each raylet that it starts is added to `raylets`.
    """

    def start(command: list[str], process_type: str, *positional: Any, **named: Any) -> Any:
        if process_type == "raylet":
            ours = {ray_private.RAYS_SETUP_WORKER: setup_worker, ray_private.RAYS_DEFAULT_WORKER: default_worker}
            for rays, module in ours.items():
                command = [each.replace(rays, str(module.__file__)) for each in command]
            command = [_STARTS.sub(_more_starts, each) for each in command]
        if process_type in _MAY_WAIT:
            command = [sys.executable, _WHEN_IDLE, str(WAIT_SECONDS), *command]
        started = theirs(command, process_type, *positional, **named)
        if process_type in _MAY_WAIT:
            with suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, started.process.pid, NICE)
        if process_type == "raylet" and raylets is not None:
            raylets.append(started.process)
        if process_type == "dashboard" and (dashboard := dashboard_of(command)) is not None:
            announce(dashboard)
        return started

    return start


def _more_starts(limit: re.Match[str]) -> str:
    """Return the raylet's option for how many processes may start at once: those that hang must keep none waiting."""
    return f"{limit[1]}{int(limit[2]) + HANGING_STARTS}"


def our_find_head_node(theirs: Callable[..., Any]) -> Callable[..., Any]:
    """Return our way to find the head's node: the announced directories, or else the node itself."""

    def ask(gcs: Any, *, timeout_per_retry: float | None = None, **choice: Any) -> Any:
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            if (directories := head_directories.announced(gcs)) is not None:
                return [directories]
            if nodes := ray_private.nodes(gcs, timeout=timeout_per_retry, **choice):
                return nodes
            time.sleep(POLL_SECONDS)
        return theirs(gcs, timeout_per_retry=timeout_per_retry, **choice)

    return ask


def our_get_node(
    theirs: Callable[..., Any], raylets: Sequence[Popen[bytes]], joined: Callable[[], None]
) -> Callable[..., Any]:
    """Return our way to wait until a node has joined: Ray's, which waits for 30 s, while the raylet runs."""

    def ask(gcs_address: str, node_id: str) -> Any:
        deadline = time.monotonic() + JOIN_SECONDS
        while True:
            try:
                node = theirs(gcs_address, node_id)
                joined()
                return node
            except RuntimeError as error:
                if ended := [raylet.returncode for raylet in raylets if raylet.poll() is not None]:
                    # Ray would ask again after a RuntimeError.
                    raise ChildProcessError(f"the raylet has ended with code {ended[0]}: {last_words()}") from error
                if time.monotonic() > deadline:
                    raise
                print(f"this node has not joined yet: {error}", flush=True)
                time.sleep(POLL_SECONDS)

    return ask


def tell_memory_kills(gcs_address: str, groups: Path = memory_kills.GROUPS) -> None:
    """Write into the GCS, under this pod's name, when the kernel ended processes for lack of memory; do so for ever."""

    def tell(times: Sequence[float]) -> None:
        print(f"the kernel has ended a process of this container for lack of memory: {times}", flush=True)
        record, namespace = memory_kills.to_record(times), memory_kills.KV_NAMESPACE.encode()
        try:
            ray_private.put(ray_private.connect(gcs_address), namespace, own_pod().encode(), record, overwrite=True)
        except Exception as error:
            print(f"the GCS does not learn of it: {type(error).__name__}", flush=True)

    memory_kills.watch(tell, groups)


def tell_notice(gcs_address: str) -> None:
    """When this node is about to go, tell drivers, and let the node's end wait for them."""
    if not notice.is_expected():
        return
    answered = notice.wait_for_me()

    def tell(given: notice.Notice) -> None:
        print(f"this node ends within {given.seconds:.0f} s: {given.reason}", flush=True)
        has_told = threading.Event()
        telling = threading.Thread(target=tell_drivers, args=[gcs_address, given, has_told], daemon=True)
        telling.start()
        # The head may be gone, or going at the same time, and Ray tries for long to connect.
        if has_told.wait(GCS_SECONDS):
            telling.join()
        answered()

    notice.watch(tell)


def withdraw_earlier_notice(gcs_address: str) -> None:
    """Let drivers no longer read the notice that an earlier container of this pod has given."""
    client, key = ray_private.connect(gcs_address), own_pod().encode()
    if ray_private.get(client, notice.KV_NAMESPACE.encode(), key):
        ray_private.put(client, notice.KV_NAMESPACE.encode(), key, b"", overwrite=True)


def tell_drivers(gcs_address: str, given: notice.Notice, has_told: threading.Event) -> None:
    """Repeat a notice for drivers, and return when none keeps this node any more."""
    # No node needs these while it starts.
    from workergroups.announcements import notices
    from workergroups.ray_private.gcs import Gcs

    try:
        gcs = Gcs.connect(gcs_address)
        notices.tell(gcs, own_pod(), given)
        has_told.set()
        notices.wait_for_drivers(gcs, own_pod(), given)
    except Exception as error:
        print(f"drivers do not answer: {type(error).__name__}", flush=True)
    finally:
        has_told.set()


def leave_lost_head(gcs_address: str, raylets: Sequence[Popen[bytes]], has_joined: threading.Event) -> None:
    """End the raylets once they have joined and another head has come: none of them can join that."""

    def session() -> str | None:
        try:
            directories = head_directories.announced(ray_private.connect(gcs_address))
        except Exception as error:
            print(f"the GCS does not tell its session: {type(error).__name__}", flush=True)
            return None
        return directories.session_dir if directories else None

    has_joined.wait()
    wait_for_next_head(gcs_address, session)
    print("Ray's head was lost, and another has come: this node's raylet ends", flush=True)
    for raylet in raylets:
        raylet.kill()


def end_with_raylets(raylets: Sequence[Popen[bytes]], has_joined: threading.Event) -> None:
    """End this process with code 1 once its raylets have ended.

    `ray start --block` does so by itself, unless a raylet ended with code 0 or by SIGTERM: for Ray, that is a stop that
    somebody wanted. But a raylet also ends with 0 if the node's agent has died. Then the pod would have no node, and
    its devices nobody, until the liveness probe has failed for ten minutes.
    """
    has_joined.wait()
    for raylet in raylets:
        raylet.wait()
    time.sleep(RAY_ENDS_SECONDS)
    codes = ", ".join(str(raylet.returncode) for raylet in raylets)
    print(f"the raylet has ended with code {codes}, and this node ends: {last_words()}", flush=True)
    os._exit(1)


def storage_of_head(environ: Mapping[str, str], arguments: Sequence[str]) -> GcsStorage | None:
    """Return where the head's GCS keeps its state; None if it has no volume, or if this Ray cannot."""
    directory = environ.get(Variable.GCS_STORAGE)
    if not directory or not ray_private.KEEPS_GCS_STATE or any(each.startswith(OPTION) for each in arguments):
        return None
    owner = f"{ray_private.VERSION} {environ.get('RAY_AUTH_TOKEN')}"
    return GcsStorage(Path(directory), hashlib.sha256(owner.encode()).hexdigest())


def prepare(storage: GcsStorage) -> None:
    """Prepare the volume, or end this process with a message that the pool's status repeats."""
    try:
        storage.prepare()
    except OSError as error:
        why = (
            f"the GCS cannot keep its state on its volume: {error}. If that is a claim of head.gcsStorage, user "
            f"{os.getuid()} of the image must be able to write to it, such as by securityContext.fsGroup in "
            "head.podTemplate.spec"
        )
        with suppress(OSError):
            TERMINATION_LOG.write_text(why)
        sys.exit(why)


def last_words(output: Path = RAYLET_OUTPUT) -> str:
    """Return the last lines of the raylet's output: the next container has another file."""
    try:
        with output.open("rb") as file:
            file.seek(max(0, output.stat().st_size - _LAST_BYTES))
            lines = file.read().decode(errors="replace").splitlines()[-_LAST_LINES:]
    except OSError as error:
        return f"its output cannot be read: {error}"
    return "\n".join([f"the end of {output}:", *lines])


def main(gcs: str | None, joined: Callable[[], None]) -> None:
    """Run `ray start` with this process's arguments.

    Args:
        gcs: The address of the GCS that a worker joins; None on the head.
        joined: Called when the node has joined; on a head, only if it keeps its state.
    """
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    raylets: list[Popen[bytes]] = []
    ray_private.replace(ray_private.START_PROCESS, partial(our_start_process, raylets=raylets))
    ray_private.replace(ray_private.FIND_HEAD_NODE, our_find_head_node)
    has_joined = threading.Event()
    storage = storage_of_head(os.environ, sys.argv) if gcs is None else None

    def on_join() -> None:
        has_joined.set()
        if storage is not None:
            with suppress(OSError):  # then the next head finds one start too many
                storage.keep()
        if storage is not None or gcs is not None:
            joined()

    end = partial(end_with_raylets, raylets, has_joined)
    threading.Thread(target=end, name="end of the raylet", daemon=True).start()
    ray_private.replace(ray_private.GET_NODE, partial(our_get_node, raylets=raylets, joined=on_join))
    if ray_private.KEEPS_GCS_STATE:
        for name, value in {"RAY_gcs_rpc_server_reconnect_timeout_s": str(HEAD_AWAY_SECONDS), **KEEPALIVE}.items():
            os.environ.setdefault(name, value)
    if storage is not None:
        prepare(storage)
        sys.argv.append(storage.option)
    if gcs is not None:
        wait_for_gcs(gcs)
        print(f"the GCS listens at {gcs}", flush=True)
        threading.Thread(target=tell_memory_kills, args=[gcs], name="memory kills", daemon=True).start()
        threading.Thread(target=withdraw_earlier_notice, args=[gcs], name="earlier notice", daemon=True).start()
        threading.Thread(target=tell_notice, args=[gcs], name="notice", daemon=True).start()
        threading.Thread(target=left_processes.watch, name="left processes", daemon=True).start()
        leave = partial(leave_lost_head, gcs, raylets, has_joined)
        threading.Thread(target=leave, name="next head", daemon=True).start()
    ray_private.ray_command()
