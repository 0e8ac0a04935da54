"""Kubernetes' messages about pods, without the generated suffixes of the pods' names."""

import re

from workergroups_api.bounded_text import MAX_MESSAGE

_POD = re.compile(r"""\b[Pp]ods? "([a-z0-9.-]+-)[a-z0-9]{5}"(?= is )""")


def without_generated_names(text: str) -> str:
    """Return the text without the five characters that the API server appends to the names of pods.

    With them, a refusal would differ after each try, and the status that quotes it would change without end. What
    exceeds the length of a condition's message is left out.
    """
    text = text[:MAX_MESSAGE]
    for prefix in _POD.findall(text):
        text = re.sub(re.escape(prefix) + r"[a-z0-9]{5}\b", prefix, text)
    return text
