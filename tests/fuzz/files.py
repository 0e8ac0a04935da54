"""Damage every file of the agent's exchange: arbitrary bytes, odd JSON, and what is not a regular file."""

import contextlib
import json
import os
import random
import shutil
import signal
import socket
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from tests.fuzz.case import Wrong
from tests.fuzz.values import MAX_BYTES, any_json, as_json, large, text
from workergroups_agent.exchange import Exchange, PreparedLaunch, ReportedGroup, ReportedPool, Reports
from workergroups_agent.files import UnreadableFile
from workergroups_agent.reporter.known import Known
from workergroups_agent.reporter.subtrees import subtrees
from workergroups_api.launch import Launch
from workergroups_api.plan import ClusterPlan, PlannedBundles, PlannedGroup, PlannedPool
from workergroups_api.report import DeadRank, GroupReport, PoolReport
from workergroups_api.vocabulary import RankEnd

# Reading everything once must take less, whatever the files contain.
READ_SECONDS = 5.0
# The exchange is in memory, in pods too.
MEMORY = "/dev/shm"
SESSION = "session"
POOL = PlannedPool(
    name="p",
    uid="uid-p",
    node_group="p-1",
    nodes=1,
    processes_per_node=1,
    bundle={"CPU": 1.0},
    vendor="none",
    devices_per_process=0,
    max_colocate_count=1,
)
GROUP = PlannedGroup(
    name="g",
    uid="uid-g",
    incarnation=1,
    launch_revision="r",
    session=SESSION,
    bundles=(PlannedBundles(pool="p", start=0, count=1),),
)
PLAN = ClusterPlan(cluster="c", pools=(POOL,), groups=(GROUP,))
LAUNCH = PreparedLaunch(uid=GROUP.uid, revision="r", launch=Launch(class_path="train.Trainer"))
REPORTS = Reports(
    session=SESSION,
    pools={"p": ReportedPool(uid=POOL.uid, report=PoolReport(session=SESSION, joined_nodes=1))},
    groups={"g": ReportedGroup(uid=GROUP.uid, report=GroupReport(session=SESSION, incarnation=1))},
)
DEAD = DeadRank(
    uid=GROUP.uid,
    incarnation=1,
    rank=0,
    reason=RankEnd.PROCESS_DIED,
    message="killed",
    pod="pod",
    died=datetime(2026, 1, 1, tzinfo=UTC),
)
KNOWN = Known(plan=PLAN, groups={GROUP.name: None})


def check(choices: random.Random) -> str:
    """Damage one file, read everything, repair the file, and read everything again."""
    with tempfile.TemporaryDirectory(prefix="fuzz-exchange-", dir=MEMORY) as name:
        directory = Path(name)
        writer, reader = Exchange(directory), Exchange(directory)
        _write(writer)
        path = choices.choice(sorted(path for path in directory.rglob("*") if path.is_file()))
        how = choices.choice(SPOILERS)
        how(path, choices)
        with _deadline(f"{path.name}, {how.__name__}"):
            _read(reader)
        _remove(path)
        _write(writer)
        if _read(reader) != (PLAN, LAUNCH, REPORTS, SESSION, [DEAD]):
            raise Wrong(f"{path.name}, {how.__name__}: it is right again, and is not read")
    return how.__name__


def _write(exchange: Exchange) -> None:
    exchange.write_plan(PLAN)
    exchange.write_launch(LAUNCH)
    exchange.write_reports(REPORTS)
    exchange.beat(SESSION)
    exchange.previous_logs.begin()
    exchange.previous_logs.write(DEAD, b"line\n")


def _read(exchange: Exchange) -> tuple[Any, ...]:
    """Read as observer, reporter and command line do; only UnreadableFile may be raised."""
    exchange.plan_stamp(), exchange.launch_stamp(GROUP.uid), exchange.reports_stamp()
    plan = _or_none(exchange.read_plan)
    launch = _or_none(lambda: exchange.read_launch(GROUP.uid))
    reports = _or_none(exchange.read_reports)
    if reports is not None:
        _check_identities(reports)
    heartbeat = _or_none(exchange.read_heartbeat)
    if heartbeat is not None:
        exchange.has_read_reports_of(heartbeat)
    _or_none(exchange.previous_logs.since)
    for key in exchange.previous_logs.kept():
        _or_none(partial(exchange.previous_logs.read, key))
    dead = exchange.previous_logs.of_group(GROUP.uid)
    exchange.previous_logs.make_room()
    return plan, launch, reports, heartbeat.session if heartbeat else None, dead


def _check_identities(reports: Reports) -> None:
    """Check that whatever a report says, only statuses of planned objects are written."""
    planned = {(POOL.name, POOL.uid), (GROUP.name, GROUP.uid)}
    found = {(subtree.name, subtree.uid) for subtree in subtrees(reports, KNOWN).values()}
    if not found <= planned:
        raise Wrong(f"a report named {found - planned}, which the plan does not")


def _or_none(read: Callable[[], Any]) -> Any:
    with contextlib.suppress(UnreadableFile):
        return read()


