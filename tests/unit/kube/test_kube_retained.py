"""Requests of operator and agent leave nothing behind, whatever the API server answers."""

import asyncio
import json
import random
from contextlib import aclosing, suppress

import pytest
from aiohttp import web
from aiohttp.test_utils import RawTestServer
from kubernetes.aio.client.configuration import Configuration

from tests.unit.retained import Held, leaves_nothing
from workergroups_api.manifest import LEASE, Manifest
from workergroups_kube import API_ERRORS, Kube, reading

TIMES = 1_000
BODY: Manifest = {
    "apiVersion": LEASE.api_version,
    "kind": LEASE.kind,
    "metadata": {"name": "l", "namespace": "ns", "uid": "u", "resourceVersion": "7", "annotations": {"a": "x" * 1000}},
    "spec": {"renewTime": "2026-11-27T00:00:00Z"},
}
LISTED = {"kind": "LeaseList", "metadata": {"resourceVersion": "7"}, "items": [BODY] * 3}
REFUSAL = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "no room", "code": 403}
EVENT = json.dumps({"type": "MODIFIED", "object": BODY}).encode() + b"\n"


async def api_server(request):
    """Answer as the API server would to an object that is named after the answer."""
    if "refused" in request.path:
        return web.json_response(REFUSAL, status=403)
    if "gone" in request.path:
        return web.json_response(REFUSAL | {"code": 404}, status=404)
    if "odd" in request.path:
        return web.Response(body=b"<html>", status=200)
    if "large" in request.path:
        return web.Response(body=b'{"a": [' + b"{}," * 200_000 + b"{}]}")
    if "much" in request.path:
        return web.json_response(BODY | {"spec": "x" * 50_000})
    if "watch" in request.query:
        return web.Response(body=EVENT * 20)
    is_list = request.method == "GET" and request.path.endswith("/leases")
    return web.json_response(LISTED if is_list else BODY)


def named(name):
    return {**BODY, "metadata": {**BODY["metadata"], "name": name}}


def unversioned(name):
    body = named(name)
    return {**body, "metadata": {key: body["metadata"][key] for key in ("name", "namespace", "uid")}}


async def made(found):
    return str(found)[:1000]


async def list_all(kube):
    async for _ in kube.pages(LEASE, "ns", str, label_selector="a=b"):
        pass


async def follow_some(kube):
    async with aclosing(kube.follow(LEASE, "ns", "l", 1)) as versions:
        seen = 0
        async for _ in versions:
            seen += 1
            if seen > 30:
                return


REQUESTS = {
    "read": lambda kube: kube.get(LEASE, "ns", "l"),
    "read in vain": lambda kube: kube.get(LEASE, "ns", "gone"),
    "read without the right": lambda kube: kube.get(LEASE, "ns", "refused"),
    "read what is no JSON": lambda kube: kube.get(LEASE, "ns", "odd"),
    "read what exceeds the limits": lambda kube: kube.get(LEASE, "ns", "large"),
    "list": list_all,
    "read one version again and again": lambda kube: kube.get_made(LEASE, "ns", "l", made),
    "read many large objects": lambda kube: kube.get_made(LEASE, "ns", f"much-{random.randrange(50)}", made),
    "apply": lambda kube: kube.apply(named("l")),
    "apply a status": lambda kube: kube.apply_status(named("l")),
    "apply a status to a version that is not known": lambda kube: kube.apply_status(unversioned("l")),
    "apply what is refused": lambda kube: kube.apply(named("refused")),
    "create": lambda kube: kube.create(named("l"), dry_run=True),
    "delete": lambda kube: kube.delete(named("l"), only_unchanged=True),
    "delete in vain": lambda kube: kube.delete(named("gone")),
    "follow": follow_some,
}


async def retained(request):
    """What `TIMES` requests leave behind, once some have filled the caches."""
    async with RawTestServer(api_server) as running:
        configuration = Configuration(host=str(running.make_url("")).rstrip("/"))
        async with Kube.to(configuration, "manager", 10.0) as kube:
            await _ask(kube, request, TIMES // 5)
            before = Held.now()
            await _ask(kube, request, TIMES)
            after = Held.now()
    return Held(after.blocks - before.blocks, after.bytes - before.bytes)


async def _ask(kube, request, times):
    for _ in range(times):
        with suppress(*API_ERRORS):
            await request(kube)


@pytest.mark.parametrize("request_", REQUESTS.values(), ids=REQUESTS)
def test_a_request_leaves_nothing(request_, monkeypatch):
    monkeypatch.setattr(reading, "_KEPT_OBJECTS", 10)
    assert leaves_nothing(lambda: asyncio.run(retained(request_)))
