"""For how long a status counts as wrong, and the table; `make truth` runs the faults."""

import pytest

from tests.truth.faults import Fault, NoFault
from tests.truth.judge import Verdict, relapses, seconds_not_true, untruth
from tests.truth.table import holds, markdown, publish
from tests.truth.watch import Seen


def seen(at, status, life="session/1"):
    return Seen(at=at, wall=0.0, status=status, reason="", message="", life=life)


def test_a_status_is_wrong_until_the_last_object_reports_the_fault():
    pool = [seen(10.0, "True"), seen(10.5, "False")]
    group = [seen(10.6, "True"), seen(12.0, "Unknown"), seen(13.0, "False")]
    assert untruth([pool, group], struck=10.2) == pytest.approx(1.8)


def test_a_status_that_changes_before_the_deletion_returns_was_never_wrong():
    assert untruth([[seen(10.0, "False")]], struck=10.2) == 0.0


def test_an_object_that_never_reports_the_fault_has_no_seconds():
    assert untruth([[seen(10.5, "False")], [seen(10.5, "True")]], struck=10.0) is None


def test_true_again_is_a_relapse_only_in_the_life_that_ended():
    history = [
        seen(1.0, "True"),
        seen(2.0, "False"),
        seen(3.0, "True"),
        seen(4.0, "False"),
        seen(5.0, "True", "session/2"),
    ]
    assert relapses(history, "session/1") == [history[2]]
    assert relapses(history[:1], "session/1") == []


def test_seconds_not_true_are_summed_up():
    history = [seen(1.0, "True"), seen(2.0, "Unknown"), seen(3.5, "True"), seen(9.0, "Unknown")]
    assert seconds_not_true(history, until=10.0) == 2.5
    assert seconds_not_true([], until=10.0) == 0.0


def nothing(*_arguments):
    raise AssertionError


FAULT = Fault("rank", "rank killed", 1, nothing)
NO_FAULT = NoFault("deadline", "deadlines edited", nothing, 5)


@pytest.mark.parametrize(
    ("verdicts", "does"),
    [
        ([Verdict(0.4), Verdict(1.0)], True),
        ([Verdict(0.4), Verdict(1.1)], False),
        ([Verdict(None)], False),
        ([Verdict(0.4, ("Ready True again",))], False),
    ],
)
def test_a_bound_holds_in_all_rounds_or_not_at_all(verdicts, does):
    assert holds(FAULT, verdicts) is does


def test_one_line_for_each_fault():
    verdicts = {"rank": [Verdict(0.2), Verdict(0.9), Verdict(None, ("it lies",))], "deadline": [Verdict(0.0)]}
    lines = markdown([FAULT, NO_FAULT], verdicts).splitlines()
    assert lines[2] == "| rank killed | 1 s | 0.2 s | 0.6 s | never | **no**; it lies |"
    assert lines[6] == "| deadlines edited | no | 0.0 s | 0.0 s | 0.0 s | yes |"


def test_a_fault_that_was_not_tried_is_marked():
    assert "not tried" in markdown([FAULT], {})


def test_a_table_replaces_the_previous_one_of_a_machine_as_busy(tmp_path):
    page = tmp_path / "truth.md"
    page.write_text(
        "a\n<!-- quiet: begin -->\nold\n<!-- quiet: end -->\nb\n<!-- busy: begin -->\n<!-- busy: end -->\nc\n"
    )
    for _ in range(2):
        publish(page, busy=None, table="QUIET", rounds=1)
        publish(page, busy="`make simulate`", table="BUSY", rounds=5)
    text = page.read_text()
    assert [text.count(word) for word in ("old", "QUIET", "BUSY", "5 rounds")] == [0, 1, 1, 1]
    assert text.index("QUIET") < text.index("\nb\n") < text.index("BUSY") < text.index("\nc\n")


def test_a_page_without_the_lines_is_rejected(tmp_path):
    page = tmp_path / "truth.md"
    page.write_text("nothing\n")
    with pytest.raises(ValueError, match="quiet: begin"):
        publish(page, busy=None, table="", rounds=1)
