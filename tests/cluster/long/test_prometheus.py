"""A real Prometheus, from Debian's package, that scrapes the operator and knows the chart's alerts."""

import json
import os
import socket
import subprocess
import time
import urllib.parse
import urllib.request
from pathlib import Path

import pytest
import yaml

from tests.cluster.command_line import CommandLine
from tests.cluster.drivers import drive
from tests.cluster.kubectl import group, kubectl, pool

RULES = Path(__file__).parents[3] / "charts" / "workergroups" / "files" / "rules.yaml"
DASHBOARD = RULES.parent / "dashboard.json"
OBJECT = '{{kind="{}", namespace="team", name="{}"}}'
# What Prometheus would have scraped in an hour, a value each minute, of a pool that waits and one that is suspended.
WAITS, SUSPENDED = OBJECT.format("ResourcePool", "waits"), OBJECT.format("ResourcePool", "rests")


@pytest.fixture(scope="module")
def debian(tmp_path_factory):
    """The programs of the package, which is not installed: its service would start."""
    folder = tmp_path_factory.mktemp("debian")
    subprocess.run(["apt-get", "download", "--quiet", "prometheus"], cwd=folder, check=True, timeout=300)
    (package,) = folder.glob("prometheus_*.deb")
    subprocess.run(["dpkg-deb", "--extract", package, folder], check=True, timeout=60)
    return folder / "usr" / "bin"


NOTHING_IS_FINE = {
    "Not ready, and why",
    "Restarts of groups in an hour",
    "Ranks that failed in an hour, by reason",
    "Age of the oldest call",
    "Ranks and nodes that are missing",
}


class Prometheus:
    def __init__(self, port, folder):
        self.port, self.url = port, f"http://127.0.0.1:{port}/api/v1"
        self.folder = folder

    def scrape_ray(self, namespace):
        """As the PodMonitor of Ray's pods: at their port of this name."""
        pods = namespace.get("pods", selector="workergroups.dev/component in (head, worker)")
        (port,) = {
            each["containerPort"]
            for pod in pods
            for each in pod["spec"]["containers"][0]["ports"]
            if each["name"] == "metrics"
        }
        targets = [
            {
                "targets": [f"{pod['status']['podIP']}:{port}"],
                "labels": {
                    "namespace": namespace.name,
                    "workergroups_dev_pool": pod["metadata"]["labels"].get("workergroups.dev/pool", ""),
                },
            }
            for pod in pods
        ]
        (self.folder / "ray.json").write_text(json.dumps(targets))

    def ask(self, path, **query):
        with urllib.request.urlopen(f"{self.url}/{path}?{urllib.parse.urlencode(query)}", timeout=10) as answer:
            return json.load(answer)["data"]

    def value(self, query):
        """The only value, None without one."""
        found = self.ask("query", query=query)["result"]
        return float(found[0]["value"][1]) if found else None

    def until(self, query, expected, seconds=60):
        end = time.monotonic() + seconds
        while (found := self.value(query)) != expected:
            assert time.monotonic() < end, f"{query} is {found}, and not {expected}"
            time.sleep(0.5)


@pytest.fixture(scope="module")
def prometheus(debian, tmp_path_factory):
    labels = "app.kubernetes.io/name=workergroups-operator"
    found = kubectl("get", "pods", "--namespace=workergroups-system", f"--selector={labels}", "--output=json")
    addresses = [pod["status"]["podIP"] for pod in json.loads(found)["items"]]
    scrape = {
        "job_name": "operator",
        "honor_labels": True,
        "static_configs": [{"targets": [f"{address}:8081" for address in addresses]}],
    }
    folder = tmp_path_factory.mktemp("prometheus")
    of_ray = {"job_name": "ray", "file_sd_configs": [{"files": [f"{folder}/ray.json"], "refresh_interval": "1s"}]}
    settings = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "scrape_configs": [scrape, of_ray],
        "rule_files": [str(RULES)],
    }
    (folder / "prometheus.yml").write_text(yaml.safe_dump(settings))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [debian / "prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data"]
    process = subprocess.Popen([*command, f"--web.listen-address=:{port}"], stderr=subprocess.DEVNULL)
    server = Prometheus(port, folder)
    end = time.monotonic() + 60
    while True:
        try:
            server.ask("query", query="up")
            break
        except OSError:
            assert time.monotonic() < end
            assert process.poll() is None
            time.sleep(0.2)
    yield server
    process.terminate()
    process.wait(30)


