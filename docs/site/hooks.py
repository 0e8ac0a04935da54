"""What the site has beyond docs/.

These are the pages and files elsewhere in the repository that it shows or links to, the changes since the last release,
and mermaid for the pages with diagrams.
"""

from __future__ import annotations

import posixpath
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

REPOSITORY = Path(__file__).parents[2]
MERMAID = REPOSITORY / ".site" / "mermaid.min.js"
"""`make docs` gets it; a build without it has diagrams as text."""
PAGES = ("*.md", "examples/**/README.md", "charts/*/README.md", "tools/*/README.md", "changelog.d/README.md")
LINK = re.compile(r"(\]\()(?!https?:|#|mailto:)([^)#\s]+)")
FENCED = re.compile(r"(?ms)^( *```.*?^ *```$)")
FOREIGN = re.compile(
    r"""<(?:script|img|iframe|link(?![^>]*rel="canonical"))\b[^>]*\b(?:src|href)=["']?(?:https?:)?//[^>]*>"""
)
CELL = re.compile(r"(?s)<td.*?</td>")
DIAGRAM = re.compile(r'(?s)<pre class="mermaid">.*?</pre>')
UNRELEASED = "<!-- towncrier release notes start -->"


def on_files(files: Files, config: Any) -> Files:
    """Add the pages outside docs/, and what pages link to that is no page."""
    outside = {path.relative_to(REPOSITORY).as_posix() for pattern in PAGES for path in REPOSITORY.glob(pattern)}
    pages = [f"docs/{file.src_uri}" for file in files.documentation_pages()] + sorted(outside)
    linked = {target for page in pages for target in _targets(page)}
    others = {path for path in linked if not path.startswith("docs/") and not path.endswith(".md")}
    for path in sorted(outside | others):
        if (REPOSITORY / path).is_file():
            files.append(File.generated(config, _source(path), abs_src_path=str(REPOSITORY / path)))
    if MERMAID.exists():
        files.append(File.generated(config, f"site/{MERMAID.name}", abs_src_path=str(MERMAID)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Lead links to where the site has what they name in the repository."""
    if page.file.src_uri == "CHANGELOG.md":
        markdown = markdown.replace(UNRELEASED, _unreleased())
    if page.file.src_uri == "index.md":
        page.meta["hide"] = ["toc"]  # the first program needs the room
    here = _path(page.file.src_uri)
    base = posixpath.dirname(page.file.src_uri)

    def relinked(match: re.Match[str]) -> str:
        return match[1] + posixpath.relpath(_source(_target(here, match[2])), base or ".")

    return _outside_fences(LINK, relinked, markdown)


def on_page_content(html: str, **_: Any) -> str:
    """Show the bars in cells that GitHub needs escaped; let a wide diagram scroll in its box."""
    html = CELL.sub(lambda cell: cell[0].replace(r"\|", "|"), html)
    return DIAGRAM.sub(lambda diagram: f'<div class="diagram">{diagram[0]}</div>', html)


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """Load mermaid where there are diagrams; fail on whatever a page would load from another host."""
    if foreign := FOREIGN.search(output):
        raise PluginError(f"{page.file.src_uri} loads something from another host: {foreign[0]}")
    if 'class="mermaid"' not in output or not MERMAID.exists():
        return output
    root = posixpath.relpath("site", page.url or ".")
    return output.replace("</head>", f'<script src="{root}/{MERMAID.name}"></script></head>', 1)


def _targets(page: str) -> set[str]:
    text = FENCED.sub("", (REPOSITORY / page).read_text())
    return {_target(page, match[2]) for match in LINK.finditer(text)}


def _target(page: str, link: str) -> str:
    """The path in the repository that a page's link names; of a folder, its README."""
    path = posixpath.normpath(posixpath.join(posixpath.dirname(page), link))
    return f"{path}/README.md" if (REPOSITORY / path).is_dir() else path


def _source(path: str) -> str:
    """The name under which the site has a file of the repository."""
    return "index.md" if path == "README.md" else path.removeprefix("docs/")


def _path(source: str) -> str:
    """The file of the repository that the site has under a name."""
    if source == "index.md":
        return "README.md"
    return f"docs/{source}" if (REPOSITORY / "docs" / source).exists() else source


def _outside_fences(pattern: re.Pattern[str], replacement: Any, text: str) -> str:
    parts = FENCED.split(text)
    return "".join(part if index % 2 else pattern.sub(replacement, part) for index, part in enumerate(parts))


def _unreleased() -> str:
    command = [
        sys.executable,
        "-m",
        "towncrier",
        "build",
        "--draft",
        "--version=Not released yet",
        f"--dir={REPOSITORY}",
    ]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
