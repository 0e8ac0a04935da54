"""The bill of materials of an image, in CycloneDX's format: Debian's packages, and Python's distributions."""

import json
import shlex
import tarfile
from collections.abc import Iterator
from email.parser import HeaderParser
from pathlib import Path, PurePosixPath
from typing import IO, Any

from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL

from tools.console import ToolError

_DPKG = "var/lib/dpkg/status"
_OS_RELEASE = "usr/lib/os-release"
_PYTHON = "*.dist-info/METADATA"
_DELETED = ".wh."


def of_image(archive: Path, name: str, version: str) -> str:
    """Return the JSON text for an OCI archive with one image.

    Raises:
        ToolError: It is not valid by CycloneDX's own schema.
    """
    bom = Bom(components=[_component(purl) for purl in packages(archive)])
    bom.metadata.component = Component(type=ComponentType.CONTAINER, name=name, version=version, bom_ref="image")
    bom.register_dependency(bom.metadata.component, bom.components)
    text = JsonV1Dot6(bom).output_as_string(indent=1)
    if trouble := JsonStrictValidator(SchemaVersion.V1_6).validate_str(text):
        raise ToolError(f"the bill of materials of {archive.name} is not valid: {trouble}")
    return text


def packages(archive: Path) -> list[PackageURL]:
    """Return what an OCI archive's image has installed."""
    files: dict[str, str] = {}
    with tarfile.open(archive) as outer:
        (manifest,) = _json(outer, "index.json")["manifests"]
        for layer in _json(outer, _blob(manifest["digest"]))["layers"]:
            with tarfile.open(fileobj=_open(outer, _blob(layer["digest"])), mode="r") as inner:
                _apply(inner, files)
    python = [PackageURL("pypi", name=name, version=version) for name, version in _python(files)]
    # By the distribution's version, scanners find what is known about its packages.
    qualifiers = {"distro": _distribution(files[_OS_RELEASE])}
    debian = [PackageURL("deb", "debian", name, version, qualifiers) for name, version in _debian(files[_DPKG])]
    return sorted({*python, *debian})


def _apply(layer: tarfile.TarFile, files: dict[str, str]) -> None:
    """Add the layer's records of packages to those of the layers below, and remove those that it deletes."""
    for member in layer:
        path = PurePosixPath(member.name)
        if path.name.startswith(_DELETED):
            gone = path.with_name(path.name.removeprefix(_DELETED))
            for file in [file for file in files if PurePosixPath(file).is_relative_to(gone)]:
                del files[file]
        elif member.isfile() and (str(path) in (_DPKG, _OS_RELEASE) or path.match(_PYTHON)):
            files[str(path)] = _open(layer, member).read().decode()


def _python(files: dict[str, str]) -> Iterator[tuple[str, str]]:
    for path, text in files.items():
        if PurePosixPath(path).match(_PYTHON):
            yield from _named(text, "Name")


def _debian(status: str) -> Iterator[tuple[str, str]]:
    installed = [paragraph for paragraph in status.split("\n\n") if "\nStatus: install ok installed\n" in paragraph]
    for paragraph in installed:
        yield from _named(paragraph, "Package")


def _distribution(os_release: str) -> str:
    fields = dict(word.split("=", 1) for word in shlex.split(os_release, comments=True))
    return f"{fields['ID']}-{fields['VERSION_ID']}"


def _named(text: str, key: str) -> Iterator[tuple[str, str]]:
    fields = HeaderParser().parsestr(text)
    if fields[key] and fields["Version"]:
        yield fields[key], fields["Version"]


def _component(purl: PackageURL) -> Component:
    return Component(name=purl.name, version=purl.version, purl=purl, bom_ref=str(purl))


def _json(archive: tarfile.TarFile, path: str) -> dict[str, Any]:
    return dict(json.load(_open(archive, path)))


def _open(archive: tarfile.TarFile, member: str | tarfile.TarInfo) -> IO[bytes]:
    content = archive.extractfile(member)
    assert content is not None
    return content


def _blob(digest: str) -> str:
    return f"blobs/{digest.replace(':', '/')}"
