"""What the chart installs."""

import ast
import json

import pytest
import yaml

from tests.unit.chart.helm import CHART, IMAGES, Refused
from tools.release import version
from workergroups_operator.settings import NetworkSettings, Settings

NAME = "workergroups-operator"
CRD_FILES = sorted((CHART / "files" / "crds").glob("*.yaml"))


def test_lint_finds_nothing(helm):
    assert "0 chart(s) failed" in helm.run("lint", CHART, "--strict", *IMAGES)


@pytest.mark.parametrize("file", CRD_FILES, ids=lambda file: file.stem)
def test_crds_are_the_generated_ones_and_stay_when_the_release_goes(find, file):
    generated = yaml.safe_load(file.read_text())
    rendered = find("CustomResourceDefinition", generated["metadata"]["name"])
    assert rendered["spec"] == generated["spec"]
    assert rendered["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}


def test_artifact_hub_shows_each_crd(find):
    about = yaml.safe_load((CHART / "Chart.yaml").read_text())["annotations"]["artifacthub.io/crds"]
    listed = [(each["name"], each["kind"], each["version"]) for each in yaml.safe_load(about)]
    files = [yaml.safe_load(file.read_text()) for file in sorted((CHART / "files" / "crds").iterdir())]
    versions = [(each["metadata"]["name"], each["spec"]["names"]["kind"], each["spec"]["versions"]) for each in files]
    assert listed == [(name, kind, version["name"]) for name, kind, (version,) in versions]


def test_crds_go_with_the_release_if_asked_to(helm):
    crds = _of_kind(helm.render("--set=crds.keep=false"), "CustomResourceDefinition")
    assert len(crds) == len(CRD_FILES)
    assert all("annotations" not in crd["metadata"] for crd in crds)


def test_crds_can_be_left_to_somebody_else(helm):
    assert not _of_kind(helm.render("--set=crds.install=false"), "CustomResourceDefinition")


def test_of_two_operators_the_one_that_holds_the_lease_serves_and_a_drain_ends_one_at_a_time(helm, find):
    assert find("Deployment", NAME)["spec"]["replicas"] == 2
    budget = find("PodDisruptionBudget", NAME)["spec"]
    assert budget["maxUnavailable"] == 1
    assert budget["selector"] == find("Deployment", NAME)["spec"]["selector"]
    alone = helm.render("--set=operator.replicas=1")
    assert "PodDisruptionBudget" not in {each["kind"] for each in alone}, "it would keep a node from being drained"


def test_the_operator_finds_its_settings(find, monkeypatch):
    (container,) = _pod_spec(find)["containers"]
    for variable in container["env"]:
        monkeypatch.setenv(variable["name"], variable["value"])
    submitters = {"key": "batch.kubernetes.io/job-name", "operator": "Exists"}
    kuberay = {"key": "app.kubernetes.io/name", "operator": "In", "values": ["kuberay", "kuberay-operator"]}
    assert Settings.from_environment() == Settings(
        worker_image="example/worker:1",
        operator_image="example/operator:1",
        network=NetworkSettings(
            dashboard_from=[
                {"podSelector": {"matchExpressions": [submitters]}},
                {"namespaceSelector": {}, "podSelector": {"matchExpressions": [kuberay]}},
            ]
        ),
        metrics_port=8081,
        lease_namespace="somewhere",
    )


def test_nobody_but_prometheus_connects_to_the_operator(find):
    spec = find("NetworkPolicy", NAME)["spec"]
    assert (
        spec["podSelector"]["matchLabels"].items()
        <= find("Deployment", NAME)["spec"]["template"]["metadata"]["labels"].items()
    )
    monitoring = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}
    assert (spec["policyTypes"], spec["ingress"]) == (
        ["Ingress"],
        [{"from": [monitoring], "ports": [{"port": "metrics"}]}],
    )


@pytest.mark.parametrize("option", ["--set=metrics.enabled=false", "--set-json=metrics.from=[]"])
def test_without_metrics_nobody_connects_to_the_operator(helm, option):
    (policy,) = _of_kind(helm.render(option), "NetworkPolicy")
    assert policy["spec"]["ingress"] == []


def test_the_prometheus_operator_finds_the_metrics_and_the_alerts(helm):
    options = (
        "--set=metrics.podMonitor=true",
        "--set=metrics.prometheusRule=true",
        "--set=metrics.dashboard=true",
        "--set=metrics.labels.release=stack",
    )
    manifests = helm.render(*options)
    (monitor, of_ray), (rule,) = _of_kind(manifests, "PodMonitor"), _of_kind(manifests, "PrometheusRule")
    assert of_ray["spec"]["namespaceSelector"] == {"any": True}
    (_, of_ours) = _of_kind(helm.render(*options, "--set=namespaces={team}"), "PodMonitor")
    assert of_ours["spec"]["namespaceSelector"] == {"matchNames": ["team"]}
    (deployment,) = _of_kind(manifests, "Deployment")
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert monitor["spec"]["selector"]["matchLabels"].items() <= labels.items()
    ports = {each["name"] for each in deployment["spec"]["template"]["spec"]["containers"][0]["ports"]}
    assert {each["port"] for each in monitor["spec"]["podMetricsEndpoints"]} <= ports
    assert monitor["metadata"]["labels"]["release"] == rule["metadata"]["labels"]["release"] == "stack"
    assert [group["name"] for group in rule["spec"]["groups"]] == ["workergroups"]
    (dashboard,) = _of_kind(manifests, "ConfigMap")
    assert dashboard["metadata"]["labels"].items() >= {"grafana_dashboard": "1", "release": "stack"}.items()
    assert json.loads(dashboard["data"]["workergroups.json"])["uid"] == "workergroups"
    assert not _of_kind(helm.render(), "PodMonitor") + _of_kind(helm.render(), "PrometheusRule")


