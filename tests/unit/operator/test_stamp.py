"""Marks of a pool's fields: they name the pods that the field shapes, so that no change is missed."""

import pytest

from tests.unit.operator.make import KEY, SETTINGS, observed, pool
from workergroups_api.names import MADE_FROM_ANNOTATION, TEMPLATE_ANNOTATION
from workergroups_api.resource_pool import SPEC_RULES, ResourcePoolSpec, Shapes, shapes
from workergroups_operator.policy.images import images_of
from workergroups_operator.templates.pods import head_template, worker_template

# For each field of a pool, a value that is not the default.
OTHER = {
    "nodes": 3,
    "processesPerNode": 4,
    "clusterName": "shared",
    "accelerator": {"vendor": "amd"},
    "topology": {"mode": "Spread"},
    "maxColocateCount": 2,
    "spareCpus": 1,
    "ray": {"labels": {"zone": "a"}},
    "reservation": "None",
    "image": "example.test/mine:1",
    "imagePullSecrets": [{"name": "registry"}],
    "env": [{"name": "A", "value": "1"}],
    "envFrom": [{"secretRef": {"name": "keys"}}],
    "volumes": [{"name": "data", "mountPath": "/data", "emptyDir": {}}],
    "setup": {"script": "true"},
    "resources": {"requests": {"cpu": "2"}},
    "sharedMemory": "1Gi",
    "nodeSelector": {"zone": "a"},
    "tolerations": [{"key": "team", "operator": "Exists"}],
    "priorityClassName": "high",
    "agent": {"priorityClassName": "high"},
    "head": {"resources": {"requests": {"cpu": "2"}}},
    # Its pull secrets are the head's, too.
    "podTemplate": {"spec": {"imagePullSecrets": [{"name": "registry"}]}},
    "suspend": True,
    "idle": {"afterSeconds": 600},
    "updateStrategy": {"type": "RollingUpdate"},
    "progressDeadlineSeconds": 60,
    "onDeadline": "Release",
    "preflight": "Basic",
    "tls": True,
}
NOTES = (TEMPLATE_ANNOTATION, MADE_FROM_ANNOTATION)
IMMUTABLE = {rule["fieldPath"][1:] for rule in SPEC_RULES["x-kubernetes-validations"] if "immutable" in rule["message"]}
MARKS = {str(field.alias): shapes(field) for field in ResourcePoolSpec.model_fields.values()}


def test_each_field_is_tried():
    assert set(OTHER) == set(MARKS)


@pytest.mark.parametrize("field", sorted(set(OTHER) - IMMUTABLE))
def test_a_field_is_marked_with_the_pods_that_it_shapes(field):
    changed = [of(pool()) != of(pool(**{field: OTHER[field]})) for of in (head, nodes)]
    marks = {Shapes.HEAD: [True, False], Shapes.NODES: [False, True], Shapes.PODS: [True, True], None: [False, False]}
    assert marks[MARKS[field]] == changed


def test_what_can_never_change_has_no_mark():
    assert {MARKS[field] for field in IMMUTABLE} == {None}


def head(spec):
    return without_notes(head_template(KEY, images(spec), spec))


def nodes(spec):
    return without_notes(worker_template(KEY, spec, images(spec)))


def images(spec):
    return images_of(observed(pools=(spec,)), SETTINGS)


def without_notes(template):
    metadata = template["metadata"]
    notes = {key: value for key, value in metadata["annotations"].items() if key not in NOTES}
    return template["spec"], metadata["labels"], notes
