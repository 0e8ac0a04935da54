"""Write docs/reference.md from the library's docstrings: ``python docs/generate_reference.py FILE``.

The source is read, not imported: no torch and no Ray are needed.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import griffe
from griffe2md import ConfigDict, render_object_docs

SOURCE_ROOT = Path(__file__).parent.parent / "worker_image"
MODULES = (
    "workergroups",
    "workergroups.protocol",
    "workergroups.single_controller.base.decorator",
    "workergroups.single_controller.ray.base",
)
"""What users import from. An object in several of them is described under the first."""
OPTIONS = ConfigDict(
    docstring_section_style="list",
    heading_level=3,
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


def main() -> None:
    """Write the page."""
    parts = [
        "# Reference of the library",
        "Made from the docstrings by `make generate`; [library.md](library.md) is the guide. What is listed under one "
        "module can be imported from the others that verl has it in as well.",
    ]
    described: set[str] = set()
    for name in MODULES:
        module = griffe.load(name, search_paths=[SOURCE_ROOT], docstring_parser="google", resolve_aliases=True)
        parts.append(f"## `{name}`")
        for export in module.exports or ():
            found = module[str(export)]
            if found.canonical_path not in described:
                described.add(found.canonical_path)
                parts.append(LINK.sub(r"\1", render_object_docs(found, OPTIONS)).strip())
    Path(sys.argv[1]).write_text("\n\n".join(parts) + "\n")


if __name__ == "__main__":
    main()
