"""The head is lost three times, ever more of it, while the ranks hold most of their devices: nothing of it is lost."""

import json
import subprocess
import time
from typing import Any

from tools.gpu_machine.checks import pods
from tools.gpu_machine.checks.site import Site, group

GIB = 40
_CLAIM = "heads"
# The longest that a driver on a node may wait for a call, in seconds.
_NEVER_NOTICED = 2.0
_SETTLED_SECONDS = 15
_KILL_GCS = 'for p in /proc/[0-9]*; do [ "$(cat $p/comm)" = gcs_server ] && kill -9 ${p#/proc/}; done; true'
# Also of the container's first process, which only a signal from outside would end.
_KILL_ALL = "for p in /proc/[0-9]*; do [ ${p#/proc/} != 1 ] && [ ${p#/proc/} != $$ ] && kill -9 ${p#/proc/}; done; true"


def check(site: Site) -> None:
    """Lose the head's GCS, all its processes, and its pod, under a driver on a node."""
    pods.clear(site.kubectl)
    pods.apply(site, *_claim(site.kubectl.namespace))
    on_claim = {"nodeSelector": {"workergroups.dev/node": "nvidia"}, "gcsStorage": {"claimName": _CLAIM}}
    pods.have_code(site)
    pods.apply(site, site.pool("gpu", head=on_claim), group("gpu"))
    pods.until_ready(site, "workergroup/gpu")
    with subprocess.Popen(_driver(site), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as driver:
        assert driver.stdin is not None
        assert driver.stdout is not None
        before = json.loads(driver.stdout.readline())
        site.say(f"each rank holds {GIB} GiB: {before}")
        heads = [_head(site)]
        for what, lose in (("its GCS", _kill_gcs), ("all its processes", _kill_all), ("its pod", _delete)):
            began = time.monotonic()
            lose(site)
            time.sleep(_SETTLED_SECONDS)
            pods.until_ready(site, "workergroup/gpu")
            heads.append(_head(site))
            site.say(f"the head has lost {what}, and is back after {time.monotonic() - began:.1f} s at most")
        driver.stdin.close()
        after = json.loads(driver.stdout.readline())
    site.say.row("each time, another head came", len(set(heads)) == len(heads), heads)
    site.say.row("processes and checksums are the same", after["ranks"] == before["ranks"], after)
    incarnation = pods.status(site, "workergroup/gpu")["incarnation"]
    site.say.row("the incarnation is the same", incarnation == 1, incarnation)
    longest = f"{after['calls']} calls, the longest {after['longest']:.2f} s"
    site.say.row("a driver on a node never notices", after["longest"] < _NEVER_NOTICED, longest)
    pods.clear(site.kubectl)
    site.kubectl("delete", "persistentvolumeclaim", _CLAIM)
    site.kubectl("delete", "persistentvolume", _CLAIM)


def _head(site: Site) -> str:
    """Return Ray's id of the head's node, which each start of a head has for itself."""
    return str(pods.status(site, "resourcepool/gpu")["reservation"]["head"])


def _driver(site: Site) -> list[str]:
    """Return the command of a program in a pod with devices, where no head's end can reach it."""
    where = ["exec", "-i", pods.workers(site)[0], "--container=ray-worker", "--"]
    program = pods.program_text("hold_and_count").decode()
    return ["kubectl", "--namespace", site.kubectl.namespace, *where, "python", "-u", "-c", program, str(GIB)]


def _kill_gcs(site: Site) -> None:
    pods.execute(site, pods.head(site), "sh", "-c", _KILL_GCS, container="ray-head")


def _kill_all(site: Site) -> None:
    pods.execute(site, pods.head(site), "sh", "-c", _KILL_ALL, container="ray-head")


def _delete(site: Site) -> None:
    site.kubectl("delete", "pod", pods.head(site), "--grace-period=0", "--force")


def _claim(namespace: str) -> list[dict[str, Any]]:
    """Return a claim on a directory of the machine, which all its nodes share."""
    asked: dict[str, Any] = {"accessModes": ["ReadWriteOnce"], "storageClassName": ""}
    volume = {
        "capacity": {"storage": "1Gi"},
        "hostPath": {"path": "/var/lib/workergroups-heads", "type": "DirectoryOrCreate"},
        "claimRef": {"namespace": namespace, "name": _CLAIM},
    }
    claimed = {**asked, "resources": {"requests": {"storage": "1Gi"}}}
    kinds = (("PersistentVolume", {**asked, **volume}), ("PersistentVolumeClaim", claimed))
    return [{"apiVersion": "v1", "kind": kind, "metadata": {"name": _CLAIM}, "spec": spec} for kind, spec in kinds]
