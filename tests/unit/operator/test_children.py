"""What the operator creates and what it watches, compared with the one table of its children."""

import kopf

from tests.unit.operator.make import child, group, observed, pool, wanted
from workergroups_api.children import CHILD_KINDS, child_names
from workergroups_api.manifest import POD, RESOURCE_POOL, SERVICE_ACCOUNT, WORKER_GROUP, identity, kind_of
from workergroups_operator import handlers  # noqa: F401 (registers the handlers with kopf)


def test_the_operator_creates_what_is_in_the_table():
    # The agent's Deployment follows its ServiceAccount.
    children = child(SERVICE_ACCOUNT.kind, "actors-agent") | child("Secret", "actors-group-env")
    manifests = wanted(observed(pools=(pool(),), groups=(group(),), children=children))
    assert {kind_of(manifest) for manifest in manifests} == set(CHILD_KINDS)
    assert {identity(manifest) for manifest in manifests} == {(kind.kind, name) for kind, name in child_names("actors")}


def test_the_operator_watches_its_children_and_their_pods():
    registered = kopf.get_default_registry()._watching.get_all_selectors()
    watched = {(selector.group, selector.version, selector.any_name) for selector in registered}
    expected = {RESOURCE_POOL, WORKER_GROUP, POD, *CHILD_KINDS}
    assert watched == {(kind.group, kind.version, kind.plural) for kind in expected}
