"""What a process has is sent to those that know its name, and to nobody else."""

from __future__ import annotations

import gc
import secrets
import socket
import ssl
import struct
import time
import weakref
from contextlib import suppress

import pytest
import torch

from workergroups.transfers import tcp_reads, transports
from workergroups.transfers.fetching import Source, UnreadableError, fetch, node
from workergroups.transfers.memory import Span, as_bytes
from workergroups.transfers.tcp_reads import TcpServer, TcpTransfer
from workergroups.transfers.transports import Address, Lease
from workergroups_operator.node_certificate import authority_key, certificates

TENSOR = torch.arange(3 * 2**20, dtype=torch.int32)  # more than is sent at once


@pytest.fixture
def server():
    return TcpServer({"a" * 32: [TENSOR]}.get)


def read(address, start=0, stop=None, lease="a" * 32, shard=0):
    into = torch.zeros(as_bytes(TENSOR)[start:stop].shape, dtype=torch.uint8)
    transfer = TcpTransfer(address, lease, [Span(shard, start, into)])
    try:
        while not transfer.is_done():
            time.sleep(0.001)
        return into
    finally:
        transfer.close()


def test_any_bytes_arrive(server):
    for start, stop in ((0, None), (5, 5), (7, 100), (4_194_303, 4_194_305)):
        assert torch.equal(read(server.address, start, stop), as_bytes(TENSOR)[start:stop])


def test_more_pieces_than_fit_into_a_request_arrive(server, monkeypatch):
    monkeypatch.setattr("workergroups.transfers.tcp_reads._MOST_SPANS", 7)
    into = torch.zeros(100, dtype=torch.uint8)
    transfer = TcpTransfer(server.address, "a" * 32, [Span(0, at, into[at : at + 1]) for at in range(100)])
    while not transfer.is_done():
        time.sleep(0.001)
    transfer.close()
    assert torch.equal(into, as_bytes(TENSOR)[:100])


@pytest.mark.parametrize(
    ("request_", "says"),
    [({"lease": "b" * 32}, "its process has it no more"), ({"shard": 1}, "its process has ended, or has closed")],
)
def test_what_there_is_not_is_refused(server, request_, says):
    with pytest.raises(OSError, match=says):
        read(server.address, **request_)


def test_what_could_not_be_read_is_freed_without_the_garbage_collector(server):
    into = torch.zeros(8, dtype=torch.uint8)
    is_there = weakref.ref(into)
    source = Source("rank 1 of a", "another", Address("b" * 32, None, None, server.address))
    gc.disable()
    try:
        with suppress(UnreadableError):
            fetch([(source, [Span(0, 0, into)])], time.monotonic() + 5)
        del into
        assert is_there() is None
    finally:
        gc.enable()


def test_a_node_that_is_lost_costs_no_more_than_the_time_that_there_is(monkeypatch):
    waited = []

    def connect(address, seconds):
        waited.append(seconds)
        raise TimeoutError("timed out")

    monkeypatch.setattr("socket.create_connection", connect)
    source = Source("rank 1 of a", "another", Address("a" * 32, None, None, tcp_reads.TcpAddress("10.0.0.7", 1)))
    span = Span(0, 0, torch.zeros(8, dtype=torch.uint8))
    for seconds in (2.0, 0.0, 600.0):
        with pytest.raises(UnreadableError, match=r"cannot be read from rank 1 of a: TimeoutError: timed out"):
            fetch([(source, [span])], time.monotonic() + seconds)
    assert 1 < waited[0] < 2
    assert 0 < waited[1] < 0.01
    assert waited[2] == 10


def test_one_process_may_be_named_twice(monkeypatch):
    class Slow:
        looks = 0
        is_closed = False

        def is_done(self):
            self.looks += 1
            return self.looks > 2

        def close(self):
            self.is_closed = True

    begun = []
    monkeypatch.setattr(transports, "read", lambda *_, **__: begun.append(Slow()) or begun[-1])
    source = Source("rank 1 of a", "another", Address("a" * 32, None, None, tcp_reads.TcpAddress("10.0.0.7", 1)))
    fetch([(source, [Span(0, 0, TENSOR)]), (source, [Span(1, 0, TENSOR)])], time.monotonic() + 5)
    assert [(each.looks, each.is_closed) for each in begun] == [(3, True)] * 2


def test_what_was_allocated_in_inference_mode_is_filled_by_a_thread_that_is_not_in_it():
    with torch.inference_mode():
        into = torch.zeros(8, dtype=torch.uint8)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(bytes(range(8)))
        tcp_reads._receive_on_device(ours, into)
    assert into.tolist() == list(range(8))


@pytest.mark.parametrize(
    "garbage", [b"", b"GET / HTTP/1.1\r\n\r\n" * 3, b"\xff" * 36, b"a" * 32 + struct.pack("!I", 2**32 - 1)]
)
def test_strangers_get_nothing_and_keep_nobody_waiting(server, garbage):
    with socket.create_connection(("127.0.0.1", server.address.port)) as stranger:
        stranger.sendall(garbage)
        assert torch.equal(read(server.address, 0, 10), as_bytes(TENSOR)[:10])
        with suppress(OSError):  # it may have been closed
            stranger.shutdown(socket.SHUT_WR)
            assert stranger.recv(2) in (b"", b"\0", b"\1")


def certificate(folder, authority, ips):
    folder.mkdir()
    for name, content in certificates(authority, [], ips):
        (folder / name).write_bytes(content)
    return folder


def use(folder, monkeypatch):
    monkeypatch.setenv("RAY_USE_TLS", "1")
    for variable, name in (("CA_CERT", "ca.crt"), ("SERVER_CERT", "tls.crt"), ("SERVER_KEY", "tls.key")):
        monkeypatch.setenv(f"RAY_TLS_{variable}", str(folder / name))


def test_with_rays_tls_only_processes_of_its_cluster_read(server, tmp_path, monkeypatch):
    use(certificate(tmp_path / "here", authority_key(secrets.token_hex(32)), [server.address.host]), monkeypatch)
    assert torch.equal(read(server.address), as_bytes(TENSOR))
    folder = certificate(tmp_path / "other", authority_key(secrets.token_hex(32)), [server.address.host])
    other = ssl.create_default_context(cafile=str(tmp_path / "here" / "ca.crt"))
    other.load_cert_chain(folder / "tls.crt", folder / "tls.key")
    for stranger in (lambda plain, host: plain, lambda plain, host: other.wrap_socket(plain, server_hostname=host)):
        monkeypatch.setattr("workergroups.transfers.tls.connected", stranger)
        with pytest.raises(OSError, match=r"closed the connection|reset|unknown ca|EOF occurred"):
            read(server.address)


def test_with_rays_tls_nothing_is_sent_in_plain_text(tmp_path, monkeypatch):
    use(certificate(tmp_path / "here", authority_key(secrets.token_hex(32)), ["10.0.0.7"]), monkeypatch)
    monkeypatch.setattr(transports, "_nixl", transports._nixl.__wrapped__)
    monkeypatch.setattr(transports, "_own", lambda address: None)
    lease = Lease([TENSOR], by_nixl=True)
    assert lease.address.nixl is None
    source = Source("rank 1 of a", node(), lease.address)
    into = torch.zeros(8, dtype=torch.uint8)
    with pytest.raises(UnreadableError, match=r"cannot be read from rank 1 of a: SSLCertVerificationError"):
        fetch([(source, [Span(0, 0, into)])], time.monotonic() + 5)
