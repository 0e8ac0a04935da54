"""Every reason has its condition and its advice, and no other word is called a reason; links lead somewhere."""

import re

import pytest

from tests.unit.docs.pages import PAGES, REPOSITORY, section, tables
from workergroups_api.vocabulary import GROUP_CONDITIONS, POOL_CONDITIONS, EventReason, LaunchState, RankEnd, Reason

CONDITIONS = (REPOSITORY / "docs" / "conditions.md").read_text()
CONTRIBUTING = (REPOSITORY / "CONTRIBUTING.md").read_text()
TROUBLESHOOTING = (REPOSITORY / "docs" / "troubleshooting.md").read_text()
REASONS = {word.value for words in (Reason, LaunchState, RankEnd) for word in words}
# Reasons with which a condition is true, or that wait for nobody.
FINE = {
    Reason.ADMITTED,
    Reason.AGENT_CONNECTED,
    Reason.BECAME_READY,
    Reason.NODES_JOINED,
    Reason.NOT_QUEUED,
    Reason.POOLS_READY,
    Reason.PREFLIGHT_PASSED,
    Reason.NO_FAILURE,
    Reason.RANKS_CREATED,
    Reason.RANKS_READY,
    Reason.RESERVED,
    Reason.RESUMED,
    Reason.UP_TO_DATE,
    Reason.WAITING_FOR_READY,
    LaunchState.LAUNCHED,
}
# What `workergroups logs --previous` says of ranks whose cluster is gone: no condition has it.
OF_LOGS = {RankEnd.HEAD_LOST}
# States of a launch that no condition shows: its ranks are created.
OF_STATUS = {LaunchState.LAUNCHED}
# A pod's trouble, of which the reference's table speaks under that name, and an example of Kubernetes' own.
OF_PODS = {
    Reason.INSUFFICIENT_RESOURCES,
    Reason.NO_MATCHING_NODE,
    Reason.IMAGE_PULL_FAILED,
    Reason.IMAGE_UNFIT,
    Reason.SETUP_FAILED,
}
KUBERNETES = {"CrashLoopBackOff"}
NO_REASONS = {"Kubernetes", "Ready", "True", "Unknown"}


def test_each_reason_has_its_advice():
    advised = {reason for cell in _advised() for reason in _words(cell)}
    assert sorted(REASONS - FINE - OF_LOGS - advised) == []
    assert sorted(advised - REASONS) == sorted(KUBERNETES)


def test_each_reason_is_in_the_row_of_a_condition():
    (rows,) = [rows for header, rows in tables(CONDITIONS) if header[0] == "condition"]
    named = {reason for row in rows for cell in row[1:] for reason in _words(cell)}
    trouble = section(CONDITIONS, "## Conditions and reasons").split("A pod's trouble is ")[1].split(".")[0]
    assert sorted(REASONS - OF_LOGS - OF_STATUS - named - OF_PODS) == []
    assert sorted(_words(trouble)) == sorted(OF_PODS | KUBERNETES)
    assert sorted(named - REASONS) == []


def test_each_condition_has_its_row():
    (rows,) = [rows for header, rows in tables(CONDITIONS) if header[0] == "condition"]
    named = [f"{row[0].split(':')[0]}: {type_}" for row in rows for type_ in row[0].split(": ")[1].split(", ")]
    conditions = [f"pool: {type_}" for type_ in POOL_CONDITIONS] + [f"group: {type_}" for type_ in GROUP_CONDITIONS]
    assert named == conditions


def test_what_the_pages_call_a_reason_is_one():
    known = REASONS | KUBERNETES | {word.value for word in EventReason}
    for page in PAGES:
        text = page.read_text()
        said = re.findall(r"\b(?:the reason|says|reports|show|shows|is) `?([A-Z][a-z]+[A-Z]\w+)`?", text)
        said += re.findall(r"\(`?([A-Z][a-z]+[A-Z][a-zA-Z]+)`?(?:, (?:Unknown|False))?\)", text)
        assert [word for word in said if word not in known] == [], page.name


def test_the_index_of_reasons_leads_to_each_row_of_its_reason():
    index = TROUBLESHOOTING.split("\n## ")[0]
    listed = dict(
        re.findall(r"(?m)(?:^|[ \[])([A-Z]\w+)(?:\]|(?= \[1\]))((?:\(#[\w-]+\)|[ \n]\[\d\]\(#[\w-]+\))+)", index)
    )
    rows: dict[str, list[str]] = {}
    for cell in _advised():
        for anchor, reason in re.findall(r'<a id="([\w-]+)"></a>(\w+)', cell):
            rows.setdefault(reason, []).append(anchor)
    assert {reason: re.findall(r"#([\w-]+)", links) for reason, links in listed.items()} == rows
    assert list(listed) == sorted(listed, key=str.lower)


def _advised() -> list[str]:
    return [row[0] for header, rows in tables(TROUBLESHOOTING) if header[0].startswith("reason") for row in rows]


def _words(cell: str) -> set[str]:
    """The reasons that a cell names, without what is in parentheses, in quotes or in code."""
    bare = re.sub(r'\([^)]*\)|"[^"]*"|`[^`]*`', "", cell)
    return {word for word in re.findall(r"\b[A-Z][A-Za-z]+\b", bare) if word not in NO_REASONS}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_links_lead_somewhere(page):
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#]*)(?:#([^)]+))?\)", page.read_text()):
        linked = page.parent / target if target else page
        assert linked.exists(), target
        if anchor and linked.suffix == ".md":
            assert anchor in _anchors(linked.read_text()), f"{target}#{anchor}"


def _anchors(text: str) -> set[str]:
    """As GitHub makes them from headings, and those that a page sets, such as for the rows of a table."""
    shown = re.sub(r"(?ms)^```.*?^```$", "", text)
    headings = re.findall(r"(?m)^#+ (.+)$", shown)
    made = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
    return made | set(re.findall(r'<a id="([\w-]+)"></a>', shown))


def test_the_ways_through_the_code_name_files_that_exist():
    found = {str(each.relative_to(REPOSITORY)) for each in REPOSITORY.glob("[a-z]*/workergroups*/**/*.py")}
    named = re.findall(r"`([\w/]+\.py)`", section(CONTRIBUTING, "## Ways through the code"))
    assert len(named) > 60
    assert [name for name in named if not any(f"/{path}".endswith(f"/{name}") for path in found)] == []


def test_the_files_that_a_change_touches_mention_its_example():
    ((_, rows),) = tables(section(CONTRIBUTING, "## What a change touches"))
    assert len(rows) > 5
    for kind, example, where in rows:
        names = "|".join(re.findall(r"`(\w+)`", example))
        paths = re.findall(r"`([\w/-]+\.\w+)`", where)
        assert names, kind
        assert len(paths) > 1, kind
        assert [path for path in paths if not re.search(rf"\b({names})\b", (REPOSITORY / path).read_text())] == [], kind
