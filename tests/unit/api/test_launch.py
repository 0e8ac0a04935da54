"""The digests by which operator and agent speak of one version of a group's ranks."""

import pytest
from pydantic import ValidationError

from workergroups_api.launch import Launch, code_digest, revision
from workergroups_api.names import RESTARTED_AT_ANNOTATION
from workergroups_api.worker_group import WorkerGroup

METADATA = {"name": "trainer", "namespace": "team", "uid": "1"}
WORKER = {"class": "trainer.Actor", "args": [1, None], "kwargs": {"lr": 0.1, "cls": {"deep": [None]}}}
SPEC = {"worker": WORKER, "code": {"configMap": {"name": "trainer"}}, "env": [{"name": "A", "value": "1"}]}
CODE = code_digest({"trainer.py": "class Actor: ..."})


def launch(**changes) -> Launch:
    return WorkerGroup.model_validate({"metadata": METADATA, "spec": SPEC | changes}).launch


def test_the_launch_is_what_the_user_wrote():
    assert launch() == Launch(
        class_path="trainer.Actor",
        init_args=(1, None),
        init_kwargs={"lr": 0.1, "cls": {"deep": [None]}},
        env={"A": "1"},
        config_map="trainer",
    )


def test_several_roles_are_launched_as_one():
    roles = [{"name": "actor", "class": "trainer.Actor", "kwargs": {"lr": 1}}, {"name": "ref", "class": "trainer.Ref"}]
    actor, ref = launch(worker=None, roles=roles).roles
    assert (actor.name, actor.class_path, actor.init_kwargs) == ("actor", "trainer.Actor", {"lr": 1})
    assert (ref.name, ref.class_path) == ("ref", "trainer.Ref")


@pytest.mark.parametrize("changes", [{"worker": None}, {"roles": [{"name": "a", "class": "b.C"}]}], ids=str)
def test_one_class_and_roles_exclude_each_other(changes):
    with pytest.raises(ValidationError, match=r"spec\.worker or spec\.roles"):
        launch(**changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"worker": None, "roles": [{"name": "actor", "class": "trainer.Actor"}]},
        {"worker": None, "roles": [{"name": "ref", "class": "trainer.Actor"}]},
        {"worker": {"class": "trainer.Actor"}},
        {"worker": WORKER | {"class": "trainer.Critic"}},
        {"worker": WORKER | {"args": [1]}},
        {"worker": WORKER | {"args": [None, 1]}},
        {"worker": WORKER | {"kwargs": {"lr": 0.2}}},
        {"env": [{"name": "A", "value": "2"}]},
        {"env": []},
        {"code": {"configMap": {"name": "other"}}},
        {"code": {"configMap": {"name": "trainer", "items": [{"key": "a.py", "path": "b/a.py"}]}}},
        {"code": {"path": "/code"}},
        {"code": None},
    ],
    ids=str,
)
def test_another_worker_code_or_environment_is_another_revision(changes):
    assert revision(launch(**changes), CODE) != revision(launch(), CODE)


def restarted(**annotations):
    metadata = METADATA | {"annotations": {"team": "a"} | annotations}
    return WorkerGroup.model_validate({"metadata": metadata, "spec": SPEC}).launch


def test_each_change_of_the_restart_annotation_is_another_revision():
    said = [restarted(), restarted(**{RESTARTED_AT_ANNOTATION: "1"}), restarted(**{RESTARTED_AT_ANNOTATION: "2"})]
    assert len({revision(launch, CODE) for launch in said}) == 3
    assert revision(restarted(), CODE) == revision(launch(), CODE)


@pytest.mark.parametrize("changes", [{"pools": [{"name": "a"}]}, {"progressDeadlineSeconds": 5}], ids=str)
def test_what_ranks_are_not_made_from_is_not_in_the_revision(changes):
    assert revision(launch(**changes), CODE) == revision(launch(), CODE)


def test_the_order_of_keys_does_not_matter():
    turned = launch(worker=WORKER | {"kwargs": dict(reversed(WORKER["kwargs"].items()))})
    assert revision(turned, CODE) == revision(launch(), CODE)
    assert code_digest({"a.py": "1", "b.py": "2"}) == code_digest({"b.py": "2", "a.py": "1"})


def test_the_order_of_environment_variables_does_not_matter():
    one, other = {"name": "A", "value": "1"}, {"name": "B", "value": "2"}
    assert revision(launch(env=[one, other]), CODE) == revision(launch(env=[other, one]), CODE)


def test_the_content_of_the_code_counts():
    assert revision(launch(), code_digest({"trainer.py": "class Actor: pass"})) != revision(launch(), CODE)
    assert code_digest({"a.py": "x"}) != code_digest({"b.py": "x"})
    assert code_digest({}) != code_digest({"a.py": ""})


def test_without_the_code_that_it_needs_there_is_no_revision():
    assert revision(launch(), None) is None


def test_a_class_in_the_image_needs_no_code():
    in_the_image = launch(code=None)
    assert revision(in_the_image, None) is not None
    assert revision(in_the_image, CODE) == revision(in_the_image, None)


def test_a_revision_is_the_same_after_the_launch_has_travelled():
    travelled = Launch.model_validate(launch().to_json())
    assert revision(travelled, CODE) == revision(launch(), CODE)


def test_nothing_of_the_users_values_can_be_read_in_a_revision():
    assert "secret" not in str(revision(launch(env=[{"name": "KEY", "value": "secret"}]), CODE))
