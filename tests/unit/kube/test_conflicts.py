"""A status is written to an object that others change at the same time, unless it is old by then."""

import asyncio
from types import SimpleNamespace

import pytest
from kubernetes.aio.dynamic.exceptions import ConflictError

from tests.unit.virtual_time import run
from workergroups_api.manifest import WORKER_GROUP
from workergroups_kube import Kube

GROUP = {
    "apiVersion": WORKER_GROUP.api_version,
    "kind": WORKER_GROUP.kind,
    "metadata": {"name": "g", "namespace": "ns", "uid": "u", "resourceVersion": "1"},
}


class Busy(Kube):
    """A connection to an API server at which others are quicker twice."""

    def __init__(self, admission_seconds):
        self.admission_seconds, self.tries = admission_seconds, 0

    async def latest_version(self, *_):
        return "u", "2"

    async def _patch(self, *_, **__):
        self.tries += 1
        await asyncio.sleep(self.admission_seconds)
        if self.tries <= 2:
            raise ConflictError(SimpleNamespace(status=409, reason="no", body=b"{}", headers={}))


def test_a_quick_conflict_is_tried_again():
    busy = Busy(0.1)
    run(busy.apply_status(GROUP))
    assert busy.tries == 3


def test_after_a_slow_one_the_caller_decides_anew_what_is_true():
    busy = Busy(5)
    with pytest.raises(ConflictError):
        run(busy.apply_status(GROUP))
    assert busy.tries == 1
