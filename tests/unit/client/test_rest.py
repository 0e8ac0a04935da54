"""What the command sends to an API server, over a real connection."""

import base64
import json
import os
import socket
import threading

import pytest

from tests.unit.client.api_server import POOLS, Answer, Authority, QuietHandler, api_server, listed, refused, served
from tests.unit.client.fake_cluster import pool
from workergroups_api.manifest import RESOURCE_POOL
from workergroups_client import Cluster
from workergroups_client.errors import (
    ClientError,
    ConflictError,
    ForbiddenError,
    NotRunningError,
    UnreachableError,
)

PPO = {"apiVersion": "workergroups.dev/v1alpha1", **pool("ppo")}
ONE = {POOLS: listed("ResourcePool", PPO)}


@pytest.fixture
def cluster(configure):
    """A Cluster of a kubeconfig; arguments as for `kubeconfig`."""

    def cluster(*arguments, **more):
        configure(*arguments, **more)
        return Cluster()

    return cluster


def names(cluster):
    return [each["metadata"]["name"] for each in cluster.select(RESOURCE_POOL, "a=b")]


def data(path):
    with open(path, "rb") as file:
        return base64.b64encode(file.read()).decode()


def test_a_list_is_asked_for_with_its_selector_and_the_token(cluster):
    with api_server(answers=ONE) as server:
        assert names(cluster(server.url)) == ["ppo"]
    ((method, path, headers, _),) = server.requests
    assert (method, path, headers["Authorization"]) == ("GET", f"{POOLS}?labelSelector=a%3Db", "Bearer t")


def test_a_list_of_nothing_may_be_null(cluster):
    with api_server(answers={POOLS: Answer({"kind": "ResourcePoolList", "items": None})}) as server:
        assert names(cluster(server.url)) == []


@pytest.mark.parametrize("name", ["..", ".", "", "../x", "a/b", "a%2Fb", "a?b", "a#b", "a b", "a\n", "\ud800"])
def test_a_name_that_no_object_has_is_not_asked_for(cluster, name):
    with api_server(Answer(PPO)) as server:
        made = cluster(server.url)
        with pytest.raises(ClientError, match="is not a valid object name: names have"):
            made.get(RESOURCE_POOL, name)
        made.namespace = name or "."
        with pytest.raises(ClientError, match="is not a valid object name"):
            made.select(RESOURCE_POOL)
        assert server.requests == []


def test_an_object_is_applied_as_kubectl_does(cluster):
    answers = {
        "/apis/workergroups.dev/v1alpha1": Answer(
            {"resources": [{"name": "resourcepools", "kind": "ResourcePool", "namespaced": True}]}
        ),
        f"{POOLS}/ppo": [Answer(PPO), refused(409, "Apply failed with 1 conflict")],
    }
    with api_server(answers=answers) as server:
        made = cluster(server.url)
        assert made.apply(PPO, force=True, dry_run=True) == PPO
        with pytest.raises(ConflictError, match="Apply failed"):
            made.apply(PPO)
    _, (method, path, headers, body), (_, second, _, _) = server.requests
    assert (method, path) == ("PATCH", f"{POOLS}/ppo?fieldManager=workergroups-cli&force=true&dryRun=All")
    assert (headers["Content-Type"], json.loads(body)) == ("application/apply-patch+yaml", PPO)
    assert second == f"{POOLS}/ppo?fieldManager=workergroups-cli"


def test_a_merge_and_a_deletion_say_what_they_are(cluster):
    with api_server(Answer(PPO)) as server:
        made = cluster(server.url)
        made.edit(RESOURCE_POOL, "ppo", {"suspend": True})
        made.delete(RESOURCE_POOL, PPO)
    (method, path, headers, body), (delete, gone, _, conditions) = server.requests
    assert (method, path, headers["Content-Type"]) == ("PATCH", f"{POOLS}/ppo", "application/merge-patch+json")
    assert json.loads(body) == {"spec": {"suspend": True}}
    assert (delete, gone, json.loads(conditions)["preconditions"]) == ("DELETE", f"{POOLS}/ppo", {"uid": "uid-of-ppo"})


def test_a_watch_yields_events_until_the_server_ends_it(cluster):
    events = [{"type": "ADDED", "object": PPO}, {"type": "DELETED", "object": PPO}]
    lines = b"".join(json.dumps(event).encode() + b"\n" for event in events)
    with api_server(
        answers={POOLS: [refused(429, "later")._replace(headers=(("Retry-After", "0"),)), Answer(lines)]}
    ) as server:
        assert list(cluster(server.url).events(RESOURCE_POOL, "a=b")) == events
    assert server.requests[1][1] == f"{POOLS}?labelSelector=a%3Db&watch=true&timeoutSeconds=60"


