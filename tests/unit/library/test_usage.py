"""What Ray's metrics say of ranks and devices."""

import threading
import time
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import pytest
from prometheus_client.parser import text_string_to_metric_families

from workergroups.naming import RankName
from workergroups.processes import usage
from workergroups.processes.tables import RANK_SECONDS, DeviceRow, RankSecondsRow
from workergroups.processes.usage import device_rows, rank_workers, samples_of, samples_of_each, seconds_rows

GIB = 1 << 30
SECONDS = 'ray_workergroups_rank_seconds_total{WorkerId="%s",activity="%s",group="policy",method="%s"} %s\n'
GAUGE = 'ray_node_%s{GpuDeviceName="H200",GpuIndex="%d",SessionName="s"} %s\n'
COUNTED, USED = (SECONDS % ("w0", "Idle", "", 2)).encode(), b"ray_node_gram_used 5\n"
CUT_OFF = b"ray_"
GONE = SimpleNamespace(address="127.0.0.1", metrics_port=1)


@dataclass
class Actor:
    name: str
    worker_id: str
    state: str = "ALIVE"


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
    assert {(each.group, each.rank): worker for each, worker in rank_workers(actors).items()} == {
        ("policy", 0): "w0",
        ("policy", 1): "w1-again",
        ("critic", 0): "c0",
    }


def test_a_rank_that_is_being_created_has_no_process_yet_and_the_older_incarnation_counts_no_longer():
    actors = [
        Actor(str(name(0, incarnation=2)), "leased", "PENDING_CREATION"),
        Actor(str(name(1, incarnation=2)), "", "DEPENDENCIES_UNREADY"),
        Actor(str(name(1, incarnation=2)), "w1"),  # its constructor has returned between the two questions
        Actor(str(name(0)), "old-0"),
    ]
    assert rank_workers(actors) == {name(0, incarnation=2): "", name(1, incarnation=2): "w1"}


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
    """A node whose metrics are these pages, one after the other; it never answers once there is no further page."""
    pages, ended = [], threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            if not pages:
                ended.wait()
                return
            page = pages.pop(0)
            self.send_response(200)
            self.send_header("Content-Length", str(len(page) + page.endswith(CUT_OFF)))
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
        monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
        monkeypatch.setattr(usage, "_LOOK_SECONDS", 0.01)
        found = SimpleNamespace(address="127.0.0.1", metrics_port=server.server_port)
        yield lambda *served: pages.extend(served) or found
        ended.set()
        server.shutdown()


def figures(samples):
    return [(each.name, each.value) for each in samples]


def test_metrics_are_read_from_the_node_itself_whatever_proxy_its_pool_names(node):
    found, lack = samples_of(node(USED))
    assert (figures(found), lack) == ([("ray_node_gram_used", 5.0)], "")


def test_of_the_metrics_of_a_node_only_those_that_are_shown_are_read(node):
    found, lack = samples_of(node(b'ray_tasks{odd="\n' + USED))
    assert (figures(found), lack) == ([("ray_node_gram_used", 5.0)], "")


@pytest.mark.parametrize("page", [USED + CUT_OFF, USED + b"ray_node_gram_used{\n", b"\xff\n"])
def test_of_a_node_whose_metrics_are_cut_off_or_odd_it_is_said_why(node, page):
    found, lack = samples_of(node(page))
    assert found == []
    assert lack.startswith("has no metrics: ")


def test_of_a_node_that_is_gone_it_is_said_why():
    found, lack = samples_of(GONE)
    assert (found, "refused" in lack) == ([], True)


def test_a_node_whose_own_metrics_another_reader_has_just_cleared_is_asked_again(node):
    found, lack = samples_of(node(COUNTED, COUNTED, COUNTED + USED))
    assert (figures(found), lack) == ([(f"ray_{RANK_SECONDS}_total", 2.0), ("ray_node_gram_used", 5.0)], "")


def test_of_a_node_that_measures_nothing_the_seconds_are_kept_and_what_it_lacks_is_said(node, monkeypatch):
    monkeypatch.setattr(usage, "_REFILL_SECONDS", 0)
    found, lack = samples_of(node(COUNTED))
    assert figures(found) == [(f"ray_{RANK_SECONDS}_total", 2.0)]
    assert lack.startswith("has no metrics of devices: ")


def test_nodes_that_do_not_answer_delay_neither_the_others_nor_the_end_of_the_program(node):
    already = set(threading.enumerate())
    hanging, gone = samples_of_each([node(), GONE], time.monotonic() + 3)
    assert (hanging[0], "did not answer within" in hanging[1]) == ([], True)
    assert "refused" in gone[1]
    assert all(each.daemon for each in set(threading.enumerate()) - already)
