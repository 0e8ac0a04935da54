"""Questions after the fields that the API server does not know."""

import pytest

from workergroups_client.api_server.unknown_fields import with_suggestions

NOT = "field not declared in schema"


@pytest.mark.parametrize(
    ("kind", "refusal", "said"),
    [
        ("ResourcePool", f".spec.node: {NOT}", f".spec.node: {NOT} (did you mean nodes?)"),
        (
            "ResourcePool",
            f".spec.accelerator.prodct: {NOT}",
            f".spec.accelerator.prodct: {NOT} (did you mean product?)",
        ),
        ("ResourcePool", f".spec.xyz: {NOT}", f".spec.xyz: {NOT}"),
        ("ResourcePool", f".spec.node.a: {NOT}", f".spec.node.a: {NOT}"),
        ("ResourcePool", f".spc: {NOT}", f".spc: {NOT} (did you mean spec?)"),
        (
            "WorkerGroup",
            f".spec.pools[0].nme: {NOT} .spec.worker.clas: {NOT}",
            f".spec.pools[0].nme: {NOT} (did you mean name?) .spec.worker.clas: {NOT} (did you mean class?)",
        ),
        ("WorkerGroup", f'.spec.env[name="A"].valeu: {NOT}', f'.spec.env[name="A"].valeu: {NOT} (did you mean value?)'),
        ("Secret", f".dat: {NOT}", f".dat: {NOT}"),
        ("ResourcePool", ".spec.nodes: expected numeric", ".spec.nodes: expected numeric"),
    ],
)
def test_a_field_that_is_like_one_of_the_kind_is_asked_for(kind, refusal, said):
    assert with_suggestions(kind, refusal) == said
