"""Only the adapter touches what Ray does not publish."""

import ast
import re
from pathlib import Path

import pytest

from workergroups import ray_private
from workergroups.worker_process import default_worker

REPOSITORY = Path(__file__).parents[3]
PRODUCT = ("cli", "common", "crds", "operator", "worker_image")
ADAPTER = Path(ray_private.__file__).parent
# It may run in an interpreter that lacks the library, and so imports nothing of ours.
STANDS_ALONE = Path(default_worker.__file__)
# Packages of Ray without a promise of stability, and whatever begins with an underscore.
PRIVATE_MODULE = re.compile(r"ray\.(core|dashboard|experimental|scripts|util\.state|([a-z_]+\.)*_(?!_version__))")
# What Ray's classes, handles, errors and clients hide. A few have no underscore.
PRIVATE_ATTRIBUTE = re.compile(
    r"_ray_|__ray_|_?internal_kv_|(_actor_id|_actor_init_failed|_default_options|get_all_node_info)$"
)


def dotted(node):
    """Return `a.b.c` for that expression."""
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else "?"


def private_parts(source):
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if PRIVATE_MODULE.match(alias.name))
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = (f"{node.module}.{alias.name}" for alias in node.names)
            yield from (name for name in names if PRIVATE_MODULE.match(name))
        elif isinstance(node, ast.Attribute):
            name = dotted(node)
            if PRIVATE_MODULE.match(name) or (PRIVATE_ATTRIBUTE.match(node.attr) and dotted(node.value) != "self"):
                yield name


def test_no_other_module_touches_rays_private_parts():
    found = {
        str(path.relative_to(REPOSITORY)): parts
        for folder in PRODUCT
        for path in (REPOSITORY / folder).rglob("*.py")
        if not path.is_relative_to(ADAPTER)
        and path != STANDS_ALONE
        and (parts := list(private_parts(path.read_text())))
    }
    assert found == {}


@pytest.mark.parametrize(
    "source",
    [
        "import ray._private.state",
        "from ray import _raylet",
        "from ray.core.generated import gcs_pb2",
        "from ray.experimental import internal_kv",
        "from ray.util import state",
        "from ray.util.state import list_actors",
        "import ray; ray._private.worker.global_worker",
        "handle._actor_id.hex()",
        "self._workers[0]._ray_method_signatures",
        "client.internal_kv_get(b'')",
    ],
)
def test_they_would_be_found(source):
    assert list(private_parts(source))


@pytest.mark.parametrize(
    "source", ["from ray.util import placement_group", "import ray; ray.get(ref)", "self._actor_id", "ray.__version__"]
)
def test_the_rest_of_ray_is_for_everybody(source):
    assert not list(private_parts(source))


@pytest.mark.parametrize("lock", ["oldest-ray.lock", "worker.lock", "dev.lock"])
def test_the_adapter_names_the_versions_that_it_is_tested_with(lock):
    version = re.search(r"(?m)^ray==(\S+)", (REPOSITORY / "requirements" / lock).read_text())[1]
    assert f"Ray {version}" in ray_private.__doc__
