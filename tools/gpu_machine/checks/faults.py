"""Each fault of a rank: what status, events and driver say, the seconds until all compute again, and what is left."""

import json
import re
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

from tools.console import ToolError
from tools.gpu_machine.checks import pods
from tools.gpu_machine.checks.site import Site

_LOOK_SECONDS = 0.2
_DRIVER_SECONDS = 150
_KILLED_AFTER = 6.0
_AFTERWARDS = 3.0  # what the status says last may come late


@dataclass(frozen=True)
class Fault:
    """A method of the ranks, and what is expected of it."""

    method: str
    # By when all compute again, from the call on.
    seconds: float
    # What the driver's error says; LAST is the last rank.
    error: str
    # The same of the failure in the status; None if the ranks live on.
    failure: str | None

    def of(self, last: int) -> "Fault":
        """Return what is expected if this is the last rank."""
        number = str(last)
        failure = self.failure and self.failure.replace("LAST", number)
        return replace(self, error=self.error.replace("LAST", number), failure=failure)


_FAULTS = {
    "hang": Fault("hang", 40, r"rank LAST", r'(?=.*Hung)(?=.*rank"?:? LAST)'),
    "kill": Fault("long_sum", _KILLED_AFTER + 20, r"rank LAST", r"SIGKILL|killed"),
    "out-of-memory": Fault("out_of_memory", 20, r"(?s)rank LAST.*OutOfMemory|OutOfMemory.*rank LAST", None),
    "illegal-access": Fault("illegal_access", 20, r"rank LAST", r"(?s)illegal memory access.*CUDA_VISIBLE_DEVICES"),
    "device-assert": Fault("device_assert", 20, r"rank LAST", r"(?s)device-side assert.*CUDA_VISIBLE_DEVICES"),
    "exit": Fault("exit_at_once", 20, r"rank LAST", r"ranks\.py"),
    "child": Fault("leave_child", 60, r"rank LAST", r"SIGKILL|killed"),
    "daemon": Fault("leave_daemon", 60, r"rank LAST", r"SIGKILL|killed"),
}


def check(name: str, site: Site) -> None:
    """Let a driver meet one fault, and watch."""
    fault = _FAULTS[name].of(site.gpus - 1)
    pods.have_ranks(site)
    before = pods.used_memory(site)
    failures_before = len(pods.status(site, "workergroup/gpu").get("failures", ()))
    events_before = set(_events(site))
    with _watched(site):
        printed = _drive(name, fault, site)
        time.sleep(_AFTERWARDS)
    for event in sorted(set(_events(site)) - events_before):
        site.say(f"event: {event}")
    _judge(site, fault, printed, failures_before)
    pods.judge_memory(site, "nothing is left on the devices", before)


def _judge(site: Site, fault: Fault, printed: str, failures_before: int) -> None:
    errors = re.findall(r"(?s)<<<\n(.*?)\n>>>", printed)
    first = errors[0] if errors else "no error"
    site.say.row("the driver's error names the rank", bool(re.search(fault.error, first)), first)
    group = pods.status(site, "workergroup/gpu")
    failures = group.get("failures", ())
    for failure in failures[:2]:
        site.say(f"failure: {json.dumps(failure)}")
    new = len(failures) - failures_before
    if fault.failure is None:
        site.say.row("the ranks live on", new == 0, f"{new} new failures")
    else:
        text = json.dumps(failures[0]) if new else f"{new} new failures"
        site.say.row("the status names the cause", new == 1 and bool(re.search(fault.failure, text)), text)
    again = re.search(r"([\d.]+) s: computes again", printed)
    in_time = again is not None and float(again[1]) <= fault.seconds
    seen = f"after {again[1]} s" if again else printed[-300:]
    site.say.row(f"all compute again within {fault.seconds:.0f} s of the call", in_time, seen)


def _drive(name: str, fault: Fault, site: Site) -> str:
    """Run the driver, print its lines as they come, and kill the last rank if that is the fault; return them."""
    printed = []
    running = pods.driving(site, "meet_fault", fault.method, seconds=_DRIVER_SECONDS, errors=subprocess.STDOUT)
    with running as driver:
        for line in driver.stdout or ():
            text = line.decode(errors="replace").rstrip()
            printed.append(text)
            site.say(f"driver| {text}")
            if name == "kill" and (found := re.match(r"processes: .*?(\S+/\d+)$", text)):
                threading.Timer(_KILLED_AFTER, pods.kill, (site, found[1])).start()
    return "\n".join(printed)


@contextmanager
def _watched(site: Site) -> Iterator[None]:
    """Report what changes in the conditions of group and pool meanwhile, word for word."""
    ended = threading.Event()
    watcher = threading.Thread(target=_watch, args=(site, ended))
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()


def _watch(site: Site, ended: threading.Event) -> None:
    last: dict[tuple[str, str], tuple[str, ...]] = {}
    while not ended.is_set():
        for name in ("workergroup/gpu", "resourcepool/gpu"):
            found = pods.status(site, name)
            for each in found.get("conditions", ()):
                now = (each["status"], each["reason"], each["message"])
                if last.get((name, each["type"])) != now:
                    last[name, each["type"]] = now
                    said = f"{name} {found.get('incarnation', '')} {each['type']}={now[0]} {now[1]}: {now[2]}"
                    site.say(said)
        time.sleep(_LOOK_SECONDS)


def _events(site: Site) -> list[str]:
    items = site.kubectl.json("events", "--field-selector=involvedObject.name=gpu")["items"]
    return [f"{each['lastTimestamp'] or each['eventTime']} {each['reason']}: {each['message']}" for each in items]


def check_filled(site: Site) -> None:
    """Let another process of the pod fill a device: the ranks' errors name that, and they work again when it ends."""
    pods.have_ranks(site)
    pod = pods.workers(site)[-1]
    device = f"cuda:{site.gpus // site.nodes - 1}"
    with _filled(site, pod, device):
        well, printed = pods.run_program(site, "allocate", "8")
        site.say(printed)
        named = re.search(r"rank \d", printed) and "OutOfMemory" in printed
        site.say.row("the error names the rank and the cause", not well and bool(named), printed[-300:])
    well, printed = pods.run_program(site, "allocate", "8")
    site.say.row("the same ranks work when the other process has ended", well, printed[-300:])


@contextmanager
def _filled(site: Site, pod: str, device: str) -> Iterator[None]:
    where = ["kubectl", "--namespace", site.kubectl.namespace, "exec", "-i", pod, "--container=ray-worker", "--"]
    command = [*where, "python", "-u", "-c", pods.program_text("fill").decode(), device]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as filler:
        assert filler.stdin is not None
        assert filler.stdout is not None
        if not (line := filler.stdout.readline()):
            raise ToolError("the process that fills a device ended at once")
        site.say(line.decode().rstrip())
        yield
        filler.stdin.close()


CHECKS: dict[str, Callable[[Site], None]] = {
    **{name: partial(check, name) for name in _FAULTS},
    "filled": check_filled,
}
