"""Each fault of a rank: what status, events and driver say of it, and the seconds until the ranks compute again."""

import json
import re
import subprocess
import threading
import time
from collections.abc import Callable
from functools import partial

from tools.demo.kubectl import Kubectl
from tools.gpu_machine.checks import pods

_METHODS = {
    "hang": "hang",
    "kill": "long_sum",
    "out-of-memory": "out_of_memory",
    "illegal-access": "illegal_access",
    "device-assert": "device_assert",
    "exit": "exit_at_once",
}
_LOOK_SECONDS = 0.2
_KILLED_AFTER = 6.0
_DRIVER_SECONDS = 150
_AFTERWARDS = 3.0  # what the status says last may come late


def check(name: str, kubectl: Kubectl) -> None:
    """Let a driver meet one fault, and watch."""
    say = pods.Report(name)
    pods.apply(kubectl)
    pods.wait_until_ready(kubectl, say)
    say(f"used memory before: {pods.used_memory(kubectl)}")
    failures_before = len(pods.status(kubectl)[0].get("failures", ()))
    events_before = set(_events(kubectl))
    ended = threading.Event()
    watcher = threading.Thread(target=_watch, args=(kubectl, say, ended))
    watcher.start()
    try:
        _drive(name, kubectl, say)
        time.sleep(_AFTERWARDS)
    finally:
        ended.set()
        watcher.join()
    group = pods.status(kubectl)[0]
    say(f"failures: {len(group.get('failures', ()))}, before {failures_before}; restarts: {group.get('restarts')}")
    for failure in group.get("failures", ())[:2]:
        say(f"failure: {json.dumps(failure)}")
    for event in sorted(set(_events(kubectl)) - events_before):
        say(f"event: {event}")
    say(f"used memory after: {pods.used_memory(kubectl)}")


def _drive(name: str, kubectl: Kubectl, say: pods.Report) -> None:
    """Run the driver, print its lines as they come, and kill rank 1 if that is the fault."""
    command = pods.driver_command(kubectl, _METHODS[name])
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as driver:
        assert driver.stdin is not None
        assert driver.stdout is not None
        deadline = threading.Timer(_DRIVER_SECONDS, driver.kill)
        deadline.start()
        driver.stdin.write(pods.driver_text())
        driver.stdin.close()
        for line in driver.stdout:
            text = line.decode(errors="replace").rstrip()
            say(f"driver| {text}")
            if name == "kill" and (found := re.fullmatch(r"processes: \d+ (\d+)", text)):
                threading.Timer(_KILLED_AFTER, _kill, (kubectl, say, found[1])).start()
        deadline.cancel()


def _kill(kubectl: Kubectl, say: pods.Report, pid: str) -> None:
    pods.in_worker(kubectl, "sh", "-c", f"kill -KILL {pid}")
    say(f"rank 1, process {pid}, is killed")


def _watch(kubectl: Kubectl, say: pods.Report, ended: threading.Event) -> None:
    """Say what changes in the conditions of group and pool, word for word."""
    last: dict[tuple[str, str], tuple[str, ...]] = {}
    while not ended.is_set():
        for status in pods.status(kubectl):
            incarnation = str(status.get("incarnation", ""))
            for each in status.get("conditions", ()):
                now = (each["status"], each["reason"], each["message"])
                if last.get((status["kind"], each["type"])) != now:
                    last[status["kind"], each["type"]] = now
                    say(f"{status['kind']} {incarnation} {each['type']}={now[0]} {now[1]}: {now[2]}")
        time.sleep(_LOOK_SECONDS)


def _events(kubectl: Kubectl) -> list[str]:
    items = kubectl.json("events", "--field-selector=involvedObject.name=gpu")["items"]
    return [f"{each['lastTimestamp'] or each['eventTime']} {each['reason']}: {each['message']}" for each in items]


CHECKS: dict[str, Callable[[Kubectl], None]] = {name: partial(check, name) for name in _METHODS}
