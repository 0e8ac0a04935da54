"""The reference names every field and every reason; links lead somewhere."""

import re
from pathlib import Path

import pytest

from workergroups_api.crd import definitions

REPOSITORY = Path(__file__).parents[3]
API = (REPOSITORY / "docs" / "api.md").read_text()
TROUBLESHOOTING = (REPOSITORY / "docs" / "troubleshooting.md").read_text()
PAGES = [
    path
    for folder in (".", "docs", "examples/*", "changelog.d", "local_cluster")
    for path in REPOSITORY.glob(f"{folder}/*.md")
]
# Part of Kubernetes' own types.
KNOWN = {"type", "status", "reason", "lastTransitionTime", "key", "operator", "effect", "value", "tolerationSeconds"}


def _fields(schema: dict) -> set[str]:
    names = set()
    for name, field in schema.get("properties", {}).items():
        names |= {name} | _fields(field) | _fields(field.get("items", {}))
    return names


@pytest.mark.parametrize("file", definitions())
def test_the_reference_names_every_field(file):
    (version,) = definitions()[file]["spec"]["versions"]
    properties = version["schema"]["openAPIV3Schema"]["properties"]
    fields = _fields(properties["spec"]) | _fields(properties["status"])
    assert [field for field in sorted(fields - KNOWN) if not re.search(rf"\b{field}\b", API)] == []


def test_each_reason_has_its_advice():
    reasons = set(re.findall(r"\b[A-Z][a-z]+(?:[A-Z][a-zA-Z]+)+\b", _tables_of_conditions(API)))
    conditions = {"ClusterReady", "NodesReady", "BundlesReserved", "PoolsReady", "RanksCreated", "RanksReady"}
    fine = {"AgentConnected", "NodesJoined"}
    assert len(reasons) > 20
    assert [reason for reason in sorted(reasons - conditions - fine) if reason not in TROUBLESHOOTING] == []


def _tables_of_conditions(page: str) -> str:
    return "\n".join(re.findall(r"\| condition \|.*?\n\n", page, re.DOTALL))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_links_lead_somewhere(page):
    links = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []
