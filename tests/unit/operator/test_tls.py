"""TLS of Ray: a certificate for each pod, by an authority that only the cluster's own pods know."""

import secrets
import socket
import ssl
import threading

import pytest

from tests.unit.operator.make import ACCOUNT, KEY, child, observed, pool, status_of, wanted
from workergroups_operator.desired.token import FreshSecrets, digest_in, secret
from workergroups_operator.node_certificate import authority_key, certificates, names_of
from workergroups_operator.policy.cluster_restart import why_restart

FRESH = FreshSecrets("token", "0a")
OFF = child("RayCluster", "actors")
ON = child("RayCluster", "actors", metadata={"annotations": {"workergroups.dev/tls": "true"}})
VARIABLES = ["RAY_TLS_CA_CERT", "RAY_TLS_SERVER_CERT", "RAY_TLS_SERVER_KEY", "RAY_USE_TLS"]


def containers(*pools):
    """Of each pod: its init containers, the variables of its Ray's container that are about TLS, and its mounts."""
    manifests = {each["kind"]: each for each in wanted(observed(pools=pools, children=ACCOUNT, pods=()))}
    spec = manifests["RayCluster"]["spec"]
    templates = [spec["headGroupSpec"]["template"], *(each["template"] for each in spec["workerGroupSpecs"])]
    templates.append(manifests["Deployment"]["spec"]["template"])
    for template in templates:
        main = template["spec"]["containers"][0]
        variables = sorted(each["name"] for each in main["env"] if "TLS" in each["name"])
        yield [each["name"] for each in template["spec"]["initContainers"]], variables, main["volumeMounts"]


def test_each_pod_of_a_cluster_with_tls_makes_its_certificate_first():
    found = list(containers(pool(tls=True)))
    assert len(found) == 3
    for first, variables, mounts in found:
        assert (first[0], variables) == ("make-certificate", VARIABLES)
        assert {
            "name": "workergroups-certificate",
            "mountPath": "/opt/workergroups-certificate",
            "readOnly": True,
        } in mounts


def test_without_tls_there_is_nothing_of_it():
    assert not [each for each in containers(pool()) if "make-certificate" in each[0] or each[1]]
    assert list(secret(observed(pools=(pool(),)), FRESH)["data"]) == ["auth_token"]


@pytest.mark.parametrize(
    ("children", "oldest", "uses_tls"),
    [({}, False, False), ({}, True, True), (OFF, True, False), (ON, False, True)],
    ids=["new without", "new with", "began without", "began with"],
)
def test_a_cluster_stays_as_it_began(children, oldest, uses_tls):
    assert observed(pools=(pool(tls=oldest),), children=children).uses_tls is uses_tls


def test_a_pool_that_asks_for_tls_gets_no_nodes_on_a_cluster_without():
    strict = pool("strict", clusterName="actors", tls=True)
    ready = status_of(observed(pools=(pool(), strict), children=OFF)).ready
    assert (ready.status, ready.reason) == ("False", "TLSConflict")
    assert "spec.tls is true, and RayCluster actors began without TLS" in ready.message


def test_another_authority_restarts_the_cluster():
    seen = observed(pools=(pool(tls=True),))
    first = secret(seen, FRESH)
    began = {"workergroups.dev/tls": "true", "workergroups.dev/token": digest_in(first)}
    cluster = child("RayCluster", "actors", metadata={"annotations": began})
    same = child("Secret", "actors", data=first["data"])
    other = child("Secret", "actors", data=secret(seen, FRESH._replace(authority_key="0b"))["data"])
    assert why_restart(observed(pools=seen.pools, children=cluster | same)) is None
    assert "was changed" in why_restart(observed(pools=seen.pools, children=cluster | other))


def test_the_head_has_all_names_that_the_domain_of_the_cluster_makes():
    resolver = "search team.svc.corp.example svc.corp.example example\nnameserver 10.0.0.1\n"
    assert names_of("p-head-svc", KEY.namespace, resolver) == [
        "p-head-svc",
        "p-head-svc.team",
        "p-head-svc.team.svc",
        "p-head-svc.team.svc.corp.example",
    ]


def files(folder, authority, ip="10.0.0.7"):
    folder.mkdir()
    for name, content in certificates(authority_key(authority), ["head"], [ip, "fd00::7"]):
        (folder / name).write_bytes(content)
    return folder


def context(folder, purpose):
    made = ssl.create_default_context(purpose, cafile=str(folder / "ca.crt"))
    made.load_cert_chain(folder / "tls.crt", folder / "tls.key")
    made.verify_mode = ssl.CERT_REQUIRED
    return made


def greet(server, client, name):
    """What a client of one pod gets that connects to another pod by this name or address."""
    ours, theirs = socket.socketpair()

    def serve():
        try:
            with context(server, ssl.Purpose.CLIENT_AUTH).wrap_socket(theirs, server_side=True) as accepted:
                accepted.sendall(b"hello")
        except ssl.SSLError:
            theirs.close()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        with context(client, ssl.Purpose.SERVER_AUTH).wrap_socket(ours, server_hostname=name) as connected:
            return connected.recv(5)
    except (ssl.SSLError, OSError) as error:
        return type(error)
    finally:
        ours.close()
        thread.join()


@pytest.mark.parametrize("name", ["10.0.0.7", "fd00::7", "127.0.0.1", "::1", "localhost", "head"])
def test_two_pods_of_a_cluster_trust_each_other_at_their_addresses(tmp_path, name):
    key = secrets.token_hex(32)
    assert greet(files(tmp_path / "a", key), files(tmp_path / "b", key, "10.0.0.8"), name) == b"hello"


def test_nobody_is_trusted_at_another_address_or_with_another_authority(tmp_path):
    key, other = secrets.token_hex(32), secrets.token_hex(32)
    ours, stranger = files(tmp_path / "a", key), files(tmp_path / "b", other)
    assert greet(ours, ours, "10.0.0.9") is ssl.SSLCertVerificationError
    assert greet(stranger, ours, "10.0.0.7") is ssl.SSLCertVerificationError
    assert greet(ours, stranger, "10.0.0.7") != b"hello"
