"""Each claim of the threat model names tests that exist."""

import re

import pytest

from tests.unit.docs.pages import REPOSITORY, functions_in, section, tables

PAGE = (REPOSITORY / "docs/threat-model.md").read_text()
FALSIFIED, PREVENTED = "## What a tenant can falsify", "## What only the administrator can do"
TEST = re.compile(r"`([\w/]+\.py)::(\w+)`")


def claims():
    """The rows and items that say what is possible or impossible, and the paragraphs between them."""
    for heading in (FALSIFIED, PREVENTED):
        for part in re.split(r"\n(?=- )|\n\n", section(PAGE, heading).strip()):
            # A line that only begins a list.
            if part.startswith("- ") or not part.endswith((":", "can also")):
                yield part
    (rows,) = [rows for header, rows in tables(PAGE) if header[-1] == "tests"]
    yield from (" | ".join(row) for row in rows if row[0] != "cluster administrator")


def test_there_are_claims():
    assert len(list(claims())) > 15


@pytest.mark.parametrize("claim", list(claims()), ids=lambda claim: claim[:50])
def test_each_claim_names_a_test(claim):
    assert TEST.search(claim) is not None


@pytest.mark.parametrize(("file", "name"), sorted(set(TEST.findall(PAGE))))
def test_each_test_that_is_named_exists(file, name):
    assert name in functions_in(file)
