"""Streams into pods over TLS, as the user of the kubeconfig."""

import asyncio
import json
import socket
import sys
import threading

import pytest
from aiohttp import WSMsgType, web

from tests.unit.client.api_server import Authority
from workergroups_client import Cluster
from workergroups_client.api_server.execution import execute
from workergroups_client.api_server.tunnel import Tunnel
from workergroups_client.errors import UnauthorizedError, UnreachableError

PODS = "/api/v1/namespaces/team/pods/head"


class Kubelet:
    """An API server with one pod: `exec` prints its arguments, and a port answers what it is sent."""

    def __init__(self, tls):
        self.asked = []
        self.refuses = set()
        self._tls = tls
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.url = f"https://127.0.0.1:{self._run(self._start())}"

    async def _start(self):
        made = web.Application()
        made.add_routes([web.get(f"{PODS}/exec", self._exec), web.get(f"{PODS}/portforward", self._port)])
        self._runner = web.AppRunner(made, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=self._tls)
        await site.start()
        return site._server.sockets[0].getsockname()[1]

    async def _exec(self, request):
        self.asked.append((request.headers.get("Authorization"), request.query.getall("command")))
        if request.headers.get("Authorization") in self.refuses:
            return web.json_response({"kind": "Status", "message": "Unauthorized"}, status=401)
        stream = web.WebSocketResponse(protocols=("v5.channel.k8s.io",))
        await stream.prepare(request)
        await stream.send_bytes(b"\1" + " ".join(request.query.getall("command")).encode())
        await stream.send_bytes(b"\3" + json.dumps({"status": "Success"}).encode())
        await stream.close()
        return stream

    async def _port(self, request):
        self.asked.append((request.headers.get("Authorization"), request.query["ports"]))
        stream = web.WebSocketResponse(protocols=("v5.channel.k8s.io", "v4.channel.k8s.io"))
        await stream.prepare(request)
        number = int(request.query["ports"]).to_bytes(2, "little")
        for channel in (b"\0", b"\1"):
            await stream.send_bytes(channel + number)
        async for message in stream:
            if message.type == WSMsgType.BINARY:
                await stream.send_bytes(b"\0" + message.data[1:].upper())
        return stream

    def _run(self, work):
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    def close(self):
        self._run(self._runner.cleanup())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@pytest.fixture
def kubelet(authority):
    made = Kubelet(authority.server_context("server", "DNS:kubernetes", ask_clients=True))
    yield made
    made.close()


@pytest.fixture
def cluster(configure, authority, kubelet):
    client = authority.issue("jane")
    user = {"client-certificate": client.certificate, "client-key": client.key, "token": "t"}
    settings = {"certificate-authority": authority.own.certificate, "tls-server-name": "kubernetes"}
    configure(kubelet.url, user, **settings)
    return Cluster()


def test_a_command_runs_with_certificate_token_and_the_name_in_the_servers_certificate(cluster, kubelet):
    printed = bytearray()
    words = ["echo", "a b", "c&d=e"]
    assert execute(cluster, "head", "ray-head", words, stdout=printed.extend, stderr=print, seconds=30) == 0
    assert printed == b"echo a b c&d=e"
    assert kubelet.asked == [("Bearer t", words)]


def test_a_login_that_a_plugin_can_renew_is_renewed(cluster, kubelet, tmp_path):
    plugin = tmp_path / "plugin"
    plugin.write_text(
        f"#!{sys.executable}\nimport json\nwith open({str(tmp_path / 'runs')!r}, 'a+') as runs:\n"
        "    runs.write('x')\n    runs.seek(0)\n    token = f'token-{len(runs.read())}'\n"
        "print(json.dumps({'kind': 'ExecCredential', 'status': {'token': token}}))\n"
    )
    plugin.chmod(0o755)
    document = json.loads((tmp_path / "config").read_text())
    user = document["users"][0]["user"]
    del user["token"]
    user["exec"] = {"apiVersion": "client.authentication.k8s.io/v1", "command": str(plugin)}
    (tmp_path / "config").write_text(json.dumps(document))
    kubelet.refuses.add("Bearer token-1")
    plain = {"stdout": print, "stderr": print, "seconds": 30}
    assert execute(Cluster(), "head", "ray-head", ["true"], **plain) == 0
    assert [authorization for authorization, _ in kubelet.asked] == ["Bearer token-1", "Bearer token-2"]
    kubelet.refuses.add("Bearer token-3")
    kubelet.refuses.add("Bearer token-4")
    with pytest.raises(UnauthorizedError, match=r"does not accept your login \(Unauthorized\): log in again"):
        execute(Cluster(), "head", "ray-head", ["true"], **plain)


def test_a_tunnel_carries_bytes_both_ways(cluster, kubelet):
    with (
        Tunnel(cluster, lambda: "head", 8265) as tunnel,
        socket.create_connection(("127.0.0.1", tunnel.port), timeout=30) as local,
    ):
        local.sendall(b"hello")
        assert local.recv(100) == b"HELLO"
    assert kubelet.asked == [("Bearer t", "8265")]


def test_a_server_without_the_right_certificate_gets_no_token(cluster, kubelet, tmp_path, monkeypatch):
    (tmp_path / "other").mkdir()
    document = json.loads((tmp_path / "config").read_text())
    document["clusters"][0]["cluster"]["certificate-authority"] = Authority(tmp_path / "other").own.certificate
    (tmp_path / "config").write_text(json.dumps(document))
    with pytest.raises(UnreachableError, match="not from the authority in the kubeconfig"):
        Cluster().open_port("head", 8265)
    assert kubelet.asked == []
