"""What the chart installs."""

import ast
import json
import re
import shutil
from pathlib import Path

import pytest
import yaml

from tests.unit.chart.helm import CHART, IMAGES, Refused
from tools.release import version
from workergroups_operator.desired.network_policy import network_policy
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


def test_crds_can_be_left_to_somebody_else_but_never_so_that_helm_deletes_them(helm):
    assert not _of_kind(helm.render("--set=crds.install=false"), "CustomResourceDefinition")
    with pytest.raises(Refused, match=r"upgrade with crds\.keep: true first"):
        helm.render("--set=crds.install=false,crds.keep=false")


def test_of_two_operators_the_one_that_holds_the_lease_serves_and_a_drain_ends_one_at_a_time(helm, find):
    assert find("Deployment", NAME)["spec"]["replicas"] == 2
    budget = find("PodDisruptionBudget", NAME)["spec"]
    assert budget["maxUnavailable"] == 1
    assert budget["unhealthyPodEvictionPolicy"] == "AlwaysAllow", "two that are not ready would keep a node for ever"
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
    (policy, _) = _of_kind(helm.render(option), "NetworkPolicy")
    assert (policy["metadata"]["name"], policy["spec"]["ingress"]) == (NAME, [])


RULES = {
    "the chart's": {},
    "peers": {"dashboardFrom": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}}]},
    "egress": {"egress": [{"ports": [{"port": 443, "endPort": 444, "protocol": "TCP"}]}]},
    "nobody and nowhere": {"dashboardFrom": [], "egress": []},
    "not enabled": {"enabled": False},
}


@pytest.mark.parametrize("rules", RULES.values(), ids=RULES)
def test_a_policy_for_no_pod_shows_the_rules_of_clusters_to_the_api_server(helm, rules):
    manifests = helm.render(f"--set-json=networkPolicy={json.dumps(rules)}")
    (policy,) = [each for each in _of_kind(manifests, "NetworkPolicy") if each["metadata"]["name"] != NAME]
    (said,) = [each["value"] for each in _environment(manifests) if each["name"] == "NETWORK_POLICY"]
    of_cluster = network_policy("c", NetworkSettings.from_json(said))["spec"]
    # What comes before these is the same in every cluster: its own pods, and DNS.
    expected = of_cluster["ingress"][1:], of_cluster.get("egress", [])[2:]
    assert (policy["spec"].get("ingress", []), policy["spec"].get("egress", [])) == expected
    assert policy["spec"]["policyTypes"] == of_cluster["policyTypes"]
    assert policy["spec"]["podSelector"] == {"matchLabels": {"workergroups.dev/component": "none"}}


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


def test_rays_metrics_are_scraped_without_the_operators(helm):
    (of_ray,) = _of_kind(helm.render("--set=metrics.enabled=false,metrics.podMonitor=true"), "PodMonitor")
    assert of_ray["metadata"]["name"] == f"{NAME}-ray"


@pytest.mark.parametrize("value", ["metrics.prometheusRule", "metrics.dashboard"])
def test_nothing_shows_metrics_that_are_off(helm, value):
    with pytest.raises(Refused, match=f"set metrics.enabled to true, or {value} to false"):
        helm.render(f"--set=metrics.enabled=false,{value}=true")


def test_without_network_policies_no_pod_has_one_and_the_operator_knows(helm):
    manifests = helm.render("--set=networkPolicy.enabled=false")
    assert NAME not in [each["metadata"]["name"] for each in _of_kind(manifests, "NetworkPolicy")]
    (said,) = [each["value"] for each in _environment(manifests) if each["name"] == "NETWORK_POLICY"]
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


def test_both_pods_have_the_resources_that_a_quota_asks_for(helm):
    for pod in _pods(helm.render("--set-string=operator.resources.limits.cpu=1")):
        (container,) = pod["containers"]
        limits, requests = {"cpu": "1", "memory": "384Mi"}, {"cpu": "50m", "memory": "128Mi"}
        assert container["resources"] == {"limits": limits, "requests": requests}


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


