"""Report what ranks do: ``python -m workergroups.rank_activity stacks|calls|activity GROUP``.

The command line runs this in the head's pod. It does not call the ranks, so it answers even while they hang.
"""

from __future__ import annotations

import dataclasses
import logging
import sys
from typing import Any

import ray

from workergroups.attaching.groups import attach

from .answering import give
from .naming import NAMESPACE
from .ray_private import records
from .ray_private.gcs import Gcs
from .ray_private.records import DriverRecord
from .single_controller.ray.calls import Call

_ATTACH_SECONDS = 10.0


def answer(question: str, group: str) -> Any:
    """Return the stacks by rank, or the list of calls; for ``activity`` both."""
    # In this namespace, the agent does not count the program as a user's driver.
    ray.init(address="auto", namespace=NAMESPACE, log_to_driver=False, logging_level=logging.ERROR)
    attached = attach(group, timeout=_ATTACH_SECONDS)
    if question == "stacks":
        return attached.stacks()
    drivers = {driver.id: driver for driver in map(records.driver, Gcs.of_driver().drivers())}
    calls = [_with_its_job(call, drivers.get(call.job_id)) for call in attached.calls()]
    if question == "calls":
        return calls
    return {"calls": calls, "stacks": attached.stacks()}


def _with_its_job(call: Call, driver: DriverRecord | None) -> dict[str, Any]:
    """Return the call with the id of the job as it was submitted, by which users know it, instead of Ray's."""
    submitted = {"job_id": driver.submission_id} if driver is not None and driver.submission_id else {}
    return dataclasses.asdict(call) | submitted


if __name__ == "__main__":
    give(answer, *sys.argv[1:])