def test_without_network_policies_the_chart_has_none_and_the_operator_knows(helm):
    manifests = helm.render("--set=networkPolicy.enabled=false")
    assert not _of_kind(manifests, "NetworkPolicy")
    (container,) = _pods(manifests)[0]["containers"]
    (said,) = [each["value"] for each in container["env"] if each["name"] == "NETWORK_POLICY"]
    assert not NetworkSettings.from_json(said).is_on


@pytest.mark.parametrize("kind", ["Deployment", "Pod"])
def test_pods_meet_the_restricted_pod_security_standard(find, kind):
    pod = _pod_spec(find) if kind == "Deployment" else find("Pod", f"{NAME}-test")["spec"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in pod["containers"]:
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }


def test_liveness_asks_kopf(find):
    (container,) = _pod_spec(find)["containers"]
    (port,) = [each for each in container["ports"] if each["containerPort"] == 8080]
    assert container["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": port["name"]}


POD_SETTINGS = {
    "nodeSelector": {"pool": "system"},
    "tolerations": [{"key": "system", "operator": "Exists"}],
    "imagePullSecrets": [{"name": "registry"}],
    "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}},
    "priorityClassName": "system-cluster-critical",
}


def test_pod_settings_reach_the_operator_and_the_test(helm):
    for pod in _pods(
        helm.render(*(f"--set-json=operator.{name}={json.dumps(it)}" for name, it in POD_SETTINGS.items()))
    ):
        assert pod.items() >= POD_SETTINGS.items()


def test_pods_have_no_empty_settings(manifests):
    for pod in _pods(manifests):
        assert POD_SETTINGS.keys() & pod.keys() == set()


def test_security_settings_can_be_changed_one_by_one(helm):
    values = ("podSecurityContext.runAsUser=null", "podSecurityContext.fsGroup=7", "securityContext.runAsNonRoot=true")
    for pod in _pods(helm.render(*(f"--set=operator.{value}" for value in values))):
        seccomp = {"type": "RuntimeDefault"}
        group = {"runAsGroup": 65532, "fsGroup": 7}
        assert pod["securityContext"] == {"runAsNonRoot": True, "seccompProfile": seccomp, **group}
        (container,) = pod["containers"]
        assert container["securityContext"].items() >= {"runAsNonRoot": True, "readOnlyRootFilesystem": True}.items()


def test_labels_and_annotations_are_of_the_deployment_and_its_pod(helm, find):
    labels, annotations = {"team": "ml"}, {"example.com/scrape": "true"}
    added = ("--set=operator.labels.team=ml", r"--set-string=operator.annotations.example\.com/scrape=true")
    (deployment,) = _of_kind(helm.render(*added), "Deployment")
    plain = find("Deployment", NAME)
    assert deployment["spec"]["selector"] == plain["spec"]["selector"]
    for changed, before in ((deployment, plain), (deployment["spec"]["template"], plain["spec"]["template"])):
        assert changed["metadata"]["labels"] == before["metadata"]["labels"] | labels
        assert changed["metadata"]["annotations"] == annotations


def test_variables_are_added_to_the_operators(helm, find):
    added = {"name": "KUBERNETES_CLIENT", "value": "x"}
    (deployment,) = _of_kind(helm.render(f"--set-json=operator.env={json.dumps([added])}"), "Deployment")
    (container,), (before,) = deployment["spec"]["template"]["spec"]["containers"], _pod_spec(find)["containers"]
    assert container["env"] == [*before["env"], added]


