"""What the generators of pages make of schemas, values and recordings."""

from pathlib import Path

import pytest

from docs.generators import api_pages, chart_page, command_page, python_pages
from docs.generators.markdown import plain, table
from tests.unit.docs.test_samples import COMMAND_LINE
from workergroups import client


@pytest.fixture(scope="module")
def pool() -> str:
    return api_pages.pages()["resourcepool.md"]


def test_a_field_has_its_type_default_limits_and_description(pool):
    row = next(line for line in pool.splitlines() if line.startswith("| `nodes`"))
    assert row.startswith("| `nodes`<br>integer | Number of pods;")
    assert row.endswith("<br>Default `1`; at least `1`; at most `512`. |")


def test_a_required_field_says_so(pool):
    (row,) = [line for line in pool.splitlines() if line.startswith("| `processesPerNode`")]
    assert "<br>Required;" in row


def test_words_that_look_like_tags_stay_words():
    assert plain("a <b> and `<c>`") == "a &lt;b&gt; and `<c>`"


def test_a_bar_does_not_end_a_cell():
    assert table(("x",), [("a|b",)]).splitlines()[-1] == r"| a\|b |"


def test_each_verb_has_its_section():
    page = command_page.page()
    assert [verb for verb in COMMAND_LINE.commands if f"\n### `workergroups {verb}`\n" not in page] == []


def test_what_the_client_exports_is_on_its_page():
    page = python_pages.pages()["python/workergroups.client.md"]
    assert [name for name in client.__all__ if f"`{name}`" not in page] == []


def test_a_value_and_a_rule_of_the_chart_have_the_comments_above_them(tmp_path: Path):
    (tmp_path / "Chart.yaml").write_text("name: x\ndescription: A chart\n")
    (tmp_path / "values.yaml").write_text("a:\n  # One.\n  # Two.\n  b: 3\n  c: {}\n")
    (tmp_path / "values.schema.json").write_text('{"properties": {"a": {"properties": {"b": {"type": "integer"}}}}}')
    (tmp_path / "templates").mkdir()
    rule = "- apiGroups: [{}]\n  resources: [{}]\n  verbs: [get]\n"
    rules = "# For\n# this.\n" + rule.format('""', "pods, nodes") + rule.format("apps", "deployments")
    (tmp_path / "templates" / "rbac.yaml").write_text(rules)
    rows = [line for line in chart_page.page(tmp_path).splitlines() if line.startswith("|")]
    assert rows[2:4] == ["| `a.b` | integer | `3` | One. Two. |", "| `a.c` | any | `{}` |  |"]
    assert rows[-2:] == [
        "| core | `pods, nodes` | `get` | For this. |",
        "| apps | `deployments` | `get` | as above |",
    ]
