"""Who listens, and who waits for that."""

import socket
import threading

from workergroups_agent.listening import listen_in_background, listens, wait_for_gcs


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def test_the_wait_ends_when_the_gcs_listens():
    port = free_port()
    waiting = threading.Thread(target=wait_for_gcs, args=[f"127.0.0.1:{port}"], daemon=True)
    waiting.start()
    waiting.join(0.5)
    assert waiting.is_alive()
    with socket.create_server(("127.0.0.1", port)):
        waiting.join(10)
        assert not waiting.is_alive()


def test_what_listens_in_the_background_takes_any_number_of_connections():
    port = free_port()
    listen_in_background(port)
    assert all(listens(f"127.0.0.1:{port}") for _ in range(1000))


def test_a_port_that_another_has_is_left_to_it(caplog):
    with socket.create_server(("", 0)) as server:
        listen_in_background(server.getsockname()[1])
    assert "workers will wait for the GCS" in caplog.text
