"""Values of variables refer to others as Kubernetes has it for containers."""

import pytest

from workergroups_common.container_env import expanded, linked

VARIABLES = {"VAR_A": "A", "VAR_B": "B", "VAR_C": "C", "VAR_REF": "$(VAR_A)", "VAR_EMPTY": ""}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("$(VAR_A)", "A"),
        ("___$(VAR_B)___", "___B___"),
        ("___$(VAR_C)", "___C"),
        ("$(VAR_A)-$(VAR_A)", "A-A"),
        ("$(VAR_A)-1", "A-1"),
        ("$(VAR_REF)", "$(VAR_A)"),
        ("foo-$(VAR_EMPTY)-bar", "foo--bar"),
        ("$$(VAR_A)_$(VAR_B)", "$(VAR_A)_B"),
        ("foo $$(VAR_A) bar $(VAR_B)", "foo $(VAR_A) bar B"),
        ("$(VAR_A)$(VAR_B)", "AB"),
        ("$$$$$$(VAR_A)", "$$$(VAR_A)"),
        ("$$$$$(VAR_A)", "$$A"),
        ("$VAR_A", "$VAR_A"),
        ("$(VAR_A", "$(VAR_A"),
        ("$(MISSING)", "$(MISSING)"),
        ("${VAR_A}", "${VAR_A}"),
        ("\\$(VAR_A)", "\\A"),
        ("foo$$", "foo$"),
        ("$", "$"),
        ("$$$", "$$"),
        ("", ""),
    ],
)
def test_a_value_is_expanded_as_in_a_container(value, expected):
    assert expanded(value, VARIABLES) == expected


def test_a_value_refers_to_those_before_it_and_to_the_others_elsewhere():
    given = {"A": "1$$", "B": "$(A)$(C)", "C": "3", "D": "$(B)"}
    there = {"C": "of the pod"}
    assert {name: expanded(value, there) for name, value in linked(given).items()} == {
        "A": "1$",
        "B": "1$of the pod",
        "C": "3",
        "D": "1$of the pod",
    }