def test_an_operator_whose_account_is_called_like_an_agents_is_no_agent(helm):
    manifests = helm.render("--set=operator.serviceAccount.name=platform-agent")
    (policy,) = [each for each in manifests if _name(each) == ("ValidatingAdmissionPolicy", "workergroups-agents")]
    (condition,) = policy["spec"]["matchConditions"]
    is_not = "request.userInfo.username != 'system:serviceaccount:somewhere:platform-agent'"
    assert condition["expression"].endswith(f" && {is_not}")


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
        # The API server would ignore the unknown field, and then select all pods.
        ('--set-json=networkPolicy.dashboardFrom=[{"podSelector":{"labels":{"app":"kuberay"}}}]', "podSelector"),
        ('--set-json=networkPolicy.dashboardFrom=[{"ipBlock":{"cidrs":"10.0.0.0/8"}}]', "ipBlock"),
        ('--set-json=networkPolicy.egress=[{"ports":[{"from":443}]}]', "egress"),
        ('--set-json=metrics.from=[{"namespaceSelector":{"name":"monitoring"}}]', "namespaceSelector"),
        ("--set=metrics=null", "metrics"),
        ("--set-string=metrics.labels.grafana_dashboard=2", "grafana_dashboard"),
        ("--set=metrics.labels.app\\.kubernetes\\.io/name=x", "app.kubernetes.io/name"),
        ('--set-json=operator.env=[{"name":"A"}]', "env"),
        ('--set-json=operator.env=[{"name":"A","value":"x","valueFrom":{"fieldRef":{}}}]', "env"),
        ("--set=operator.serviceAccount.name=Bad_Name", "name"),
    ],
)
def test_values_are_checked(helm, setting, complaint):
    with pytest.raises(Refused, match=f"(?s)don't meet the specifications.*{complaint}"):
        helm.render(setting)


def test_names_of_digits_stay_texts(helm):
    def rendered(release, namespace, served, account):
        options = (f"--namespace={namespace}", f'--set-json=namespaces=["{served}"]', "--set=crds.install=false")
        account = f"--set-string=operator.serviceAccount.name={account}"
        return list(yaml.safe_load_all(helm.run("template", release, CHART, *IMAGES, *options, account)))

    digits = {"a-release": "123", "a-namespace": "0123", "a-served": "1234", "an-account": "0x1f"}
    expected = json.dumps(rendered(*digits))
    for word, number in digits.items():
        expected = expected.replace(word, number)
    assert rendered(*digits.values()) == json.loads(expected)


def test_a_version_with_a_commit_gives_labels_and_images_that_are_valid(helm, tmp_path):
    added = ("--version=0.1.0+abcdef123456", "--app-version=0.1.0+abcdef123456")
    helm.run("package", CHART, *added, f"--destination={tmp_path}")
    (package,) = tmp_path.iterdir()
    manifests = list(yaml.safe_load_all(helm.run("template", "release", package)))
    labels = [value for each in manifests for value in each["metadata"].get("labels", {}).values()]
    assert "workergroups-0.1.0_abcdef123456" in labels
    assert [value for value in labels if not re.fullmatch(r"[A-Za-z0-9]([-\w.]{0,61}[A-Za-z0-9])?", value)] == []
    for pod in _pods(manifests):
        assert pod["containers"][0]["image"] == "ghcr.io/workergroups/workergroups-operator:0.1.0_abcdef123456"


@pytest.mark.parametrize("is_enabled", [True, False])
def test_a_parent_chart_switches_it_on_and_off_by_a_condition(helm, tmp_path, is_enabled):
    shutil.copytree(CHART, tmp_path / "charts" / "workergroups")
    dependency = {"name": "workergroups", "version": version.current(), "condition": "workergroups.enabled"}
    about = {"apiVersion": "v2", "name": "parent", "version": "1.0.0", "dependencies": [dependency]}
    (tmp_path / "Chart.yaml").write_text(json.dumps(about))
    rendered = helm.run("template", "release", tmp_path, f"--set=workergroups.enabled={json.dumps(is_enabled)}")
    assert ("kind: Deployment" in rendered) is is_enabled


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("--set-json=namespaces=[]", "serves all namespaces."),
        ("--set=namespaces={a,b}", "serves these namespaces only: a, b."),
    ],
)
def test_the_notes_say_which_namespaces_are_served(helm, tmp_path, setting, words):
    assert words in _notes(helm, tmp_path / "chart", setting)


def _notes(helm, chart: Path, setting: str) -> str:
    """What Helm prints after an installation; `helm template` leaves it out, and all else needs a cluster."""
    shutil.copytree(CHART, chart)
    (chart / "templates" / "NOTES.txt").rename(chart / "notes")
    (chart / "templates" / "notes.yaml").write_text('notes: {{ tpl (.Files.Get "notes") . | toJson }}')
    return yaml.safe_load(helm.run("template", "release", chart, "--show-only=templates/notes.yaml", setting))["notes"]


def _name(manifest: dict) -> tuple[str, str]:
    return manifest["kind"], manifest["metadata"]["name"]


def _environment(manifests: list[dict]) -> list[dict]:
    """The variables of the operator's container."""
    (container,) = _pods(manifests)[0]["containers"]
    return container["env"]


def _pods(manifests: list[dict]) -> list[dict]:
    """The operator's pod, and that of the test."""
    (deployment,), (test,) = _of_kind(manifests, "Deployment"), _of_kind(manifests, "Pod")
    return [deployment["spec"]["template"]["spec"], test["spec"]]


def _pod_spec(find) -> dict:
    return find("Deployment", NAME)["spec"]["template"]["spec"]


def _of_kind(manifests: list[dict], kind: str) -> list[dict]:
    return [each for each in manifests if each["kind"] == kind]
