"""What Ray's metrics say of ranks and devices."""

import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import pytest
from prometheus_client.parser import text_string_to_metric_families

from workergroups.naming import RankName
from workergroups.processes.tables import DeviceRow, RankSecondsRow
from workergroups.processes.usage import device_rows, rank_names, samples_of, seconds_rows

GIB = 1 << 30
SECONDS = 'ray_workergroups_rank_seconds_total{WorkerId="%s",activity="%s",group="policy",method="%s"} %s\n'
GAUGE = 'ray_node_%s{GpuDeviceName="H200",GpuIndex="%d",SessionName="s"} %s\n'


@dataclass
class Actor:
    name: str
    worker_id: str


def name(rank, incarnation=1, birth=0, group="policy"):
    return RankName(group, f"uid-of-{group}", incarnation, rank, 2, birth)


def samples(page):
    return [sample for family in text_string_to_metric_families(page) for sample in family.samples]


def test_only_the_latest_process_of_each_rank_counts():
    actors = [
        Actor("runner", "w9"),
        Actor(str(name(0, incarnation=9)), "old-0"),
        Actor(str(name(1, incarnation=10)), "w1"),
        Actor(str(name(0, incarnation=10)), "w0"),
        Actor(str(name(1, incarnation=10, birth=1)), "w1-again"),
        Actor(str(name(0, group="critic")), "c0"),
    ]
    assert {worker: (each.group, each.rank) for worker, each in rank_names(actors).items()} == {
        "w0": ("policy", 0),
        "w1-again": ("policy", 1),
        "c0": ("critic", 0),
    }


def test_seconds_are_those_of_living_ranks():
    page = (
        SECONDS % ("w0", "Running", "step", 6.5) + SECONDS % ("w0", "Idle", "", 2) + SECONDS % ("dead", "Idle", "", 9)
    )
    names = {"w0": name(0), "w1": name(1)}
    assert list(seconds_rows(names, samples(page))) == [
        RankSecondsRow(str(name(0)), "Running", "step", 6.5),
        RankSecondsRow(str(name(0)), "Idle", "", 2.0),
        RankSecondsRow(str(name(1)), "", "", 0.0),
    ]


def test_devices_have_their_memory_in_bytes():
    figures = [("gpus_utilization", 0, 93), ("gram_used", 0, 41 * 1024), ("gram_available", 0, 99 * 1024)]
    page = "".join(GAUGE % each for each in [*figures, ("gpus_utilization", 1, 0)]) + "ray_node_cpu_count{} 8\n"
    assert list(device_rows("ppo-a", samples(page))) == [
        DeviceRow("ppo-a", "0", "H200", 0.93, 41 * GIB, 140 * GIB),
        DeviceRow("ppo-a", "1", "H200", 0.0, None, None),
    ]


def test_what_the_driver_does_not_report_of_a_device_is_unknown():
    page = GAUGE % ("gpus_utilization", 2001, -1) + GAUGE % ("gram_used", 2001, 1024)
    assert list(device_rows("ppo-a", samples(page))) == [DeviceRow("ppo-a", "2001", "H200", None, GIB, None)]


@pytest.fixture
def node(monkeypatch):
    """A node whose metrics are a page, or a page that is cut off."""
    pages = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            promised, page = pages.pop()
            self.send_response(200)
            self.send_header("Content-Length", str(promised))
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
        monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
        found = SimpleNamespace(address="127.0.0.1", metrics_port=server.server_port)
        yield lambda promised, page: pages.append((promised, page)) or found
        server.shutdown()


def test_metrics_are_read_from_the_node_itself_whatever_proxy_its_pool_names(node):
    found, why = samples_of(node(9, b"seen 1.0\n"))
    assert ([(each.name, each.value) for each in found], why) == ([("seen", 1.0)], "")


@pytest.mark.parametrize("page", [b"seen", b"seen 1.0\nodd {\n", b"\xff\n"])
def test_of_a_node_whose_metrics_are_cut_off_or_odd_it_is_said_why(node, page):
    found, why = samples_of(node(len(page) + (page == b"seen"), page))
    assert found == []
    assert why


def test_of_a_node_that_is_gone_it_is_said_why():
    found, why = samples_of(SimpleNamespace(address="127.0.0.1", metrics_port=1))
    assert (found, "refused" in why) == ([], True)