def test_the_log_is_as_the_values_say(helm):
    (deployment,) = _of_kind(helm.render("--set=operator.log.level=debug,operator.log.format=json"), "Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    variables = {variable["name"]: variable["value"] for variable in container["env"]}
    assert (variables["LOG_LEVEL"], variables["LOG_FORMAT"]) == ("debug", "json")


def test_the_service_account_can_be_somebody_elses(helm):
    manifests = helm.render("--set=operator.serviceAccount.create=false,operator.serviceAccount.name=theirs")
    (deployment,) = _of_kind(manifests, "Deployment")
    (binding,) = _of_kind(manifests, "ClusterRoleBinding")
    assert deployment["spec"]["template"]["spec"]["serviceAccountName"] == "theirs"
    assert [subject["name"] for subject in binding["subjects"]] == ["theirs"]
    assert {each["metadata"]["name"] for each in _of_kind(manifests, "ServiceAccount")} == {f"{NAME}-test"}


def test_the_service_account_has_its_annotations(helm):
    (account, _) = _of_kind(helm.render("--set=operator.serviceAccount.annotations.role=arn"), "ServiceAccount")
    assert (account["metadata"]["name"], account["metadata"]["annotations"]) == (NAME, {"role": "arn"})


def test_the_hook_leaves_nothing_behind(manifests):
    hooks = [each for each in manifests if "helm.sh/hook" in each["metadata"].get("annotations", {})]
    assert {hook["kind"] for hook in hooks} == {"ServiceAccount", "Role", "RoleBinding", "Pod"}
    for hook in hooks:
        assert hook["metadata"]["annotations"]["helm.sh/hook"] == "test"
        policies = hook["metadata"]["annotations"]["helm.sh/hook-delete-policy"].split(",")
        assert {"hook-succeeded", "hook-failed"} <= set(policies)


def test_the_hook_runs_the_script(find):
    (container,) = find("Pod", f"{NAME}-test")["spec"]["containers"]
    *_, script = container["command"]
    assert ast.parse(script)
    assert script == (CHART / "files" / "check.py").read_text()
    assert container["args"] == [NAME, "somewhere"]


@pytest.mark.parametrize(
    ("settings", "registry", "tag"),
    [
        ([], "ghcr.io/workergroups", version.current()),
        (["--set=image.registry=mirror.example:5000/a/b,image.tag=nightly"], "mirror.example:5000/a/b", "nightly"),
    ],
)
def test_without_other_images_it_installs_the_releases(helm, settings, registry, tag):
    manifests = helm.render("--set=operator.image=,worker.image=", *settings)
    (deployment,), (test,) = _of_kind(manifests, "Deployment"), _of_kind(manifests, "Pod")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    variables = {variable["name"]: variable["value"] for variable in container["env"]}
    operator, worker = f"{registry}/workergroups-operator:{tag}", f"{registry}/workergroups-worker:{tag}"
    assert (container["image"], test["spec"]["containers"][0]["image"]) == (operator, operator)
    assert (variables["OPERATOR_IMAGE"], variables["WORKER_IMAGE"]) == (operator, worker)


@pytest.mark.parametrize(
    ("setting", "complaint"),
    [
        ("--set=operator.replicas=two", "replicas"),
        ('--set-json=operator.env=[{"name":"LEASE_NAMESPACE","value":"x"}]', "env"),
        ('--set-json=operator.env=[{"name":"METRICS_PORT","value":"1"}]', "env"),
        ("--set=workers.image=x", "workers"),
        ("--set=crds.keep=maybe", "keep"),
        ("--set=operator.imagePullPolicy=Sometimes", "imagePullPolicy"),
        ("--set=worker.image=a b", "image"),
        ("--set=operator.resources.limits.memory=lots", "memory"),
        ("--set=operator.resources.claims=x", "claims"),
        ('--set-json=operator.tolerations=[{"effect":"Never"}]', "effect"),
        ("--set=operator.affinity.node=x", "affinity"),
        ("--set=operator.log.format=yaml", "format"),
        ("--set=operator.log.level=loud", "level"),
        ("--set=operator.labels.app\\.kubernetes\\.io/name=x", "app.kubernetes.io/name"),
        ("--set=operator.annotations.a=1", "annotations"),
        ('--set-json=operator.env=[{"name":"WORKER_IMAGE","value":"x"}]', "env"),
        ("--set=operator.serviceAccount.create=false", "name"),
        ('--set-json=namespaces=["A"]', "namespaces"),
        ('--set-json=namespaces=["a", "a"]', "namespaces"),
        ('--set-json=operator.env=[{"name":"NAMESPACES","value":"x"}]', "env"),
        ("--set=networkPolicy.enabled=maybe", "enabled"),
        ('--set-json=networkPolicy.dashboardFrom=[{"pods":{}}]', "dashboardFrom"),
        ("--set-json=networkPolicy.egress=[{}]", "egress"),
        ('--set-json=networkPolicy.egress=[{"from":[]}]', "egress"),
        ('--set-json=operator.env=[{"name":"NETWORK_POLICY","value":"{}"}]', "env"),
        ("--set=image.registry=", "registry"),
        ("--set=image.registry=example.com/", "registry"),
    ],
)
def test_values_are_checked(helm, setting, complaint):
    with pytest.raises(Refused, match=f"(?s)don't meet the specifications.*{complaint}"):
        helm.render(setting)


def _pods(manifests: list[dict]) -> list[dict]:
    """The operator's pod, and that of the test."""
    (deployment,), (test,) = _of_kind(manifests, "Deployment"), _of_kind(manifests, "Pod")
    return [deployment["spec"]["template"]["spec"], test["spec"]]


def _pod_spec(find) -> dict:
    return find("Deployment", NAME)["spec"]["template"]["spec"]


def _of_kind(manifests: list[dict], kind: str) -> list[dict]:
    return [each for each in manifests if each["kind"] == kind]
