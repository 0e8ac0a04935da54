"""A pool with `tls`, in a namespace that enforces the restricted Pod Security Standard."""

import ast

import pytest

from tests.cluster.drivers import drive
from tests.cluster.kubectl import group, kubectl, pool

# A client of Ray's GCS without a certificate, and one with the pod's own. A refusal arrives with the first answer.
GREETED = """
import os, socket, ssl, sys
def greeted(*own):
    context = ssl.create_default_context(cafile=os.environ["RAY_TLS_CA_CERT"])
    context.set_alpn_protocols(["h2"])
    if own:
        context.load_cert_chain(*own)
    try:
        connected = socket.create_connection((sys.argv[1], 6379), timeout=5)
        with context.wrap_socket(connected, server_hostname=sys.argv[1]) as end:
            end.sendall(b"PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n" + bytes(3) + b"\\4" + bytes(5))
            return bool(end.recv(9))
    except OSError:
        return False
print([greeted(), greeted(os.environ["RAY_TLS_SERVER_CERT"], os.environ["RAY_TLS_SERVER_KEY"])])
"""
PLAIN = """
import socket, sys
with socket.create_connection((sys.argv[1], 6379), timeout=5) as end:
    end.sendall(b"PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n" + bytes(3) + b"\\4" + bytes(5))
    try:
        print([b"\\4" in end.recv(64)])
    except OSError:
        print([False])
"""


@pytest.fixture(scope="module")
def cluster(namespace):
    """A pool of two nodes with a rank on each."""
    kubectl("label", "namespace", namespace.name, "pod-security.kubernetes.io/enforce=restricted")
    namespace.apply(pool("actors", nodes=2, processes=1, tls=True), group("actors"))
    namespace.until_ready("workergroup", "actors")
    return namespace


def seen(cluster, program):
    head = cluster.head("actors")
    address = cluster.get("pod", head)["status"]["podIP"]
    return ast.literal_eval(cluster.run("exec", head, "--", "python", "-c", program, address))


def test_ranks_on_two_nodes_answer_the_driver(cluster):
    assert drive(cluster, "actors", "", "len(workergroups.attach('actors').execute_all_sync('look'))") == 2


def test_ray_answers_nobody_without_a_certificate(cluster):
    assert seen(cluster, GREETED) == [False, True]
    assert seen(cluster, PLAIN) == [False]


def test_a_node_that_is_lost_comes_back_with_a_certificate_of_its_own(cluster):
    (lost, *_) = cluster.get("pods", selector="workergroups.dev/component=worker")
    before = cluster.get("workergroup", "actors")["status"]["incarnation"]
    cluster.run("delete", "pod", lost["metadata"]["name"], "--force", "--grace-period=0")
    cluster.until(lambda: cluster.get("workergroup", "actors")["status"]["incarnation"], lambda now: now > before, 60)
    cluster.until_ready("workergroup", "actors")
    assert drive(cluster, "actors", "", "len(workergroups.attach('actors').execute_all_sync('look'))") == 2


def test_a_pool_without_tls_joins_and_gets_it(cluster):
    cluster.apply(pool("second", nodes=1, processes=1, clusterName="actors"))
    cluster.until_ready("resourcepool", "second")
