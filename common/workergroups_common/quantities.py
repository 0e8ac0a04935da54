"""Quantities as Kubernetes writes them, such as `128Gi` and `500m`."""

import re
from fractions import Fraction

_FACTORS = {
    "": Fraction(1),
    "m": Fraction(1, 1000),
    **{suffix: Fraction(1000**power) for power, suffix in enumerate("kMGTP", 1)},
    **{f"{suffix}i": Fraction(1024**power) for power, suffix in enumerate("KMGTP", 1)},
}
_QUANTITY = re.compile(r"([0-9]+(?:[.][0-9]+)?)(m|[kMGTP]|[KMGTP]i)?")


def value_of(quantity: str) -> Fraction | None:
    """Return the value of a quantity, None if it cannot be read."""
    found = _QUANTITY.fullmatch(quantity)
    return Fraction(found[1]) * _FACTORS[found[2] or ""] if found else None


def bytes_of(quantity: str) -> int | None:
    """Return a quantity of memory in bytes, None if it cannot be read."""
    value = value_of(quantity)
    return None if value is None else int(value)
