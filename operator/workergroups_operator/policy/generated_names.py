"""Kubernetes' messages about pods, without the generated suffixes of the pods' names."""

import re

_POD = re.compile(r"""\b[Pp]ods? "([a-z0-9.-]+-)[a-z0-9]{5}"(?= is )""")


def without_generated_names(text: str) -> str:
    """The text with the pods' names as they were asked for.

    The API server appends five characters to them. With those, a refusal would read otherwise after each try: the
    status that says so would change for ever.
    """
    for prefix in _POD.findall(text):
        text = re.sub(re.escape(prefix) + r"[a-z0-9]{5}\b", prefix, text)
    return text
