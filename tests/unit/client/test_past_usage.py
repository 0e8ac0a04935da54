"""What `workergroups usage` shows of what Prometheus has counted."""

import json
import os
from urllib.parse import parse_qs, urlsplit

import pytest
from typer.testing import CliRunner

from tests.unit.client.api_server import Answer, api_server, kubeconfig, refused
from workergroups_cli.app import app

HOUR = 3600.0
DEVICES = [
    ("team", "gpu", "Ready", 36 * HOUR),
    ("team", "gpu", "Free", 12 * HOUR),
    ("team", "gpu", "Pending", 100 * HOUR),
    ("team", "idle", "Pending", HOUR),
]
RANKS = [
    ("team", "policy", "Running", "step", 6 * HOUR),
    ("team", "policy", "Idle", "", 4 * HOUR),
    ("team", "policy", "Sleeping", "", HOUR),
]


def series(labels, rows):
    found = [{"metric": dict(zip(labels, row, strict=False)), "value": [0, str(row[-1])]} for row in rows]
    return {"status": "success", "data": {"resultType": "vector", "result": found}}


QUERY = "/api/v1/namespaces/monitoring/services/prometheus-operated:9090/proxy/api/v1/query"
COUNTED = [
    series(("namespace", "name", "state"), DEVICES),
    series(("namespace", "group", "activity", "method"), RANKS),
]


@pytest.fixture
def metered(tmp_path, monkeypatch):
    """An API server that passes questions on to a Prometheus."""
    for name in os.environ:
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    with api_server(answers={QUERY: [Answer(each) for each in COUNTED]}) as server:
        path = tmp_path / "config"
        path.write_text(json.dumps(kubeconfig(server.url)))
        monkeypatch.setenv("KUBECONFIG", str(path))
        yield server


def shown(*words):
    return CliRunner().invoke(app, ["usage", *words], env={"COLUMNS": "200"})


def lines(*words):
    return [line.split() for line in shown(*words).stdout.splitlines()]


def test_a_pool_has_the_hours_of_its_devices_and_a_group_what_its_ranks_did(metered):
    found = lines()
    assert ["POOL", "DEVICE", "HOURS", "STARTING", "FREE", "LAUNCHING", "READY", "UNKNOWN"] in found
    assert ["gpu", "48.0", "0%", "25%", "0%", "75%", "0%"] in found
    assert ["idle", "0.0", "-", "-", "-", "-", "-"] in found
    assert ["GROUP", "COUNTED", "IDLE", "WAITING", "COLLECTIVE", "RUNNING", "METHODS"] in found
    assert ["policy", "10h0m", "40%", "0%", "0%", "60%", "step", "60%"] in found


def test_a_device_that_no_pod_has_costs_nothing(metered):
    found = lines("--price", "2.5")
    assert ["gpu", "48.0", "0%", "25%", "0%", "75%", "0%", "120.00"] in found
    assert ["idle", "0.0", "-", "-", "-", "-", "-", "0.00"] in found


def test_all_namespaces_are_told_apart(metered):
    found = lines("-A")
    assert ["team", "gpu", "48.0", "0%", "25%", "0%", "75%", "0%"] in found
    assert ["team", "policy", "10h0m", "40%", "0%", "0%", "60%", "step", "60%"] in found


def test_scripts_get_seconds(metered):
    found = json.loads(shown("--output", "json", "--price", "1").stdout)
    assert found["kind"] == "PastUsageList"
    states = {"Ready": 36 * HOUR, "Free": 12 * HOUR, "Pending": 100 * HOUR}
    assert found["items"][0] == {"namespace": "team", "pool": "gpu", "states": states, "held": 48 * HOUR, "cost": 48.0}
    (group,) = found["groups"]
    assert (group["group"], group["seconds"], group["methods"]) == ("policy", 10 * HOUR, {"step": 0.6})


@pytest.mark.parametrize(
    ("words", "selectors"),
    [
        ((), ['{namespace="team"}[86400s]'] * 2),
        (("-A", "--since", "1h30m"), ["{}[5400s]"] * 2),
        (("gpu",), ['{namespace="team",name="gpu"}[86400s]', '{namespace="team",workergroups_dev_pool="gpu"}[86400s]']),
        (('a"b',), ['{namespace="team",name="a\\"b"}[', '{namespace="team",workergroups_dev_pool="a\\"b"}[']),
    ],
)
def test_only_what_is_wanted_is_asked_for(metered, words, selectors):
    shown(*words)
    asked = [parse_qs(urlsplit(path).query)["query"][0] for _, path, _, _ in metered.requests]
    assert [selector in query for query, selector in zip(asked, selectors, strict=True)] == [True, True]


def test_another_prometheus_can_be_named(metered):
    shown("--prometheus", "observability/https:thanos-query:web")
    proxied = "/api/v1/namespaces/observability/services/https:thanos-query:web/proxy/api/v1/query?"
    assert metered.requests[0][1].startswith(proxied)


@pytest.mark.parametrize("name", ["http://prometheus:9090", "monitoring/prometheus", "a/b/c:80", "../x:1", ""])
def test_what_names_no_service_is_refused(metered, name):
    found = shown("--prometheus", name)
    assert (found.exit_code, "NAMESPACE/SERVICE:PORT" in said_by(found)) == (1, True)
    assert metered.requests == []


def said_by(found):
    """What the command says, on one line."""
    return " ".join(f"{found.exception} {found.stderr}".split())


NO_RIGHT = 'User "jane" cannot get resource "services/proxy" in API group "" in the namespace "monitoring"'
OF_PROMETHEUS = {"status": "error", "errorType": "bad_data", "error": "query takes too many samples"}


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (refused(404, 'services "prometheus-operated" not found', name="prometheus-operated"), "not found. If Prom"),
        (refused(403, NO_RIGHT), "The role edit gives this right"),
        (refused(503, "no endpoints available"), "no endpoints available"),
        (Answer(b"<html><title>Log in</title>"), "it sends a web page (Log in)"),
        (Answer(OF_PROMETHEUS, 422), "query takes too many samples"),
        (Answer(b"404 page not found\n", 404), "--prometheus NAMESPACE/SERVICE:PORT"),
        (Answer({"kind": "Status"}), "answers otherwise than Prometheus does"),
        (Answer({"data": {"result": [{"metric": {}, "value": ["x"]}]}}), "answers otherwise than Prometheus does"),
        (Answer([]), "answers otherwise than Prometheus does"),
    ],
)
def test_a_prometheus_that_does_not_answer_is_named(metered, monkeypatch, answer, said):
    monkeypatch.setattr("workergroups_client.api_server.rest._PAUSES", (0.0,))
    metered.answers[QUERY] = [answer]
    found = shown()
    assert (found.exit_code, said in said_by(found)) == (1, True), said_by(found)


def test_nothing_that_was_counted_is_said(metered):
    metered.answers[QUERY] = [Answer(series((), []))]
    assert "counted nothing of pool gpu in the last 1h" in shown("gpu", "--since", "1h").stderr
