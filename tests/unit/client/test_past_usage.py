"""What `workergroups usage` shows of what Prometheus has counted."""

import json
import time
from urllib.parse import parse_qs, urlsplit

import pytest
from typer.testing import CliRunner

from tests.unit.client.api_server import Answer, api_server, refused
from workergroups_cli.app import app
from workergroups_client.api_server import rest
from workergroups_client.api_server.credentials import Login

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
OF_POOLS = Answer(series(("namespace", "name", "state"), DEVICES))
FROM_THEN = Answer(series((), [(1,)]))
OF_RANKS = Answer(series(("namespace", "group", "activity", "method"), RANKS))
NOTHING = Answer(series((), []))


@pytest.fixture
def metered(configure):
    """An API server that passes questions on to a Prometheus."""
    with api_server(answers={QUERY: [OF_POOLS, FROM_THEN, OF_RANKS]}) as server:
        configure(server.url)
        yield server


def shown(*words):
    return CliRunner().invoke(app, ["usage", *words], env={"COLUMNS": "200"})


def lines(*words):
    return [line.split() for line in shown(*words).stdout.splitlines()]


def test_a_pool_has_the_hours_of_its_devices_and_a_group_what_its_ranks_did(metered):
    found = lines()
    assert ["POOL", "DEVICE", "HOURS", "STARTING", "FREE", "LAUNCHING", "READY", "ENDING", "UNKNOWN"] in found
    assert ["gpu", "48.0", "0%", "25%", "0%", "75%", "0%", "0%"] in found
    assert ["idle", "0.0", "-", "-", "-", "-", "-", "-"] in found
    assert ["GROUP", "COUNTED", "IDLE", "WAITING", "COLLECTIVE", "RUNNING", "METHODS"] in found
    assert ["policy", "10h0m", "40%", "0%", "0%", "60%", "step", "60%"] in found


def test_a_device_that_no_pod_has_costs_nothing(metered):
    found = lines("--price", "2.5")
    assert ["gpu", "48.0", "0%", "25%", "0%", "75%", "0%", "0%", "120.00"] in found
    assert ["idle", "0.0", "-", "-", "-", "-", "-", "-", "0.00"] in found


def test_all_namespaces_are_told_apart(metered):
    found = lines("-A")
    assert ["team", "gpu", "48.0", "0%", "25%", "0%", "75%", "0%", "0%"] in found
    assert ["team", "policy", "10h0m", "40%", "0%", "0%", "60%", "step", "60%"] in found


def test_scripts_get_seconds(metered):
    found = json.loads(shown("--output", "json", "--price", "1").stdout)
    assert found["kind"] == "PastUsageList"
    states = {"Ready": 36 * HOUR, "Free": 12 * HOUR, "Pending": 100 * HOUR}
    assert found["items"][0] == {"namespace": "team", "pool": "gpu", "states": states, "held": 48 * HOUR, "cost": 48.0}
    (group,) = found["groups"]
    assert (group["group"], group["seconds"], group["methods"]) == ("policy", 10 * HOUR, {"step": 0.6})
    assert found["troubles"] == []


def test_that_prometheus_has_nothing_from_the_beginning_is_said(metered):
    metered.answers[QUERY] = [OF_POOLS, NOTHING, OF_RANKS]
    found = shown("--since", "168h")
    assert "has no figures of the operator from 7d0h ago: anything that was used before" in found.stderr
    assert "48.0" in found.stdout


def test_a_prometheus_that_has_figures_from_then_is_believed(metered):
    assert shown("--since", "168h").stderr == ""
    assert queries(metered)[1] == "count(max_over_time(workergroups_leading[10m] offset 604800s))"


def test_pools_are_shown_also_if_their_ranks_are_too_much_for_prometheus(metered):
    metered.answers[QUERY] = [OF_POOLS, FROM_THEN, Answer(OF_PROMETHEUS, 422)]
    found = shown()
    assert (found.exit_code, "48.0" in found.stdout) == (0, True)
    assert "what the ranks did is missing: " in found.stderr
    assert "query takes too many samples" in found.stderr


def test_without_pools_the_ranks_have_to_be_known(metered):
    metered.answers[QUERY] = [NOTHING, FROM_THEN, Answer(OF_PROMETHEUS, 422)]
    found = shown()
    assert (found.exit_code, "query takes too many samples" in said_by(found)) == (1, True)