@pytest.mark.parametrize(
    ("answer", "kind", "said"),
    [
        (refused(403, "resourcepools is forbidden"), ForbiddenError, "resourcepools is forbidden"),
        (Answer(b"<html><title>Sign in</title>"), ClientError, r"\(Sign in\)"),
        (Answer(b"3\n"), ClientError, "instead of a watch event, it sends int"),
        (Answer(b"{}", headers=(("Content-Length", "9"),)), UnreachableError, "does not answer"),
    ],
)
def test_a_watch_that_fails_is_explained_as_a_request_is(cluster, answer, kind, said):
    with api_server(answer) as server, pytest.raises(kind, match=said):
        list(cluster(server.url).events(RESOURCE_POOL))


@pytest.mark.parametrize("as_data", [True, False])
def test_a_client_certificate_logs_in(cluster, authority, as_data):
    client = authority.issue("jane")
    files = {"client-certificate": client.certificate, "client-key": client.key}
    ca = {"certificate-authority": authority.own.certificate}
    if as_data:
        files, ca = ({f"{key}-data": data(path) for key, path in named.items()} for named in (files, ca))
    with api_server(tls=authority.server_context(ask_clients=True), answers=ONE) as server:
        assert names(cluster(server.url, files, **ca)) == ["ppo"]


@pytest.mark.parametrize(
    ("san", "settings"),
    [
        ("DNS:kubernetes", {"tls-server-name": "kubernetes"}),
        ("DNS:kubernetes", {"insecure-skip-tls-verify": True}),
    ],
)
def test_the_name_in_the_servers_certificate_may_be_another(cluster, authority, san, settings):
    ca = {} if "insecure-skip-tls-verify" in settings else {"certificate-authority": authority.own.certificate}
    with api_server(tls=authority.server_context("named", san), answers=ONE) as server:
        assert names(cluster(server.url, **ca, **settings)) == ["ppo"]


def test_a_server_whose_certificate_another_authority_has_signed_gets_no_request(cluster, authority, tmp_path):
    (tmp_path / "other").mkdir()
    other = Authority(tmp_path / "other").own.certificate
    with api_server(tls=authority.server_context(), answers=ONE) as server:
        with pytest.raises(UnreachableError, match="not from the authority in the kubeconfig"):
            names(cluster(server.url, **{"certificate-authority": other}))
        assert server.requests == []


class Proxy(QuietHandler):
    """Passes bytes on, as a proxy does between a machine and its cluster."""

    seen: list

    def do_CONNECT(self):
        self.seen.append((self.path, self.headers.get("Proxy-Authorization")))
        host, port = self.path.split(":")
        with socket.create_connection((host, int(port))) as other:
            self.send_response(200)
            self.end_headers()
            ends = threading.Thread(target=carry, args=(other, self.connection), daemon=True)
            ends.start()
            carry(self.connection, other)
            ends.join()
        self.close_connection = True

    def do_GET(self):  # of a server without TLS
        self.seen.append((self.path, self.headers.get("Proxy-Authorization")))
        body = json.dumps(ONE[POOLS].body).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def carry(source, sink):
    try:
        while piece := source.recv(1 << 16):
            sink.sendall(piece)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass


@pytest.fixture
def proxy():
    with served(type("Handler", (Proxy,), {"seen": []})) as made:
        yield made


def address(proxy, login=""):
    return f"http://{login}127.0.0.1:{proxy.server_port}"


def test_the_proxy_of_the_kubeconfig_is_used_with_its_login(cluster, authority, proxy):
    settings = {"certificate-authority": authority.own.certificate, "proxy-url": address(proxy, "me:pass@")}
    with api_server(tls=authority.server_context(), answers=ONE) as server:
        assert names(cluster(server.url, **settings)) == ["ppo"]
    ((path, login),) = proxy.RequestHandlerClass.seen
    assert (path, login) == (server.url.removeprefix("https://"), "Basic bWU6cGFzcw==")


@pytest.mark.parametrize(("exceptions", "is_used"), [("", True), ("10.0.0.0/8", True), ("127.0.0.0/8,other", False)])
def test_the_proxy_of_the_environment_is_used_unless_no_proxy_names_the_server(
    cluster, proxy, monkeypatch, exceptions, is_used
):
    monkeypatch.setenv("HTTP_PROXY" if os.name == "nt" else "http_proxy", address(proxy))
    monkeypatch.setenv("NO_PROXY", exceptions)
    with api_server(answers=ONE) as server:
        assert names(cluster(server.url)) == ["ppo"]
    assert bool(proxy.RequestHandlerClass.seen) is is_used


def test_a_socks_proxy_needs_a_package_that_is_named(cluster):
    with pytest.raises(ClientError, match="pip install pysocks"):
        names(cluster("https://cluster.example", **{"proxy-url": "socks5://127.0.0.1:1"}))


@pytest.mark.parametrize("origin", ["proxy-url", "ALL_PROXY"])
def test_a_stream_does_not_try_a_socks_proxy_but_says_what_to_do(cluster, monkeypatch, origin):
    if origin == "proxy-url":
        made = cluster("https://cluster.example", **{"proxy-url": "socks5://me:pass@127.0.0.1:1"})
    else:
        monkeypatch.setenv("ALL_PROXY", "socks5://me:pass@127.0.0.1:1")
        made = cluster("https://cluster.example")
    with pytest.raises(ClientError, match=r"is behind a SOCKS proxy: .* Set proxy-url in the kubeconfig") as told:
        made.open_port("head", 8265)
    assert "pass@" not in str(told.value)


@pytest.mark.parametrize("exceptions", ["127.0.0.1", "*", ""])
def test_a_stream_uses_the_proxy_of_the_kubeconfig_whatever_no_proxy_says(
    cluster, authority, proxy, monkeypatch, exceptions
):
    monkeypatch.setenv("NO_PROXY", exceptions)
    settings = {"certificate-authority": authority.own.certificate, "proxy-url": address(proxy)}
    with api_server(refused(403, "forbidden"), tls=authority.server_context()) as server:
        with pytest.raises(ForbiddenError, match="forbidden"):
            cluster(server.url, **settings).open_port("head", 8265)
        assert [path for path, _ in proxy.RequestHandlerClass.seen] == [server.url.removeprefix("https://")]


@pytest.mark.parametrize(
    ("chosen", "options"), [(None, "-n team"), ("lab", "-n team --context lab"), ("a b", "-n team --context 'a b'")]
)
def test_a_command_that_users_copy_acts_in_the_same_context(cluster, chosen, options):
    cluster("https://cluster.example")
    path = os.environ["KUBECONFIG"]
    with open(path) as file:
        document = json.load(file)
    document["contexts"].append({**document["contexts"][0], "name": "a b"})
    with open(path, "w") as file:
        json.dump(document, file)
    assert Cluster(context=chosen).options == options


MAY_NOT = (
    'pods "head" is forbidden: User "jane" cannot create resource "pods/portforward" in API group "" in the namespace'
)


@pytest.mark.parametrize(
    ("answer", "kind", "said"),
    [
        (refused(403, f'{MAY_NOT} "team"'), ForbiddenError, "--clusterrole=edit --user=jane --namespace=team"),
        (refused(404, 'pods "head" not found', name="head"), NotRunningError, 'pods "head" not found: it has ended'),
        (
            Answer(b"<html><title>Sign in</title>", 502),
            UnreachableError,
            r"\(status 502\): it sends a web page \(Sign in\)",
        ),
        (Answer(b"<html><title>Sign in</title>"), ClientError, r"\(Sign in\)|does not answer"),
    ],
)
def test_a_stream_that_is_refused_is_explained_as_a_request_is(cluster, answer, kind, said):
    with api_server(answer) as server, pytest.raises(kind, match=said):
        cluster(server.url).open_port("head", 8265)
    assert server.requests[0][1] == "/api/v1/namespaces/team/pods/head/portforward?ports=8265"
    assert server.requests[0][2]["authorization"] == "Bearer t"


def test_the_settings_of_streams_are_those_of_requests(cluster, authority):
    client = authority.issue("jane")
    user = {"client-certificate": client.certificate, "client-key": client.key, "token": "t"}
    settings = {"certificate-authority": authority.own.certificate, "tls-server-name": "kubernetes"}
    made = cluster("https://cluster.example", user, **settings, **{"proxy-url": "http://me:pass@proxy.example:3128"})
    found = made._rest.configuration()
    assert (found.host, found.ssl_ca_cert) == ("https://cluster.example", authority.own.certificate)
    assert (found.cert_file, found.key_file, found.verify_ssl) == (client.certificate, client.key, True)
    assert (found.tls_server_name, found.proxy) == ("kubernetes", "http://me:pass@proxy.example:3128")
    assert found.proxy_headers == {"proxy-authorization": "Basic bWU6cGFzcw=="}
