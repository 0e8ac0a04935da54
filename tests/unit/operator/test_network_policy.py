"""Who may connect to Ray's pods, and where these may connect to."""

import pytest

from tests.unit.operator.make import KEY, SETTINGS, built, observed, pool
from workergroups_api.names import CLUSTER_LABEL
from workergroups_operator.desired import agent
from workergroups_operator.desired.network_policy import network_policy
from workergroups_operator.settings import NetworkSettings

KUBERAY = {"namespaceSelector": {}, "podSelector": {"matchLabels": {"app.kubernetes.io/name": "kuberay-operator"}}}
OWN = {"podSelector": {"matchLabels": {CLUSTER_LABEL: "actors"}}}
STORAGE = {"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}


def rules(**settings):
    return network_policy("actors", NetworkSettings(**settings))["spec"]


def is_selected(spec, labels):
    """Whether a policy is for pods with these labels, as far as its selectors use what these tests need."""
    selector = spec["podSelector"]
    return selector["matchLabels"].items() <= labels.items() and all(
        each["operator"] == "In" and labels.get(each["key"]) in each["values"] for each in selector["matchExpressions"]
    )


def labels_of_pods():
    """Return the labels of the head, of a node and of the agent."""
    seen = observed(pools=(pool(),))
    templates = built(seen)
    deployment = agent.deployment(KEY, templates.images, pool(), "t", "u")
    of_rays = [templates.head, *templates.workers.values()]
    return [pod["metadata"]["labels"] for pod in (*of_rays, deployment["spec"]["template"])]


def test_it_is_for_rays_pods_and_lets_in_those_of_the_cluster_only():
    assert [is_selected(rules(), labels) for labels in labels_of_pods()] == [True, True, False]
    assert rules()["ingress"] == [{"from": [OWN]}]
    # The agent must reach the GCS.
    assert all(OWN["podSelector"]["matchLabels"].items() <= labels.items() for labels in labels_of_pods())


def test_whom_the_administrator_allows_reaches_the_dashboard_only():
    assert rules(dashboard_from=[KUBERAY])["ingress"][1:] == [
        {"from": [KUBERAY], "ports": [{"port": 8265, "protocol": "TCP"}]}
    ]


@pytest.mark.parametrize("settings", [{}, {"dashboard_from": [KUBERAY]}, {"is_on": False}])
def test_what_it_does_not_restrict_it_does_not_allow_either(settings):
    spec = rules(**settings)
    assert (spec["policyTypes"], "egress" in spec, {} in spec["ingress"]) == (["Ingress"], False, False)


@pytest.mark.parametrize("allowed", [[], [STORAGE]])
def test_what_ray_may_connect_to_can_be_a_list(allowed):
    spec = rules(egress=allowed)
    dns = {"ports": [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}]}
    assert (spec["policyTypes"], spec["egress"]) == (["Ingress", "Egress"], [{"to": [OWN]}, dns, *allowed])


def test_switched_off_it_is_for_no_pod():
    assert not any(is_selected(rules(is_on=False), labels) for labels in labels_of_pods())


def test_the_charts_value_is_read():
    assert NetworkSettings.from_json("{}") == SETTINGS.network
    said = '{"enabled": false, "dashboardFrom": null, "egress": []}'
    assert NetworkSettings.from_json(said) == NetworkSettings(is_on=False, egress=[])
