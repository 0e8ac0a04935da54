"""A page for each module that users import from, from the docstrings.

The source is read, not imported: no torch and no Ray are needed.
"""

import re
from pathlib import Path
from typing import Any

import griffe
from griffe2md import ConfigDict, render_object_docs

from .markdown import table

REPOSITORY = Path(__file__).parents[2]
SEARCH_PATHS = [REPOSITORY / "worker_image", REPOSITORY / "cli", REPOSITORY / "crds"]
MODULES = {
    "workergroups": (
        "workergroups",
        "worker groups, calls and batches, on a laptop's Ray and attached to a WorkerGroup",
    ),
    "workergroups.protocol": ("workergroups.protocol", "verl's batches"),
    "workergroups.single_controller.base.decorator": (
        "workergroups.single_controller.base.decorator",
        "how a method's arguments are dispatched and its results collected",
    ),
    "workergroups.single_controller.ray.base": ("workergroups.single_controller.ray.base", "verl's classes for Ray"),
    "workergroups.client": ("workergroups_client", "pools, groups and jobs from outside the cluster, without Ray"),
}
"""What users import from: where its source is, and what it is for."""
OPTIONS = ConfigDict(
    docstring_section_style="list",
    heading_level=2,
    inherited_members=True,
    members_order="source",
    separate_signature=True,
    show_signature_annotations=True,
    show_if_no_docstring=False,
    show_root_full_path=False,
    show_object_full_path=False,
    filters=["!^_"],
    summary=False,
    line_length=100,
)
LINK = re.compile(r"\[([^\[\]]+)\]\(#[^)]*\)")
"""Types link to pages that do not exist here."""
TAGGED = re.compile(r"<code>(.*?)</code>")
DOUBLE = re.compile(r"(?<!`)``(?!`)")
QUALIFIED = re.compile(r"(?m)^(#+) `(?:\w+\.)*(\w+\.\w+)`$")
"""A member's heading with its module's whole path, of which the page has the beginning already."""


def pages() -> dict[str, str]:
    """The pages by their names, and `README.md`, which lists them."""
    loader = griffe.GriffeLoader(search_paths=SEARCH_PATHS, docstring_parser="google", allow_inspection=False)
    loader.load("workergroups_api")  # some of the client's names are from there
    modules = {name: loader.load(source) for name, (source, _) in MODULES.items()}
    loader.resolve_aliases(external=False)
    described: dict[str, str] = {}
    return {f"python/{name}.md": _page(name, module, described) for name, module in modules.items()} | {
        "README.md": _contents()
    }


def _contents() -> str:
    modules = ((f"[`{name}`](python/{name}.md)", about) for name, (_, about) in MODULES.items())
    return "\n\n".join(
        [
            "# Reference",
            "All pages here are made from the code by `make generate`.",
            "## The API",
            table(
                ("kind", "what it is"),
                [
                    ("[ResourcePool](resourcepool.md)", "processes that are reserved on accelerator nodes"),
                    ("[WorkerGroup](workergroup.md)", "ranks of a class on the processes of pools"),
                ],
            ),
            "## The command line",
            "[All verbs and options of `workergroups`](command-line.md)",
            "## Python",
            table(("module", "what it has"), modules),
        ]
    )


def _page(name: str, module: Any, described: dict[str, str]) -> str:
    """One module; an object that another page describes is linked to it."""
    _, about = MODULES[name]
    elsewhere, own = [], []
    for export in map(str, module.exports or ()):
        found = module[export]
        if found.canonical_path in described:
            elsewhere.append(f"- `{export}`: [{described[found.canonical_path]}]({described[found.canonical_path]}.md)")
        else:
            described[found.canonical_path] = name
            own.append(_markdown(render_object_docs(found, OPTIONS)))
    others = ["## Described elsewhere", "\n".join(elsewhere)] if elsewhere else []
    return "\n\n".join([f"# `{name}`", f"Import from it: {about}.", *own, *others])


def _markdown(text: str) -> str:
    """Without tags, and without links and paths that this page does not need."""
    text = LINK.sub(r"\1", text)
    text = TAGGED.sub(lambda match: f"`{match[1]}`", text)
    text = DOUBLE.sub("`", text)
    return QUALIFIED.sub(r"\1 `\2`", text).strip()
