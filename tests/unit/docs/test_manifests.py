"""Manifests in examples and in the README are of the API as it is."""

import pytest
import yaml
from typer.testing import CliRunner

from tests.unit.docs.manifests import KINDS, left_out
from tests.unit.docs.pages import REPOSITORY, blocks
from workergroups_api.resource_pool import ResourcePool
from workergroups_api.worker_group import WorkerGroup
from workergroups_cli.app import app

EXAMPLES = sorted((REPOSITORY / "examples").glob("*/*.yaml"))


def read(text: str) -> list[dict]:
    return [each for each in yaml.safe_load_all(text) if each["kind"] in KINDS]


def of_the_readme() -> list[dict]:
    return [each for block in blocks("yaml") if block.page == "README.md" for each in read(block.text)]


ALL = [(file.parent.name, each) for file in EXAMPLES for each in read(file.read_text())]
ALL += [("README", each) for each in of_the_readme()]


@pytest.mark.parametrize(
    "manifest",
    [each for _, each in ALL],
    ids=[f"{where}-{each['metadata']['name']}-{each['kind']}" for where, each in ALL],
)
def test_a_manifest_has_no_field_that_the_api_lacks(manifest):
    known = KINDS[manifest["kind"]].model_validate(manifest).to_json()
    assert left_out(manifest["spec"], known["spec"]) == []


@pytest.mark.parametrize("example", sorted({where for where, each in ALL if each["kind"] == "WorkerGroup"}))
def test_groups_run_on_pools_of_their_example(example):
    objects = [KINDS[each["kind"]].model_validate(each) for where, each in ALL if where == example]
    pools = {each.name: each for each in objects if isinstance(each, ResourcePool)}
    groups = [each for each in objects if isinstance(each, WorkerGroup)]
    for group in groups:
        assert {ref.name for ref in group.pools} <= set(pools)
        assert len({pools[ref.name].cluster for ref in group.pools}) == 1


def test_the_readme_shows_what_init_writes_so_that_it_runs_as_it_is():
    (shown,) = (list(yaml.safe_load_all(block.text)) for block in blocks("yaml") if block.page == "README.md")
    written = list(yaml.safe_load_all(CliRunner().invoke(app, ["init", "demo", "--file", "-"]).output))
    assert shown == written
