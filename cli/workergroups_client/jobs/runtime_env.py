"""The runtime environment of a job: read it, add the command line's options, and send its working directory to Ray."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from ..errors import ClientError, NotFoundError
from ..ray_cluster.ray_api import RayApi
from .package import Package, pack

RuntimeEnv = dict[str, Any]
_UPLOAD_SECONDS = 600
_INSTALLERS = ("pip", "uv")
_TYPES: Mapping[str, tuple[type, str]] = {
    "working_dir": (str, "the path of a directory or of a .zip archive, or a URI"),
    "py_modules": (list, "a list of URIs"),
    "excludes": (list, "a list of patterns, such as ['*.ckpt']"),
    "env_vars": (dict, "a mapping, such as {NAME: value}"),
}


def read(path: Path) -> RuntimeEnv:
    """Read a runtime environment from a YAML file.

    Raises:
        ClientError: The file cannot be read, or is not a mapping.
    """
    try:
        found = yaml.safe_load(path.read_text())
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ClientError(f"the runtime environment {path} cannot be read: {error}") from error
    if not isinstance(found, dict):
        raise ClientError(f"the runtime environment {path} must be a mapping, such as env_vars: {{NAME: value}}")
    return found


def merged(given: Mapping[str, Any], working_dir: Path | None, env: Mapping[str, str]) -> RuntimeEnv:
    """Add a working directory and variables, which win over those of the file."""
    for name, (type_, what) in _TYPES.items():
        if not isinstance(given.get(name), (type_, type(None))):
            raise ClientError(f"{name} of the runtime environment must be {what}, not {given[name]!r}")
    result = dict(given)
    if working_dir is not None:
        result["working_dir"] = str(working_dir)
    variables = {**(given.get("env_vars") or {}), **env}
    not_text = [name for name, value in variables.items() if not isinstance(value, str)]
    if not_text:
        raise ClientError(f"env_vars of the runtime environment must be strings; quote {', '.join(sorted(not_text))}")
    return {**result, "env_vars": variables} if variables else result


class PackedEnv(NamedTuple):
    """A runtime environment with URIs of directories, and the package that Ray must have for it."""

    env: RuntimeEnv
    package: Package | None

    def send(self, ray: RayApi) -> None:
        """Send the package unless Ray has it."""
        if self.package is not None and not _has(self.package, ray):
            ray.put(f"/api/packages/gcs/{self.package.name}", self.package.data, _UPLOAD_SECONDS)


def packed(given: Mapping[str, Any]) -> PackedEnv:
    """Pack the directories of this machine, as they are now."""
    result = {**given, **{name: _listed(name, given[name]) for name in _INSTALLERS if name in given}}
    if isinstance(result.get("conda"), str) and Path(result["conda"]).suffix in (".yaml", ".yml"):
        result["conda"] = read(Path(result["conda"]))
    excludes = result.pop("excludes", None) or []
    if not all(isinstance(each, str) for each in excludes):
        raise ClientError(f"excludes of the runtime environment must be texts: quote those in {excludes!r}")
    package = None
    directory = result.get("working_dir")
    if directory is not None and "://" not in directory:
        package = pack(Path(directory), excludes)
        result["working_dir"] = package.uri
    if local := [module for module in result.get("py_modules") or [] if "://" not in str(module)]:
        raise ClientError(
            f"py_modules of this machine cannot be sent ({local[0]}): put them into the working directory"
        )
    return PackedEnv(result, package)


def _listed(name: str, asked: Any) -> Any:
    """Return what pip or uv installs, with the lines of a file of this machine instead of its name, as Ray does."""
    if isinstance(asked, Mapping) and isinstance(asked.get("packages"), str):
        return {**asked, "packages": _listed(name, asked["packages"])}
    if not isinstance(asked, str):
        return asked
    try:
        return Path(asked).read_text(encoding="utf-8").strip().split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise ClientError(f"{name} of the runtime environment names a file that cannot be read: {error}") from error


def _has(package: Package, ray: RayApi) -> bool:
    try:
        ray.ask(f"/api/packages/gcs/{package.name}")
    except NotFoundError:
        return False
    return True
