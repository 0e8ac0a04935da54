"""What a client of the API server takes from its environment."""

import asyncio

from aiohttp import web
from kubernetes.aio.client.configuration import Configuration

from workergroups_api.manifest import CONFIG_MAP
from workergroups_kube import Kube


def authorization_sent():
    """Return the header with which a request of `Kube` reaches its server."""
    seen = []

    async def answer(request):
        seen.append(request.headers.get("Authorization"))
        return web.json_response({"metadata": {"name": "a"}})

    async def main():
        runner = web.ServerRunner(web.Server(answer))
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host = f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}"
        async with Kube.to(Configuration(host=host), "test", 15.0) as kube:
            await kube.get(CONFIG_MAP, "ns", "a")
        await runner.cleanup()

    asyncio.run(main())
    (header,) = seen
    return header


def test_no_proxy_and_no_password_of_the_environment_are_used(tmp_path, monkeypatch):
    (tmp_path / "netrc").write_text("default login someone password secret\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    assert authorization_sent() is None