def of(metric, namespace, name="actors", **more):
    labels = {"namespace": namespace.name, "name": name, **more}
    return metric + "{" + ", ".join(f'{key}="{value}"' for key, value in labels.items()) + "}"


def test_what_prometheus_has_is_true_and_a_death_counts_once(prometheus, namespace):
    namespace.apply(pool("actors", nodes=1, processes=2), group("actors"))
    namespace.until_ready("workergroup", "actors")
    prometheus.until(of("workergroups_ready", namespace, kind="WorkerGroup"), 1)
    assert prometheus.value(of("workergroups_ready_size", namespace, kind="WorkerGroup")) == 2
    prometheus.until(of("workergroups_pool_devices", namespace, state="Ready"), 2)
    before = namespace.get("workergroup", "actors")["status"]["incarnation"]
    (_, rank) = drive(namespace, "actors", "", "workergroups.attach('actors').execute_all_sync('look')")
    namespace.run("exec", rank["pod"], "--", "sh", "-c", f"kill -9 {rank['pid']}")
    namespace.until(
        lambda: namespace.get("workergroup", "actors")["status"]["incarnation"], lambda now: now > before, 60
    )
    namespace.until_ready("workergroup", "actors")
    prometheus.until(of("workergroups_group_restarts_total", namespace), 1)
    prometheus.until(f"sum({of('workergroups_rank_failures_total', namespace)})", 1)
    prometheus.until(of("workergroups_rank_failures_total", namespace, reason="ProcessDied"), 1)


def test_each_second_of_the_ranks_is_booked(prometheus, namespace):
    """Two ranks that nothing calls: two seconds are booked in each second. Ray reports them every ten seconds."""
    prometheus.scrape_ray(namespace)
    idle = 'sum(rate(ray_workergroups_rank_seconds_total{group="actors", activity="Idle"}[1m]))'
    end = time.monotonic() + 120
    while not 1.8 < (found := prometheus.value(idle) or 0) < 2.2:
        print(found)
        assert time.monotonic() < end, found
        time.sleep(1)


# The API server connects a Service to pods only, so a pod passes on what the Prometheus of this machine answers.
PASSES_ON = """
import http.server, sys, urllib.request
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        with urllib.request.urlopen(sys.argv[1] + self.path) as answer:
            body = answer.read()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
http.server.HTTPServer(("", 9090), Handler).serve_forever()
"""


@pytest.fixture
def service(prometheus, namespace):
    """A Service in whose place Prometheus answers."""
    (subset,) = json.loads(kubectl("get", "endpoints", "kubernetes", "--output=json"))["subsets"]
    machine = f"http://{subset['addresses'][0]['ip']}:{prometheus.port}"
    metadata = {"name": "prometheus", "labels": {"app": "prometheus"}}
    image = {"image": os.environ["OPERATOR_IMAGE"], "imagePullPolicy": "IfNotPresent"}
    container = {"name": "prometheus", "command": ["python3", "-c", PASSES_ON, machine], **image}
    ports = [{"port": 9090}]
    namespace.apply(
        {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}},
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": metadata,
            "spec": {"ports": ports, "selector": metadata["labels"]},
        },
    )
    namespace.run("wait", "pod/prometheus", "--for=condition=Ready", "--timeout=60s")
    return f"{namespace.name}/prometheus:9090"


def test_the_command_line_shows_what_each_device_and_each_rank_did(namespace, service, tmp_path):
    """Two devices of two ranks that are ready all the time, and that nothing calls."""
    time.sleep(120)  # of which each second is counted, whatever was before
    workergroups = CommandLine(namespace, tmp_path)
    found = workergroups.json("usage", "actors", "--since=2m", f"--prometheus={service}", "--price=60")
    (of_pool,), (of_group,) = found["items"], found["groups"]
    assert of_pool["states"] == {"Ready": pytest.approx(240, rel=0.02)}
    assert of_pool["cost"] == pytest.approx(4, rel=0.02)
    assert (of_group["group"], of_group["activities"]["Idle"] > 0.95) == ("actors", True)