@contextmanager
def _deadline(what: str) -> Iterator[None]:
    def late(*_: Any) -> None:
        raise Wrong(f"{what}: it takes longer than {READ_SECONDS} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, READ_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


# Damage to the content.


def arbitrary_bytes(path: Path, choices: random.Random) -> None:
    """Write bytes that have nothing to do with the file."""
    path.write_bytes(choices.randbytes(choices.choice((0, 1, 7, 100, 5000, 300_000))))


def broken_bytes(path: Path, choices: random.Random) -> None:
    """Change, add and remove a few bytes."""
    content = bytearray(path.read_bytes())
    for _ in range(choices.randint(1, 4)):
        place = choices.randrange(len(content) + 1)
        content[place : place + choices.randint(0, 3)] = choices.randbytes(choices.randint(0, 3))
    path.write_bytes(content)


def half(path: Path, choices: random.Random) -> None:
    """Cut the end off."""
    content = path.read_bytes()
    path.write_bytes(content[: choices.randrange(len(content) + 1)])


def other_json(path: Path, choices: random.Random) -> None:
    """Write JSON of another kind."""
    path.write_bytes(as_json(any_json(choices)))


def odd_member(path: Path, choices: random.Random) -> None:
    """Replace one member of valid JSON, wherever it is."""
    first, _, rest = path.read_bytes().partition(b"\n")
    try:
        root = [json.loads(first)]
    except ValueError:
        return other_json(path, choices)
    parent: Any = root
    key: Any = 0
    while isinstance(parent[key], dict | list) and parent[key] and choices.random() < 0.8:
        parent = parent[key]
        key = choices.choice(list(parent) if isinstance(parent, dict) else range(len(parent)))
    _replace(parent, key, choices)
    path.write_bytes(as_json(root[0]) + b"\n" + rest)


def _replace(parent: Any, key: Any, choices: random.Random) -> None:
    chance = choices.random()
    if chance < 0.2 and isinstance(parent, dict):
        parent[text(choices)] = parent.pop(key)
    elif chance < 0.3 and isinstance(parent, dict):
        del parent[key]
    elif chance < 0.35:
        parent[key] = large(choices)
    else:
        parent[key] = any_json(choices)


def doubled_member(path: Path, choices: random.Random) -> None:
    """Repeat members."""
    content = path.read_bytes()
    if content.startswith(b"{") and len(content) > 2:
        path.write_bytes(b'{"session":"x","uid":"y",' + content[1:])


def beyond_json(path: Path, choices: random.Random) -> None:
    """Write what only some parsers accept as JSON, or what breaks parsers."""
    odd = (
        b"[" * 1_000_000,
        b'{"a":' * 100_000,
        b"NaN",
        b"-Infinity",
        b"1e999",
        b"9" * 100_000,
        b'"\\ud800"',
        b"\xef\xbb\xbf{}",
    )
    path.write_bytes(choices.choice(odd))


def huge(path: Path, choices: random.Random) -> None:
    """Make it a sparse file of a tebibyte, or one that is just too large."""
    with path.open("r+b") as file:
        file.truncate(choices.choice((2**40, 100 * MAX_BYTES)))


# What is not a regular file.


def nothing(path: Path, choices: random.Random) -> None:
    """Remove the file."""
    path.unlink()


def pipe(path: Path, choices: random.Random) -> None:
    """Replace it by a pipe, which blocks its reader."""
    path.unlink()
    os.mkfifo(path)


def folder(path: Path, choices: random.Random) -> None:
    """Replace it by a directory."""
    path.unlink()
    path.mkdir()
    for number in range(choices.choice((0, 1, 500))):
        (path / f"{number}\n.lines").touch()


def link(path: Path, choices: random.Random) -> None:
    """Replace it by a link: to nothing, to itself, to an endless file, or to a secret."""
    path.unlink()
    path.symlink_to(
        choices.choice(("/nowhere", path.name, "/dev/zero", "/proc/self/mem", "/etc/passwd", "..", "/dev/tty"))
    )


def device(path: Path, choices: random.Random) -> None:
    """Replace it by a device."""
    path.unlink()
    with contextlib.suppress(PermissionError):
        os.mknod(path, stat.S_IFCHR | 0o666, choices.choice((os.makedev(1, 5), os.makedev(1, 3))))


def listening_socket(path: Path, choices: random.Random) -> None:
    """Replace it by a socket."""
    path.unlink()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))


def forbidden(path: Path, choices: random.Random) -> None:
    """Remove all permissions to read it."""
    path.chmod(0)


def crowded(path: Path, choices: random.Random) -> None:
    """Add many files with unexpected names next to it."""
    for number in range(choices.choice((10, 500))):
        (path.parent / f"{GROUP.uid}_{number}_{'9' * choices.randint(1, 200)}.lines").touch()
    (path.parent / "a\nb_1_2.lines").touch()
    (path.parent / f"launch-\udcff{number}.json").touch()


SPOILERS = (
    arbitrary_bytes,
    broken_bytes,
    half,
    other_json,
    odd_member,
    odd_member,
    odd_member,
    odd_member,
    doubled_member,
    beyond_json,
    huge,
    nothing,
    pipe,
    folder,
    link,
    device,
    listening_socket,
    forbidden,
    crowded,
)
