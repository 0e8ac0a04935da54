"""The pages that people read, and what is in them: fenced blocks, code within lines, tables."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

REPOSITORY = Path(__file__).parents[3]
_FOLDERS = (".", "docs", "examples/**", "changelog.d", "tools/*")
PAGES = sorted({path for folder in _FOLDERS for path in REPOSITORY.glob(f"{folder}/*.md")})
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Sample:
    """A piece of code on a page."""

    page: str
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def blocks(*languages: str) -> list[Sample]:
    """Fenced blocks in one of these languages."""
    return [sample for page in PAGES for sample in _blocks_of(page) if sample.language in languages]


def inline(beginning: str) -> list[Sample]:
    """Code within a line that begins so."""
    return [
        Sample(_name(page), number, "", code)
        for page in PAGES
        for number, line in enumerate(page.read_text().splitlines(), 1)
        for code in re.findall(r"`([^`]+)`", line)
        if code.startswith(beginning)
    ]


def commands(beginning: str) -> list[Sample]:
    """Lines of shells that begin so, without comments and prompts; lines that go on are joined."""
    return [
        Sample(block.page, block.line, "", line)
        for block in blocks("sh", "console")
        for line in _lines(block)
        if line.startswith(beginning)
    ]


def tables(text: str) -> Iterator[tuple[list[str], list[list[str]]]]:
    """Each table of a page: the cells of its header, and of each row."""
    for found in re.findall(r"(?:^\|.*\|\n)+", text, re.MULTILINE):
        header, _, *rows = [_cells(line) for line in found.splitlines()]
        yield header, rows


def section(text: str, heading: str) -> str:
    """The part of a page under a heading, up to the next one of its level or above."""
    level = heading.split()[0]
    return re.split(rf"^#{{1,{len(level)}}} ", text.split(f"\n{heading}\n", 1)[1], maxsplit=1, flags=re.MULTILINE)[0]


@cache
def functions_in(path: str) -> set[str]:
    """The functions of a file under tests/, alone or in classes; none if there is no such file."""
    file = REPOSITORY / "tests" / path
    tree = ast.parse(file.read_text()) if file.is_file() else ast.Module([], [])
    bodies = [tree.body, *(each.body for each in tree.body if isinstance(each, ast.ClassDef))]
    return {each.name for body in bodies for each in body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)}


def _blocks_of(page: Path) -> Iterator[Sample]:
    text = page.read_text()
    for match in _FENCE.finditer(text):
        yield Sample(_name(page), text.count("\n", 0, match.start()) + 2, match[1], match[2])


def _lines(block: Sample) -> Iterator[str]:
    for line in block.text.replace("\\\n", " ").splitlines():
        if block.language == "console":
            if not line.startswith("$ "):
                continue  # what the command printed
            line = line.removeprefix("$ ")
        yield re.sub(r"\s+#.*", "", line).strip()


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]


def _name(page: Path) -> str:
    return str(page.relative_to(REPOSITORY))
