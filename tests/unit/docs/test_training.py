"""docs/training.md answers each line of verl's guide once, in order."""

import re
from pathlib import Path

ROWS = re.findall(
    r"(?m)^\| (\d+) \| (.+?) (?<!\\)\| (.+) \|$", (Path(__file__).parents[3] / "docs" / "training.md").read_text()
)


def test_each_line_of_the_guide_has_its_row():
    assert [int(number) for number, _, _ in ROWS] == list(range(1, 87))


def test_what_is_not_offered_says_why():
    refusals = [answer for _, _, answer in ROWS if "not offered" in answer]
    assert refusals
    assert [answer for answer in refusals if not re.search(r"not offered[^.]*(:|,|since|because|yet)", answer)] == []
