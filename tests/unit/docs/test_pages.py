"""The reference names every field and every reason; links lead somewhere."""

import re
from pathlib import Path

import pytest

from workergroups_api.crd import definitions
from workergroups_api.vocabulary import LaunchState, Reason

REPOSITORY = Path(__file__).parents[3]
API = (REPOSITORY / "docs" / "api.md").read_text()
TROUBLESHOOTING = (REPOSITORY / "docs" / "troubleshooting.md").read_text()
PAGES = [
    path
    for folder in (".", "docs", "examples/*", "changelog.d", "local_cluster")
    for path in REPOSITORY.glob(f"{folder}/*.md")
]
REASON = re.compile(r"\b[A-Z][a-z]+(?:[A-Z][a-zA-Z]+)+\b")
# A condition that is true has its own name, or another one, for a reason.
CONDITIONS = {
    "ClusterReady",
    "NodesReady",
    "BundlesReserved",
    "PoolsReady",
    "RanksCreated",
    "RanksReady",
    "UpToDate",
}
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
    fine = {"AgentConnected", "NodesJoined", *CONDITIONS}
    advised = _reasons(_tables(TROUBLESHOOTING, "reason"))
    reasons = _reasons(_tables(API, "condition"))
    assert len(reasons) > 35
    assert sorted(reasons - fine - advised) == []
    # Of a pod's trouble, only the advice has a row each.
    assert sorted(advised - reasons) == [
        "CrashLoopBackOff",
        "ImagePullFailed",
        "ImageUnfit",
        "InsufficientResources",
        "NoMatchingNode",
    ]


def test_each_reason_of_the_vocabulary_is_in_the_reference():
    assert sorted(word for word in {*Reason, *LaunchState} if not re.search(rf"\b{word}\b", API)) == []


def test_each_reason_of_the_reference_is_said_by_something():
    sources = "\n".join(
        file.read_text()
        for folder in ("operator", "worker_image", "crds/workergroups_api")
        for file in (REPOSITORY / folder).rglob("*.py")
    )
    reasons = _reasons(_tables(API, "condition")) - CONDITIONS
    assert sorted(reason for reason in reasons if f'"{reason}"' not in sources) == []


def _reasons(text: str) -> set[str]:
    return set(REASON.findall(text))


def _tables(page: str, first_column: str) -> str:
    """Tables whose first column is called so; of advice only that column, since the rest is prose."""
    tables = "\n".join(re.findall(rf"\| {first_column}\b[^|]* \|.*?\n\n", page + "\n", re.DOTALL))
    is_advice = first_column == "reason"
    return "\n".join(line.split("|")[1] for line in tables.splitlines() if "|" in line) if is_advice else tables


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_links_lead_somewhere(page):
    links = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []
