"""How long a healthy pool waits while 300 clusters wait for a webhook: `python -m bench.slow_webhook CHECKOUT...`.

The webhook takes 10 s. The clusters are in 100 namespaces. Each checkout's operator runs as a process against a new API
server, which calls a real webhook for what is written in those namespaces.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import ssl
import statistics
import subprocess
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp import web

from bench.waiting_pools import Users, operator
from tests.simulation.api import Api
from tests.simulation.control_plane import Access, control_plane

NAMESPACES = 100
NEW_POOLS = 10
LABEL = {"webhook": "slow"}


@asynccontextmanager
async def webhook(seconds: float) -> AsyncIterator[tuple[str, str]]:
    """Serve a webhook that allows everything after some seconds; yield its URL and its certificate in base64."""

    async def allow(request: web.Request) -> web.Response:
        asked = (await request.json())["request"]
        await asyncio.sleep(seconds)
        review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
        return web.json_response(review | {"response": {"uid": asked["uid"], "allowed": True}})

    with tempfile.TemporaryDirectory(prefix="slow-webhook-") as directory:
        context, certificate = await asyncio.to_thread(_certificate, Path(directory))
        application = web.Application(client_max_size=2**23)
        application.router.add_post("/", allow)
        runner = web.AppRunner(application, shutdown_timeout=0.0)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
        await site.start()
        port = runner.addresses[0][1]
        try:
            yield f"https://127.0.0.1:{port}/", certificate
        finally:
            await runner.cleanup()


def _certificate(directory: Path) -> tuple[ssl.SSLContext, str]:
    key, certificate = directory / "key", directory / "certificate"
    subject = ["-subj", "/CN=webhook", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "1", "-nodes"]
    new_key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-keyout", str(key)]
    command = ["openssl", "req", "-x509", *new_key, "-out", str(certificate), *subject]
    subprocess.run(command, check=True, capture_output=True)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    return context, base64.b64encode(certificate.read_bytes()).decode()


async def register(api: Api, url: str, certificate: str) -> None:
    """Register the webhook with the API server for all writes in labelled namespaces."""
    kinds = ["pods", "configmaps", "secrets", "roles", "rayclusters", "deployments"]
    hook = {
        "name": "slow.example.com",
        "clientConfig": {"url": url, "caBundle": certificate},
        "rules": [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"], "resources": kinds}],
        "namespaceSelector": {"matchLabels": LABEL},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 30,
        "failurePolicy": "Fail",
    }
    path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    body = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration"}
    await api.request("POST", path, body | {"metadata": {"name": "slow"}, "webhooks": [hook]})


async def measure(access: Access, checkout: Path, clusters: int, seconds: float) -> dict[str, float]:
    """Measure how long new pools of a healthy namespace wait for a first status, without the others and with them."""
    async with webhook(seconds) as (url, certificate), Api.connect(access) as api:
        healthy = Users(api, checkout, ["healthy"])
        slow = Users(api, checkout, [f"slow-{number}" for number in range(NAMESPACES)])
        await healthy.create_namespaces()
        await slow.create_namespaces(LABEL)
        await register(api, url, certificate)
        await asyncio.sleep(8)
        alone = [await healthy.first_status(f"alone-{number}") for number in range(3)]
        creating = asyncio.create_task(slow.create_pools(clusters, groups=0))
        waits = []
        for number in range(NEW_POOLS):
            waits.append(await healthy.first_status(f"beside-{number}"))
            await asyncio.sleep(3)
        await creating
        return {"alone": statistics.median(alone), "beside": statistics.median(waits), "longest": max(waits)}


def main() -> None:
    """Measure one checkout after the other, and print how long its users waited."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkouts", nargs="+", type=Path)
    parser.add_argument("--clusters", type=int, default=300)
    parser.add_argument("--seconds", type=float, default=10)
    arguments = parser.parse_args()
    for checkout in arguments.checkouts:
        path = checkout.resolve()
        with control_plane(path) as access, operator(path, access, None):
            waits = asyncio.run(measure(access, path, arguments.clusters, arguments.seconds))
        print(checkout, json.dumps({name: round(value, 2) for name, value in waits.items()}), flush=True)


if __name__ == "__main__":
    main()
