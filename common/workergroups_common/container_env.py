"""How values of variables refer to other variables, as in Kubernetes' containers: `$(NAME)`, and `$$` for `$`.

A reference to a variable that does not exist stays as it is.
"""

import re
from collections.abc import Mapping

_REFERENCE = re.compile(r"\$(?:\$|\(([^)]*)\))")


def linked(values: Mapping[str, str]) -> dict[str, str]:
    """Return the values with the references to those before them replaced; `expanded` does the rest elsewhere."""
    found: dict[str, str] = {}
    for name, value in values.items():
        found[name] = _REFERENCE.sub(lambda match: found.get(match[1] or "", match[0]), value)
    return found


def expanded(value: str, variables: Mapping[str, str]) -> str:
    """Return a value with all references replaced."""
    return _REFERENCE.sub(lambda match: "$" if match[1] is None else variables.get(match[1], match[0]), value)
