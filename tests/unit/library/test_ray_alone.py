"""Ray in this checkout's environment: each of its many processes imports it, so it must import nothing else."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, requires

# Ray adds the packages that it contains to the path, so who owns a module is found out before.
IMPORTED = """
import json, sys
from importlib.metadata import packages_distributions
owners, before = packages_distributions(), set(sys.modules)
import ray
loaded = [name for name, module in sys.modules.items() if name not in before and getattr(module, "__file__", None)]
names = {name.split(".")[0] for name in loaded}
print(json.dumps({name: owners[name] for name in names if name in owners}))
"""
# Ray and jsonschema import these in passing, in a millisecond: of the second, the package `backports` is empty.
CHEAP = {"jsonpointer", "backports-tarfile"}
# Extras have a condition on the extra's name; of others it does not matter here whether they apply.
REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)(?!.*\bextra\s*==)")


def normal(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def needed_by(package):
    """The names of the packages that this one cannot do without, itself included."""
    found, left = set(), [package]
    while left:
        name = normal(left.pop())
        if name in found:
            continue
        try:
            required = requires(name) or []
        except PackageNotFoundError:  # not for this Python or system
            continue
        found.add(name)
        left += [match[1] for each in required if (match := REQUIREMENT.match(each))]
    return found


def test_ray_imports_only_what_it_requires():
    """jsonschema imports each package that can check a format, and one of these parses a grammar for seconds."""
    done = subprocess.run([sys.executable, "-c", IMPORTED], capture_output=True, text=True, check=True, timeout=120)
    owners = {name: {normal(owner) for owner in found} for name, found in json.loads(done.stdout).items()}
    assert "ray" in owners
    required = needed_by("ray") | CHEAP
    assert {name: found for name, found in owners.items() if not found & required} == {}
