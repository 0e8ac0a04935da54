"""The class that a group names, and what is said if its module has none of that name."""

import pytest

from workergroups_agent.executor.launcher import load_class


@pytest.fixture(autouse=True)
def module(tmp_path, monkeypatch):
    (tmp_path / "running_mean.py").write_text("class RunningMean:\n    pass\n")
    monkeypatch.syspath_prepend(tmp_path)


def test_a_class_is_loaded():
    assert load_class("running_mean.RunningMean").__name__ == "RunningMean"


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("running_mean.RunningMeans", "no class RunningMeans, but RunningMean (running_mean.RunningMeans)"),
        ("running_mean.Other", "no class Other (running_mean.Other)"),
    ],
)
def test_a_name_that_is_not_there_is_answered_with_the_likely_one(path, said):
    with pytest.raises(ImportError) as error:
        load_class(path)
    assert str(error.value) == f"module running_mean has {said}"
