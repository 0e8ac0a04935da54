"""Whatever a server answers, `workergroups status` prints one error that says what to do, and no traceback."""

import copy
import inspect
import re
import socket
import ssl
import sys
import threading

import pytest

import workergroups_client
from tests.unit.client.api_server import POOLS, Answer, api_server, listed, refused
from tests.unit.client.fake_cluster import condition, group, head, pool
from workergroups_cli.app import main
from workergroups_client import errors
from workergroups_client.api_server import rest
from workergroups_client.api_server.api_errors import Place, refusal
from workergroups_client.errors import ForbiddenError, NotFoundError

GROUPS = POOLS.replace("resourcepools", "workergroups")
EVERYWHERE = "/apis/workergroups.dev/v1alpha1/"
PLACE = Place("https://cluster.example", "lab", "log in again: gcloud auth login")
NO_SERVER = "Check the address (kubectl config view --minify), and whether a proxy or a login page is in between"


@pytest.fixture
def status(configure, monkeypatch, capfd):
    """Run `workergroups status` for a server, and return its error."""
    monkeypatch.setattr(rest, "_PAUSES", (0.01, 0.01, 0.01))

    def status(url, *words, user=None, code=1, **more):
        configure(url, user, **more)
        monkeypatch.setattr("sys.argv", ["workergroups", "status", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        assert code is None or (ended.value.code or 0) == code
        printed = capfd.readouterr()
        assert "Traceback" not in printed.err
        return printed.err.rstrip("\n").replace(url, "SERVER")

    return status


@pytest.fixture
def answered(status):
    """The error after an answer to all requests."""

    def answered(answer, *words):
        with api_server(answer) as server:
            return status(server.url, *words)

    return answered


HTML = b"<!DOCTYPE html><html><head><title>Sign in\n to Acme</title></head><body>...</body></html>"
SHAPES = {
    "a page": (Answer(HTML), "it sends a web page (Sign in to Acme)"),
    "a page as an error": (Answer(HTML, 403), "refused the request: it sends a web page (Sign in to Acme)"),
    "a page that is not found": (Answer(HTML, 404), "it sends a web page (Sign in to Acme)"),
    "a redirection": (Answer(b"", 302, (("Location", "https://sso.example"),)), "it redirects to https://sso.example"),
    "nothing": (Answer(b""), "its answer is empty"),
    "half an answer": (Answer(b'{"kind": "ResourcePoolList", "items": [{"meta'), '{"kind": "ResourcePoolList"'),
    "bytes": (Answer(b"\xff\xfe\x00\x1b[2J"), "does not answer as an API server does"),
    "deep JSON": (Answer(b"[" * 100_000), "does not answer as an API server does: [[["),
    "text": (Answer(b'"yes"'), "instead of a ResourcePoolList, it sends str"),
    "null": (Answer(b"null"), "instead of a ResourcePoolList, it sends NoneType"),
    "a list": (Answer(b"[]"), "instead of a ResourcePoolList, it sends list"),
    "another kind": (listed("Pod"), "instead of a ResourcePoolList, it sends PodList"),
    "a status": (Answer({"kind": "Status", "status": "Success"}), "instead of a ResourcePoolList, it sends Status"),
    "no items": (Answer({"kind": "ResourcePoolList", "items": 3}), "instead of a ResourcePoolList"),
    "odd items": (listed("ResourcePool", 3), "instead of a ResourcePoolList"),
    "items without metadata": (listed("ResourcePool", {}), "instead of a ResourcePoolList"),
    "another protocol": (Answer(b"Client sent an HTTP request to an HTTPS server.\n", 400), "sent an HTTP request to"),
}


@pytest.mark.parametrize(("answer", "said"), SHAPES.values(), ids=SHAPES)
def test_an_answer_that_no_api_server_gives_is_shown_in_a_line(answered, answer, said):
    told = answered(answer)
    assert told.startswith("error: the API server at SERVER (context lab) ")
    assert said in told
    assert told.endswith(NO_SERVER) or answer.status == 403
    assert "\x1b" not in told
    assert told.count("\n") == 0


def test_what_says_nothing_that_helps_is_left_out(answered):
    said = (
        'ResourcePool.workergroups.dev "x" is invalid: [spec.accelerator.vendor: Unsupported value: "nvida": supported '
        'values: "nvidia", "amd", <nil>: Invalid value: null: some validation rules were not checked because '
        "the object was invalid; correct the existing errors to complete validation]"
    )
    assert answered(refused(422, said)).endswith('"nvida": supported values: "nvidia", "amd"]')


STATUSES = {
    "an expired login": (
        refused(401, "Unauthorized"),
        "does not accept your login (Unauthorized): ask the cluster's administrator for a new kubeconfig or token",
    ),
    "a missing right": (
        refused(
            403,
            'resourcepools.workergroups.dev is forbidden: User "jane" cannot list resource "resourcepools" in API '
            'group "workergroups.dev" in the namespace "team"',
        ),
        "The role view gives this right, to which the chart's ClusterRole workergroups-view adds the pools and groups. "
        "Ask an administrator for: kubectl create rolebinding workergroups-view --clusterrole=view --user=jane "
        "--namespace=team",
    ),
    "no login": (
        refused(
            403, 'forbidden: User "system:anonymous" cannot list resource "pods" in API group "" at the cluster scope'
        ),
        "The kubeconfig gives no login: ask the cluster's administrator for a new kubeconfig or token",
    ),
    "missing CRDs": (
        Answer(b"404 page not found\n", 404),
        f"does not know {POOLS}: install the chart of WorkerGroups (helm upgrade --install workergroups ...), or "
        "choose another context (--context)",
    ),
    "missing CRDs, newer": (
        refused(404, "the server could not find the requested resource"),
        "install the chart of WorkerGroups (helm upgrade --install workergroups ...)",
    ),
    "too many requests": (
        refused(429, "too many requests"),
        "is too busy or not ready (status 429): too many requests. Try again in a minute; kubectl get "
        "--raw '/readyz?verbose' says what it waits for",
    ),
    "not ready": (Answer(b"", 503), "is too busy or not ready (status 503): status 503. Try again"),
    "a gateway": (Answer(HTML, 502), "(status 502): it sends a web page (Sign in to Acme). Try again"),
    "a fault": (
        refused(500, "etcdserver: no leader"),
        f"failed (status 500, GET {POOLS}): etcdserver: no leader. Try again; its log says more",
    ),
}


@pytest.mark.parametrize(("answer", "said"), STATUSES.values(), ids=STATUSES)
def test_a_refusal_says_what_to_do(answered, answer, said):
    told = answered(answer)
    assert told.startswith("error: the API server at SERVER (context lab) ")
    assert said in told
    assert told.count("\n") == 0


@pytest.mark.parametrize(
    ("where", "wrong", "said"),
    [
        (
            "(/ppo; workergroups.dev/v1alpha1, Kind=ResourcePool)",
            ".spec.node: field not declared in schema",
            "ResourcePool ppo: .spec.node: field not declared in schema (did you mean nodes?). Correct the manifest; "
            "kubectl explain resourcepool --recursive lists its fields",
        ),
        (
            "(rl/code; /v1, Kind=ConfigMap)",
            "errors:\n  .data.a: expected string\n  .data.b: expected string",
            "ConfigMap code: .data.a: expected string .data.b: expected string. Correct the manifest; kubectl explain "
            "configmap --recursive lists its fields",
        ),
    ],
)
def test_a_manifest_that_does_not_fit_the_schema_is_no_fault_of_the_server(answered, where, wrong, said):
    answer = refused(500, f"failed to create typed patch object {where}: {wrong}")
    assert answered(answer).strip() == f"error: {said}"


RIGHTS = 'User "{user}" cannot {verb} resource "{resource}" in API group "{group}" {where}'


@pytest.mark.parametrize(
    ("user", "verb", "resource", "group", "where", "said"),
    [
        (
            "jane",
            "patch",
            "workergroups",
            "workergroups.dev",
            'in the namespace "a"',
            "--clusterrole=edit --user=jane ",
        ),
        ("jane", "get", "secrets", "", 'in the namespace "a"', "--clusterrole=edit --user=jane --namespace=a"),
        ("jane", "create", "pods/portforward", "", 'in the namespace "a"', "--clusterrole=edit --user=jane"),
        ("jane", "list", "pods", "", 'in the namespace "a"', "workergroups-view --clusterrole=view --user=jane"),
        (
            "system:serviceaccount:ci:bot",
            "list",
            "workergroups",
            "workergroups.dev",
            "at the cluster scope",
            "create clusterrolebinding workergroups-view --clusterrole=view --serviceaccount=ci:bot",
        ),
        ("jane", "patch", "roles", "rbac.authorization.k8s.io", "at the cluster scope", "for the right to patch roles"),
    ],
)
def test_the_role_that_gives_a_missing_right_is_named(user, verb, resource, group, where, said):
    message = RIGHTS.format(user=user, verb=verb, resource=resource, group=group, where=where)
    error = refusal(PLACE, 403, refused(403, message).body_bytes())
    assert isinstance(error, ForbiddenError)
    assert said in str(error)


def test_a_refusal_of_an_admission_policy_is_passed_on():
    error = refusal(
        PLACE, 403, refused(403, "pools is forbidden: spec.image must be from registry.example").body_bytes()
    )
    assert str(error).endswith(
        "(context lab) refused the request: pools is forbidden: spec.image must be from registry.example"
    )


def test_an_object_that_does_not_exist_is_no_missing_kind():
    error = refusal(PLACE, 404, refused(404, 'pods "a" not found', name="a", kind="pods").body_bytes())
    assert (type(error), str(error)) == (NotFoundError, 'pods "a" not found')


def test_a_busy_server_is_asked_again_a_few_times(status):
    busy = refused(429, "later")._replace(headers=(("Retry-After", "0"),))
    answers = {POOLS: [busy, busy, listed("ResourcePool", pool("ppo"))], GROUPS: listed("WorkerGroup")}
    with api_server(answers=answers) as server:
        assert status(server.url, code=0) == ""
    assert len(server.requests) == 4
    with api_server(busy) as server:
        assert "is too busy" in status(server.url)
    assert len(server.requests) == 4


def test_a_login_that_a_plugin_can_renew_is_renewed(status, tmp_path):
    plugin = tmp_path / "plugin"
    plugin.write_text(
        f"#!{sys.executable}\nimport json, os\nnumber = len(os.listdir({str(tmp_path)!r}))\n"
        f"open(os.path.join({str(tmp_path)!r}, f'run{{number}}'), 'w')\n"
        f"print(json.dumps({{'kind': 'ExecCredential', 'status': {{'token': f't{{number}}'}}}}))\n"
    )
    plugin.chmod(0o755)
    user = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": str(plugin)}}
    answers = {POOLS: [refused(401, "Unauthorized"), listed("ResourcePool")], GROUPS: listed("WorkerGroup", group("g"))}
    with api_server(answers=answers) as server:
        assert status(server.url, user=user, code=0) == ""
    tokens = [headers["Authorization"] for _, _, headers, _ in server.requests]
    assert (len(tokens), len(set(tokens))) == (3, 2)
    with api_server(refused(401, "Unauthorized")) as server:
        assert f"log in again with the tool of your cluster (it is {plugin} that logs you in)" in status(
            server.url, user=user
        )
    assert len(server.requests) == 2


def test_an_empty_namespace_is_reported_also_if_others_cannot_be_listed(status):
    nothing = {POOLS: listed("ResourcePool"), GROUPS: listed("WorkerGroup")}
    forbidden = refused(403, 'User "jane" cannot list resource "resourcepools" in API group "workergroups.dev" at the')
    with api_server(forbidden, answers=nothing) as server:
        assert status(server.url, code=0) == (
            "no pools and no groups in namespace team; you may not list those of other namespaces: if you know a "
            "namespace, add -n NAMESPACE"
        )
    with api_server(
        refused(404, "no", name="x"), answers={**nothing, f"{EVERYWHERE}resourcepools": forbidden}
    ) as server:
        assert status(server.url, "ppo") == (
            "error: there is no pool or group ppo in namespace team, nor any other; you may not list those of other "
            "namespaces: if you know a namespace, add -n NAMESPACE"
        )


def closed_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


@pytest.mark.parametrize(
    ("url", "said"),
    [
        (f"http://127.0.0.1:{closed_port()}", "does not answer: Connection refused. Check that the cluster is up"),
        (f"https://127.0.0.1:{closed_port()}", "does not answer: Connection refused. Check that the cluster is up"),
        ("https://cluster.invalid", "does not answer: "),
        ("https://127.0.0.1:99999", "does not answer: "),
        ("https://exa mple", "does not answer: "),
    ],
    ids=["http", "https", "no such host", "no such port", "no host"],
)
def test_a_server_that_is_not_there_is_named_with_what_to_check(status, url, said):
    told = status(url)
    assert told.startswith("error: the API server at SERVER (context lab) ")
    assert said in told
    assert told.endswith("and that the context is the right one: kubectl config get-contexts")


@pytest.fixture
def speak():
    """A server that accepts connections, and then sends these bytes, or nothing."""
    listener = socket.create_server(("127.0.0.1", 0))
    held = []

    def serve(text):
        try:
            while True:
                held.append(listener.accept()[0])
                if text is not None:
                    held[-1].recv(1 << 16)
                    held[-1].sendall(text)
                    held[-1].close()
        except OSError:
            pass

    def speak(text):
        threading.Thread(target=serve, args=(text,), daemon=True).start()
        return f"127.0.0.1:{listener.getsockname()[1]}"

    yield speak
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    for connection in held:
        connection.close()


@pytest.mark.parametrize(
    ("scheme", "text", "said"),
    [
        ("http", None, "does not answer: "),
        ("http", b"", "does not answer: "),
        ("http", b"SSH-2.0-OpenSSH_9.2\r\n", "does not answer: "),
        ("http", b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{", "does not answer: "),
        ("https", None, "does not answer: "),
        ("https", b"", "cannot be trusted, or does not trust you"),
        ("https", b"HTTP/1.0 400 Bad Request\r\n\r\n", "it does not speak TLS"),
    ],
)
def test_a_server_that_speaks_otherwise_is_named(status, speak, monkeypatch, scheme, text, said):
    monkeypatch.setattr(rest, "REQUEST_SECONDS", 0.5)
    told = status(f"{scheme}://{speak(text)}")
    assert told.startswith("error: the API server at SERVER (context lab) ")
    assert said in told
    assert "Check that the cluster is up" in told or "kubeconfig" in told


@pytest.mark.parametrize(
    ("san", "is_old", "said"),
    [
        ("DNS:other.example", False, "is for another name"),
        ("IP:127.0.0.1", True, "is not valid now"),
    ],
)
def test_a_certificate_that_does_not_fit_says_how(status, authority, san, is_old, said):
    settings = {"certificate-authority": authority.own.certificate}
    with api_server(tls=authority.server_context("odd", san, is_old=is_old)) as server:
        told = status(server.url, **settings)
    assert said in told
    assert "cannot be trusted, or does not trust you" in told


WANTS_ONE = "if it wants a certificate of yours, ask the cluster's administrator for a new kubeconfig"


@pytest.mark.parametrize(
    ("version", "said"),
    [
        (ssl.TLSVersion.TLSv1_2, WANTS_ONE),
        # The refusal follows the handshake, and may be lost with the connection.
        (ssl.TLSVersion.TLSv1_3, f"{WANTS_ONE}|Check that the cluster is up"),
    ],
)
def test_a_server_that_wants_a_certificate_of_the_user_says_how_to_get_one(status, authority, version, said):
    settings = {"certificate-authority": authority.own.certificate}
    context = authority.server_context(ask_clients=True)
    context.maximum_version = version
    with api_server(tls=context) as server:
        assert re.search(said, status(server.url, **settings))


POOL = pool(
    "ppo",
    status={
        "conditions": [condition("Ready", "False")],
        "observedGeneration": 2,
        "nodes": 2,
        "reservation": {"session": "s", "nodes": [{"index": 0, "state": "Pending", "message": "m"}]},
        "drivers": {"session": "s", "running": 1, "jobs": ["a"]},
    },
)
GROUP = group("ppo", pools=[{"name": "ppo"}], status={"conditions": [condition("Ready", "True")], "incarnation": 1})
POD = {**head(), "spec": {"nodeName": "n"}, "status": {"phase": "Running"}}
POD["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
CORE = "/api/v1/namespaces/team/"
WRONG = (None, 3, "x", [{}])


def changed(value):
    """Yield the value with each of its parts missing, or something else."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield {name: each for name, each in value.items() if name != key}
            yield from ({**value, key: wrong} for wrong in WRONG)
            yield from ({**value, key: each} for each in changed(part))
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from ([*value[:index], each, *value[index + 1 :]] for each in (*WRONG, *changed(part)))


@pytest.mark.parametrize("odd", ["pool", "group", "pod"])
def test_whatever_an_object_lacks_there_is_an_error_that_can_be_understood(status, monkeypatch, odd):
    objects = {"pool": POOL, "group": GROUP, "pod": POD}
    asked = []

    def answer(_, method, path, **more):
        asked.append(path)
        answers = {
            POOLS: listed("ResourcePool", objects["pool"]),
            GROUPS: listed("WorkerGroup", objects["group"]),
            f"{POOLS}/ppo": Answer(objects["pool"]),
            f"{GROUPS}/ppo": Answer(objects["group"]),
            f"{CORE}pods": listed("Pod", objects["pod"]),
            f"{CORE}configmaps": listed("ConfigMap"),
        }
        if path in answers:
            return answers[path].body
        raise NotFoundError("no")

    monkeypatch.setattr(rest.Rest, "request", answer)
    for number, variant in enumerate(changed(copy.deepcopy(objects[odd]))):
        objects[odd] = variant
        words = ["ppo"] if odd == "pod" or number % 2 else []
        told = status("https://cluster.example", *words, code=None)
        assert "This is unexpected" not in told, (variant, told)
    assert f"{CORE}pods" in asked


def test_every_error_of_the_client_can_be_imported_from_it():
    names = [name for name, each in inspect.getmembers(errors, inspect.isclass) if each.__module__ == errors.__name__]
    assert "ForbiddenError" in names
    assert [getattr(workergroups_client, name) for name in names] == [getattr(errors, name) for name in names]
    assert set(names) <= set(workergroups_client.__all__)
