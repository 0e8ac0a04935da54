"""Markdown that GitHub and the site show in the same way."""

import html
from collections.abc import Iterable
from typing import Any

import yaml


def table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """A table; the cells are markdown."""
    lines = [header, ("---",) * len(header), *rows]
    return "\n".join("| " + " | ".join(_cell(cell) for cell in line) + " |" for line in lines)


def code(value: Any) -> str:
    """A value as YAML has it, in one line."""
    text = value if isinstance(value, str) else _yaml(value)
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def plain(text: str) -> str:
    """Words from the code, without the tags that a page would take them for; what is code stays as it is."""
    parts = text.split("`")
    return "`".join(part if index % 2 else html.escape(part, quote=False) for index, part in enumerate(parts))


def _cell(text: str) -> str:
    return " ".join(text.replace("|", r"\|").split())


def _yaml(value: Any) -> str:
    text: str = yaml.safe_dump(value, default_flow_style=True, width=10_000, sort_keys=False)
    return text.removesuffix("...\n").strip()