def test_a_pool_that_waits_becomes_an_alert_and_one_that_is_gone_no_series(prometheus, namespace):
    namespace.apply(pool("waits", accelerator={"vendor": "nvidia", "product": "None"}))
    prometheus.until(of("workergroups_pool_devices", namespace, "waits", state="Pending"), 2)
    prometheus.until(of("ALERTS", namespace, "waits", alertname="WorkerGroupsNotReady", alertstate="pending"), 1)
    namespace.run("delete", "resourcepool", "waits")
    prometheus.until(of("workergroups_ready", namespace, "waits"), None)


def test_no_alert_is_wrong_about_the_metrics(prometheus):
    groups = prometheus.ask("rules")["groups"]
    assert [rule["health"] for each in groups for rule in each["rules"]] == ["ok"] * 6
    assert prometheus.value("workergroups_clusters") >= 1
    assert prometheus.value('workergroups_reconcile_seconds_count{result="done"}') > 0


def test_each_query_of_the_dashboard_has_an_answer(prometheus):
    panels = json.loads(DASHBOARD.read_text())["panels"]
    queries = {panel["title"]: each["expr"] for panel in panels for each in panel.get("targets", ())}
    for title, query in queries.items():
        answer = prometheus.ask("query", query=query.replace("$namespace", ".*"))["result"]
        # What there may be none of at the moment.
        assert answer or title in NOTHING_IS_FINE, title


TESTS = {
    "rule_files": [str(RULES)],
    "evaluation_interval": "1m",
    "tests": [
        {
            "interval": "1m",
            "input_series": [
                {"series": "workergroups_clusters", "values": "1x10 _x60"},
                {"series": f"workergroups_ready{WAITS}", "values": "0x60"},
                {
                    "series": f'workergroups_ready_reason{WAITS[:-1]}, reason="InsufficientResources"}}',
                    "values": "1x60",
                },
                {"series": f"workergroups_ready{SUSPENDED}", "values": "0x60"},
                {"series": f'workergroups_ready_reason{SUSPENDED[:-1]}, reason="Suspended"}}', "values": "1x60"},
                {"series": 'workergroups_ready_reason{name="lost", status="Unknown"}', "values": "1x60"},
                {"series": 'workergroups_group_restarts_total{name="fails"}', "values": "0x10 1+1x4 5x46"},
                {"series": 'workergroups_group_restarts_total{name="well"}', "values": "1x60"},
                {"series": 'workergroups_group_oldest_call_timestamp_seconds{name="stuck"}', "values": "-3000x60"},
                {"series": 'workergroups_reconcile_seconds_count{result="failed"}', "values": "0+6x60"},
                {"series": 'workergroups_reconcile_seconds_count{result="done"}', "values": "0+3x60"},
            ],
            "promql_expr_test": [
                {
                    "expr": 'sort(count by (alertname, name) (ALERTS{alertstate="firing"}))',
                    "eval_time": "30m",
                    "exp_samples": [
                        {"labels": '{alertname="WorkerGroupsCallTakesLong", name="stuck"}', "value": 1},
                        {"labels": '{alertname="WorkerGroupsNotReady", name="waits"}', "value": 1},
                        {"labels": '{alertname="WorkerGroupsOperatorAbsent"}', "value": 1},
                        {"labels": '{alertname="WorkerGroupsReconcilesFail"}', "value": 1},
                        {"labels": '{alertname="WorkerGroupsRestartsOften", name="fails"}', "value": 1},
                        {"labels": '{alertname="WorkerGroupsUnknown", name="lost"}', "value": 1},
                    ],
                }
            ],
        }
    ],
}


def test_each_alert_fires_for_its_reason_and_for_no_other(debian, tmp_path):
    (tmp_path / "tests.yml").write_text(yaml.safe_dump(TESTS))
    done = subprocess.run(
        [debian / "promtool", "test", "rules", tmp_path / "tests.yml"], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr
