"""Ray's dashboard through this machine: who gets in, and that no browser and no other server gets Ray's token."""

import contextlib
import http.client
import socket
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from tests.unit.client.api_server import QuietHandler, served
from tests.unit.client.browser import Browser
from workergroups_cli import connect_commands
from workergroups_cli.app import app
from workergroups_cli.connect_commands import has_display
from workergroups_client.errors import ClientError
from workergroups_client.ray_cluster.dashboard import Dashboard

TOKEN = "the-token-of-ray"


class Ray(QuietHandler):
    """Stands in for Ray's dashboard, and notes what it is sent."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.seen.append((self.command, self.path, self.headers, body))
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            self.send_error(401)
            return
        self.send_response(201 if self.command == "POST" else 200)
        self.send_header("Set-Cookie", f"ray-authentication-token={TOKEN}")
        self.send_header("Content-Type", "text/plain")
        pieces = [b"one", b"", b"two"] if self.path == "/stream" else [b"page"]
        if self.path == "/stream":
            self.send_header("Transfer-Encoding", "chunked")
            pieces = [b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces if piece]
            if "cut" not in self.headers:
                pieces.append(b"0\r\n\r\n")
            else:
                self.close_connection = True
        else:
            self.send_header("Content-Length", "4")
        self.end_headers()
        if self.command != "HEAD":
            for piece in pieces:
                self.wfile.write(piece)

    do_POST = do_HEAD = do_GET


@pytest.fixture
def start():
    """Start a web server on a free port."""
    with contextlib.ExitStack() as running:

        def start(handler):
            server = running.enter_context(served(handler))
            server.seen = []
            return server

        yield start


@pytest.fixture
def ray(start):
    return start(Ray)


@pytest.fixture
def dashboard(ray):
    url = f"http://127.0.0.1:{ray.server_port}"
    with Dashboard(SimpleNamespace(url=url, token=TOKEN), "/#/jobs/a") as served:
        yield served


@pytest.fixture
def browser():
    return Browser()


@pytest.fixture
def logged_in(browser, dashboard):
    assert browser.get(dashboard.login_url)[0].status == 200
    return browser


def test_the_address_logs_one_browser_in_once(browser, dashboard, ray):
    answer, text = browser.get(dashboard.login_url)
    assert (answer.status, answer.getheader("Cache-Control"), answer.getheader("Referrer-Policy")) == (
        200,
        "no-store",
        "no-referrer",
    )
    assert b'content="0; url=/#/jobs/a"' in text
    assert all(word in answer.getheader("Set-Cookie") for word in ("HttpOnly", "SameSite=Strict", "Path=/"))
    assert "Domain" not in answer.getheader("Set-Cookie")
    assert browser.get(f"{dashboard.url}/nodes")[1] == b"page"
    other = Browser()
    assert other.get(dashboard.login_url)[0].status == 403
    assert other.get(f"{dashboard.url}/nodes")[0].status == 403
    assert [path for _, path, _, _ in ray.seen] == ["/nodes"]


def test_ray_gets_the_token_and_no_cookie_and_the_browser_gets_no_token(logged_in, dashboard, ray):
    answer, text = logged_in.get(f"{dashboard.url}/nodes?view=summary", Authorization="Bearer x", Accept="text/plain")
    ((_, path, headers, _),) = ray.seen
    assert (path, headers["Authorization"], headers["Accept"]) == (
        "/nodes?view=summary",
        f"Bearer {TOKEN}",
        "text/plain",
    )
    assert "Cookie" not in headers
    assert headers["Host"] == f"127.0.0.1:{ray.server_port}"
    assert TOKEN not in f"{answer.getheaders()}{text}{logged_in.cookies}{dashboard.login_url}"


def test_another_web_server_on_this_machine_gets_neither_token_nor_login(logged_in, dashboard, start):
    class Evil(QuietHandler):
        def do_GET(self):
            self.server.seen.append(str(self.headers))
            self.send_response(200)
            self.end_headers()

    evil = start(Evil)
    for name in ("127.0.0.1", "localhost", "other.localhost"):
        logged_in.get(f"http://{name}:{evil.server_port}/")
    assert len(evil.seen) == 3
    cookie = next(iter(logged_in.cookies.values()))
    assert not any(word in "".join(evil.seen) for word in ("Cookie", cookie, TOKEN))


def test_two_dashboards_do_not_overwrite_each_others_login(logged_in, dashboard, ray):
    with Dashboard(SimpleNamespace(url=f"http://127.0.0.1:{ray.server_port}", token=TOKEN)) as second:
        assert logged_in.get(second.login_url)[0].status == 200
        for each in (dashboard, second):
            assert logged_in.get(f"{each.url}/")[1] == b"page"


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "evil.example", "{name}", "{name}:1", "x.{netloc}", ""])
def test_a_page_that_resolves_its_own_name_to_this_machine_gets_nothing(logged_in, dashboard, ray, host):
    netloc = dashboard.url.removeprefix("http://")
    name = netloc.partition(":")[0]
    answer, _ = logged_in.get(f"{dashboard.url}/nodes", Host=host.format(name=name, netloc=netloc))
    assert answer.status == 421
    assert ray.seen == []


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost:1"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
        {"Cookie": "workergroups=guess"},
        {"Cookie": "workergroups="},
        {"Cookie": "workergroups=\xe9; ]["},
    ],
)
def test_pages_of_other_sites_and_guesses_are_refused(dashboard, logged_in, ray, headers):
    for method in ("GET", "POST"):
        if "Cookie" in headers:
            logged_in.cookies.clear()
        assert logged_in.get(f"{dashboard.url}/nodes", method=method, **headers)[0].status == 403
    assert ray.seen == []


def test_own_pages_may_send_and_read_everything(logged_in, dashboard, ray):
    own = {"Origin": dashboard.url, "Sec_Fetch_Site": "same-origin"}
    answer, text = logged_in.get(f"{dashboard.url}/api/jobs/", method="POST", body=b"{}", **own)
    assert (answer.status, text, ray.seen[0][3]) == (201, b"page", b"{}")
    answer, text = logged_in.get(f"{dashboard.url}/stream")
    assert (answer.getheader("Transfer-Encoding"), text) == ("chunked", b"onetwo")
    answer, text = logged_in.get(f"{dashboard.url}/nodes", method="HEAD")
    assert (answer.status, answer.getheader("Content-Length"), text) == (200, "4", b"")


def test_one_connection_serves_many_requests(logged_in, dashboard):
    netloc = dashboard.url.removeprefix("http://")
    connection = http.client.HTTPConnection("127.0.0.1", int(netloc.partition(":")[2]), timeout=20)
    connection.connect()
    connection.auto_open = 0  # else it would connect again, unseen
    for path in ("/nodes", "/stream", "/nodes"):
        connection.request("GET", path, headers={"Host": netloc, "Cookie": "; ".join(logged_in.cookies.values())})
        assert connection.getresponse().read() in (b"page", b"onetwo")
    connection.close()


def test_an_answer_that_is_cut_off_is_not_taken_for_complete(logged_in, dashboard):
    with pytest.raises(http.client.IncompleteRead):
        logged_in.get(f"{dashboard.url}/stream", cut="1")


def test_a_head_that_does_not_answer_is_reported_in_the_browser(logged_in, dashboard, ray):
    ray.shutdown()
    ray.server_close()
    answer, text = logged_in.get(f"{dashboard.url}/nodes")
    assert (answer.status, b"Its head may be restarting" in text) == (502, True)


def test_nobody_else_can_listen_at_the_other_loopback_address(dashboard, browser):
    port = int(dashboard.url.rpartition(":")[2])
    if not socket.has_ipv6:
        pytest.skip("no IPv6")
    with pytest.raises(OSError, match=r"in use|Cannot assign"):
        socket.create_server(("::1", port), family=socket.AF_INET6).close()


def test_a_port_that_somebody_uses_is_refused(ray):
    connection = SimpleNamespace(url=f"http://127.0.0.1:{ray.server_port}", token=TOKEN)
    with pytest.raises(ClientError, match=rf"port {ray.server_port} of this machine cannot be used \(Address already"):
        Dashboard(connection, port=ray.server_port)


@pytest.mark.parametrize(
    ("environment", "platform", "has_one"),
    [
        ({}, "linux", False),
        ({"DISPLAY": ":0"}, "linux", True),
        ({"WAYLAND_DISPLAY": "wayland-0"}, "linux", True),
        ({"DISPLAY": ""}, "linux", False),
        ({"BROWSER": "firefox"}, "linux", True),
        ({}, "darwin", True),
        ({}, "win32", True),
    ],
)
def test_a_browser_is_opened_only_where_it_has_a_window(environment, platform, has_one):
    assert has_display(environment, platform) is has_one


@pytest.mark.parametrize(
    ("words", "display", "opened"), [([], ":0", True), (["--no-browser"], ":0", False), ([], "", False)]
)
def test_the_command_opens_the_address_in_a_browser_unless_told_otherwise(monkeypatch, ray, words, display, opened):
    url = f"http://127.0.0.1:{ray.server_port}"
    connection = contextlib.nullcontext(SimpleNamespace(url=url, token=TOKEN))
    pages = []
    monkeypatch.setattr(connect_commands, "Cluster", lambda *_: None)
    monkeypatch.setattr(connect_commands, "Pool", lambda *_: SimpleNamespace(name="ppo", ray_cluster="rl"))
    monkeypatch.setattr(connect_commands, "RayConnection", lambda *_, **__: connection)
    monkeypatch.setattr(connect_commands, "hold", lambda sentence: None)
    monkeypatch.setattr("webbrowser.open", pages.append)
    for name in ("BROWSER", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DISPLAY", display)
    shown = CliRunner().invoke(app, ["dashboard", "ppo", *words])
    assert shown.exit_code == 0, shown.output
    (address,) = [line.removeprefix("open ") for line in shown.output.splitlines() if line.startswith("open ")]
    assert pages == [address] * opened
    assert TOKEN not in shown.output