class Slow(Answer):
    def body_bytes(self):
        time.sleep(1)
        return super().body_bytes()


def test_prometheus_may_take_longer_than_an_api_server(metered, monkeypatch):
    monkeypatch.setattr(rest, "REQUEST_SECONDS", 0.5)
    metered.answers[QUERY][0] = Slow(OF_POOLS.body)
    assert "48.0" in shown().stdout


def queries(server):
    return [parse_qs(urlsplit(path).query)["query"][0] for _, path, _, _ in server.requests]


def test_a_series_that_prometheus_has_twice_counts_once(metered):
    shown()
    risen = 'increase(workergroups_pool_device_seconds_total{namespace="team"}[86400s])'
    once = f"max by (namespace,name,state,instance,WorkerId) ({risen})"
    assert queries(metered)[0] == f"sum by (namespace,name,state) ({once}) > 0"


@pytest.mark.parametrize(
    ("words", "selectors"),
    [
        ((), ['{namespace="team"}[86400s]'] * 2),
        (("-A", "--since", "1h30m"), ["{}[5400s]"] * 2),
        (("gpu",), ['{namespace="team",name="gpu"}[86400s]', '{namespace="team",workergroups_dev_pool="gpu"}[86400s]']),
        (("pool/gpu", "-A"), ['{name="gpu"}[86400s]', '{workergroups_dev_pool="gpu"}[86400s]']),
    ],
)
def test_only_what_is_wanted_is_asked_for(metered, words, selectors):
    shown(*words)
    of_pools, _, of_ranks = queries(metered)
    assert (selectors[0] in of_pools, selectors[1] in of_ranks) == (True, True)


@pytest.mark.parametrize("name", ['a"b', "gpu\N{PILE OF POO}", ""])
def test_a_name_that_no_pool_can_have_is_refused(metered, name):
    found = shown(name)
    assert (found.exit_code, f"{name!r} cannot be a name" in said_by(found)) == (1, True)
    assert metered.requests == []


@pytest.mark.parametrize(
    "words",
    [
        *(("--price", price) for price in ("nan", "inf", "1e999", "-1")),
        *(("--since", since) for since in ("15s", "1m59s", "87601h", "999999999h")),
    ],
)
def test_a_price_or_a_time_that_makes_no_sense_is_wrong_usage(metered, words):
    found = shown(*words)
    assert (found.exit_code, words[0] in found.stderr) == (2, True)
    assert metered.requests == []


@pytest.mark.parametrize("since", ["2m", "87600h"])
def test_two_minutes_and_ten_years_can_be_asked_for(metered, since):
    assert "48.0" in shown("--since", since).stdout


def test_another_prometheus_can_be_named(metered):
    shown("--prometheus", "observability/https:thanos-query:web")
    proxied = "/api/v1/namespaces/observability/services/https:thanos-query:web/proxy/api/v1/query?"
    assert metered.requests[0][1].startswith(proxied)


@pytest.mark.parametrize("name", ["http://prometheus:9090", "monitoring/prometheus", "a/b/c:80", "../x:1", ""])
def test_what_names_no_service_is_refused(metered, name):
    found = shown("--prometheus", name)
    assert (found.exit_code, f"--prometheus {name!r} names no Service" in said_by(found)) == (1, True)
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
        (Answer(b"Unauthorized\n", 401), "Service prometheus-operated:9090 in namespace monitoring wants a login"),
        (refused(401, "Unauthorized"), "does not accept your login (Unauthorized)"),
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


@pytest.mark.parametrize(("answer", "requests"), [(Answer(b"", 401), 1), (refused(401, "Unauthorized"), 2)])
def test_a_login_is_renewed_for_the_api_server_and_not_for_prometheus(metered, monkeypatch, answer, requests):
    monkeypatch.setattr(Login, "renew", lambda _: True)
    metered.answers[QUERY] = [answer]
    shown()
    assert len(metered.requests) == requests


def test_nothing_that_was_counted_is_said(metered):
    metered.answers[QUERY] = [NOTHING]
    assert "counted nothing of pool gpu in the last 1h" in shown("gpu", "--since", "1h").stderr
