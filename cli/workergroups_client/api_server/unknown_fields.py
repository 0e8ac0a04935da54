"""Suggest fields of our kinds for those that the API server does not know."""

from __future__ import annotations

import re
from typing import Any

from ..suggestions import did_you_mean

_UNKNOWN = re.compile(r"(?P<path>\.\S+): field not declared in schema")
_STEP = re.compile(r"\.([^.\[]+)|\[[^\]]*\]")


def with_suggestions(kind: str, refusal: str) -> str:
    """Return the API server's words, with a question after each field that is like one that the kind has."""

    def asked(found: re.Match[str]) -> str:
        *parents, last = (step[1] or "items" for step in _STEP.finditer(found["path"]))
        question = did_you_mean(last, _fields(kind, parents))
        return f"{found[0]} ({question})" if question else found[0]

    return _UNKNOWN.sub(asked, refusal)


def _fields(kind: str, path: list[str]) -> list[str]:
    """Return the fields of the object at that path; none if the kind is not ours."""
    from workergroups_api.crd import definitions  # only for this error: it imports the models of all fields

    for definition in definitions().values():
        if definition["spec"]["names"]["kind"] == kind:
            node: Any = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
            for step in path:
                node = node.get("items", {}) if step == "items" else node.get("properties", {}).get(step, {})
            return list(node.get("properties", {}))
    return []
