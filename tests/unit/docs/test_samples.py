"""What the pages show works: programs, manifests, commands, targets of make."""

import re
import shlex
from importlib.util import find_spec
from typing import Any

import pytest
import typer
import yaml

from tests.unit.docs.manifests import KINDS, left_out
from tests.unit.docs.pages import REPOSITORY, Sample, blocks, commands, inline, tables
from tests.unit.docs.reading import troubles
from workergroups_api.crd import definitions
from workergroups_cli.app import app

COMMAND_LINE = typer.main.get_command(app)
MAKEFILE = (REPOSITORY / "Makefile").read_text()
TARGETS = set(re.findall(r"(?m)^([a-z][a-z0-9-]*):", MAKEFILE))
VARIABLES = set(re.findall(r"(?m)^([A-Z_]+) [?:]?=", MAKEFILE)) | set(re.findall(r"\$\(or \$\(([A-Z]+)\)", MAKEFILE))
# What stands on a page for a number.
NUMBERS = {"R": "0", "N": "1"}
OTHERS_MODULES = {"pdb", "verl.trainer.main_ppo"}
KUBECTL_WORDS = {
    word
    for definition in definitions().values()
    for word in (definition["spec"]["names"]["plural"], definition["spec"]["names"]["singular"])
}
# A fragment of a manifest lacks what it is not about.
REQUIRED = {"ResourcePool": {"processesPerNode": 1}, "WorkerGroup": {"worker": {"class": "module.Class"}}}


def each(samples: list[Sample]) -> pytest.MarkDecorator:
    assert samples
    return pytest.mark.parametrize("sample", samples, ids=str)


@each(blocks("python"))
def test_a_program_uses_what_there_is(sample):
    assert troubles(sample.text) == []


@pytest.mark.parametrize(
    ("program", "trouble"),
    [
        ("from workergroups import attached", "workergroups has no attached"),
        ("import workergroups.clients", "No module named 'workergroups.clients'"),
        ("import no_such_module", "there is no module no_such_module"),
        ("import workergroups\nworkergroups.attach('x', newer=1)", "unexpected keyword argument 'newer'"),
        ("from workergroups import attach\ng = attach('x')\ng.deadline()", "missing a required argument: 'seconds'"),
        ("from workergroups.client import Pool\nwith Pool('x') as p:\n    p.submits()", "Pool has no submits"),
        ("from workergroups.client import Group\nGroup('x').previous_logs()[0].reasons", "PreviousLog has no reasons"),
        (
            "from workergroups import RankDiedError\ntry:\n    f()\nexcept RankDiedError as died:\n    died.ranks",
            "RankDiedError has no ranks",
        ),
    ],
)
def test_the_reader_sees_what_is_wrong(program, trouble):
    (found,) = troubles(program)
    assert trouble in found


@each(blocks("yaml"))
def test_a_manifest_is_of_the_api(sample):
    for document in yaml.safe_load_all(sample.text):
        if document.get("kind", "ResourcePool") not in KINDS:
            continue  # of Kubernetes
        spec = document.get("spec", document)
        kinds = [document["kind"]] if "kind" in document else list(KINDS)
        assert [] in [_unknown_fields(kind, spec) for kind in kinds]


def _unknown_fields(kind: str, spec: dict) -> list[str]:
    required = {} if kind == "WorkerGroup" and "roles" in spec else REQUIRED[kind]
    read = KINDS[kind].model_validate({"metadata": {"name": "x"}, "spec": required | spec})
    return left_out(spec, read.to_json()["spec"])


@each(commands("workergroups ") + commands("kubectl workergroups "))
def test_a_command_in_a_block_is_one(sample):
    _parse(sample.text)


@each(inline("workergroups "))
def test_a_command_in_a_line_is_one(sample):
    _parse(sample.text, may_lack_arguments=True)


def _parse(line: str, *, may_lack_arguments: bool = False) -> None:
    words = [NUMBERS.get(word, word) for word in shlex.split(re.sub(r" [|>&].*", "", line))]
    arguments = words[words.index("workergroups") + 1 :]
    if len(arguments) == 1 and arguments[0].startswith("--"):
        # Options that act when they are parsed: --install-completion would write into the home directory.
        options = {option for parameter in COMMAND_LINE.params for option in parameter.opts}
        assert arguments[0] in options | {"--help"}
        return
    name, command, context = "workergroups", COMMAND_LINE, None
    while _is_group(command):
        context = command.make_context(name, arguments, parent=context)
        name, command, arguments = command.resolve_command(context, [*context._protected_args, *context.args])
        if may_lack_arguments and not arguments:
            return
    command.make_context(name, arguments, parent=context)


def _is_group(command: Any) -> bool:
    return hasattr(command, "commands")


def test_the_verbs_table_names_options_that_exist():
    page = (REPOSITORY / "docs" / "command-line.md").read_text()
    (rows,) = [rows for header, rows in tables(page) if header[0] == "verb"]
    assert len(rows) > 15
    for row in rows:
        usage = row[0].strip("`").replace("\\|", "|")
        words = re.sub(r" \[?-- CMD\]?", "", usage).replace("[", "").replace("]", "").split()
        command = COMMAND_LINE
        while _is_group(command):
            _, command, words = command.resolve_command(typer.Context(command), words)
        known = {option for parameter in command.params for option in parameter.opts}
        assert [word for word in words if word.startswith("-") and word not in known] == [], usage


@each(commands("make ") + inline("make "))
def test_a_target_of_make_exists(sample):
    words = shlex.split(sample.text)[1:]
    targets = [word for word in words if "=" not in word]
    assert targets
    assert set(targets) <= TARGETS
    assert {word.partition("=")[0] for word in words if "=" in word} <= VARIABLES


@each([sample for start in ("python -m ", "python3 -m ") for sample in (*commands(start), *inline(start))])
def test_a_module_that_is_run_exists(sample):
    module = sample.text.split()[2]
    assert module in OTHERS_MODULES or find_spec(module)


@each(commands("kubectl "))
def test_kubectl_is_asked_for_kinds_that_exist(sample):
    words = re.split(r"[\s,/]", sample.text)
    asked = [word for word in words if re.fullmatch("resource-?pools?|worker-?groups?", word)]
    assert [word for word in asked if word not in KUBECTL_WORDS] == []
