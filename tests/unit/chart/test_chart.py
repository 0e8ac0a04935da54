"""What the chart installs."""

import ast

import pytest
import yaml

from tests.unit.chart.helm import CHART, IMAGES, Refused
from workergroups_operator.settings import Settings

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


def test_crds_go_with_the_release_if_asked_to(helm):
    crds = _of_kind(helm.render("--set=crds.keep=false"), "CustomResourceDefinition")
    assert len(crds) == len(CRD_FILES)
    assert all("annotations" not in crd["metadata"] for crd in crds)


def test_crds_can_be_left_to_somebody_else(helm):
    assert not _of_kind(helm.render("--set=crds.install=false"), "CustomResourceDefinition")


def test_never_two_operators_at_a_time(find):
    spec = find("Deployment", NAME)["spec"]
    assert (spec["replicas"], spec["strategy"]) == (1, {"type": "Recreate"})


def test_the_operator_finds_its_settings(find, monkeypatch):
    (container,) = _pod_spec(find)["containers"]
    for variable in container["env"]:
        monkeypatch.setenv(variable["name"], variable["value"])
    assert Settings.from_environment() == Settings(worker_image="example/worker:1", operator_image="example/operator:1")


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
    (port,) = container["ports"]
    assert port["containerPort"] == 8080
    assert container["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": port["name"]}


def test_pod_settings_reach_the_operator_and_the_test(helm):
    manifests = helm.render(
        '--set-json=operator.nodeSelector={"pool":"system"}',
        '--set-json=operator.tolerations=[{"key":"system","operator":"Exists"}]',
        '--set-json=operator.imagePullSecrets=[{"name":"registry"}]',
    )
    (deployment,) = _of_kind(manifests, "Deployment")
    (test,) = _of_kind(manifests, "Pod")
    for pod in (deployment["spec"]["template"]["spec"], test["spec"]):
        assert pod["nodeSelector"] == {"pool": "system"}
        assert pod["tolerations"] == [{"key": "system", "operator": "Exists"}]
        assert pod["imagePullSecrets"] == [{"name": "registry"}]


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


@pytest.mark.parametrize("image", ["operator.image", "worker.image"])
def test_a_missing_image_is_named(helm, image):
    with pytest.raises(Refused, match=f"{image} is empty: .*Dockerfile"):
        helm.render(f"--set={image}=")


@pytest.mark.parametrize(
    ("setting", "complaint"),
    [
        ("--set=operator.replicas=2", "replicas"),
        ("--set=workers.image=x", "workers"),
        ("--set=crds.keep=maybe", "keep"),
        ("--set=operator.imagePullPolicy=Sometimes", "imagePullPolicy"),
        ("--set=worker.image=a b", "image"),
        ("--set=operator.resources.limits.memory=lots", "memory"),
        ("--set=operator.resources.claims=x", "claims"),
        ('--set-json=operator.tolerations=[{"effect":"Never"}]', "effect"),
    ],
)
def test_values_are_checked(helm, setting, complaint):
    with pytest.raises(Refused, match=f"(?s)don't meet the specifications.*{complaint}"):
        helm.render(setting)


def _pod_spec(find) -> dict:
    return find("Deployment", NAME)["spec"]["template"]["spec"]


def _of_kind(manifests: list[dict], kind: str) -> list[dict]:
    return [each for each in manifests if each["kind"] == kind]
