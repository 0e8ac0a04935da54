"""What the programs of all jobs have taken, in Ray's control service (the GCS): nothing else tells them of each other.

A claim is a key: placement group, number of the bundle, job. Within a job, whoever writes it first has the bundle.
Between jobs, each writes its claims first and then looks for those of others, so that at most one of two keeps a
bundle. A claim ends with its job.
"""

from __future__ import annotations

from collections.abc import Iterable

import ray

from workergroups.for_verl.choice import BundleKey
from workergroups.ray_private import key_value_store
from workergroups.ray_private.cluster_state import live_jobs

_KV_NAMESPACE = "workergroups-claims"


def taken() -> set[BundleKey]:
    """Return the bundles that are claimed."""
    return {bundle for bundle, _ in _claims()}


def claim(bundles: Iterable[BundleKey]) -> bool:
    """Claim these bundles for this job, all or none; return whether that was possible."""
    job, wanted = _own_job(), list(bundles)
    written: list[str] = []
    for bundle in wanted:
        key = _key(bundle, job)
        if not key_value_store.put_if_absent(_KV_NAMESPACE, key, b"1"):
            break
        written.append(key)
    is_ours = len(written) == len(wanted) and not any(bundle in wanted for bundle, other in _claims() if other != job)
    if not is_ours:
        for key in written:
            key_value_store.delete(_KV_NAMESPACE, key)
    return is_ours


def _claims() -> list[tuple[BundleKey, str]]:
    """Return all claims of live jobs, with their job; those of others are removed."""
    keys = key_value_store.keys(_KV_NAMESPACE)
    alive = live_jobs()  # read after the keys, for a job exists before its claims
    found = []
    for key in keys:
        placement_group, _, rest = key.partition("/")
        number, _, job = rest.partition("/")
        if job not in alive or not number.isdecimal():
            key_value_store.delete(_KV_NAMESPACE, key)
            continue
        found.append(((placement_group, int(number)), job))
    return found


def _key(bundle: BundleKey, job: str) -> str:
    return f"{bundle[0]}/{bundle[1]}/{job}"


def _own_job() -> str:
    return str(ray.get_runtime_context().get_job_id())
