"""What a bill of materials says about an image."""

import hashlib
import io
import json
import tarfile

import pytest

from tools.release import sbom

STATUS = """\
Package: dash
Status: install ok installed
Version: 0.5.12-2

Package: removed
Status: deinstall ok config-files
Version: 1.0
"""
METADATA = "Metadata-Version: 2.4\nName: {}\nVersion: {}\n\nSaid of it: nothing.\n"
BASE = {
    "./usr/lib/os-release": 'NAME="Debian GNU/Linux"\nVERSION_ID="12"\nID=debian\n',
    "./var/lib/dpkg/status": STATUS,
    "./usr/lib/python3/dist-packages/pip-23.0.dist-info/METADATA": METADATA.format("pip", "23.0"),
}


@pytest.fixture
def archive(tmp_path):
    """Writes an image of some layers."""

    def write(*layers):
        path = tmp_path / "image.tar"
        with tarfile.open(path, "w") as archive:
            descriptors = [_add_blob(archive, _tar(layer)) for layer in layers]
            manifest = _add_blob(archive, json.dumps({"layers": descriptors}).encode())
            _add(archive, "index.json", json.dumps({"manifests": [manifest]}).encode())
        return path

    return write


def test_packages_of_debian_and_of_python_are_listed_once(archive):
    kopf = {"opt/lib/kopf-1.45.dist-info/METADATA": METADATA.format("kopf", "1.45"), "opt/lib/kopf.py": ""}
    assert [str(purl) for purl in sbom.packages(archive(BASE, kopf, kopf))] == [
        "pkg:deb/debian/dash@0.5.12-2?distro=debian-12",
        "pkg:pypi/kopf@1.45",
        "pkg:pypi/pip@23.0",
    ]


def test_what_a_later_layer_replaces_or_deletes_is_not_listed(archive):
    upgraded = {"var/lib/dpkg/status": STATUS.replace("0.5.12-2", "0.5.13"), "usr/lib/python3/.wh.dist-packages": ""}
    assert [str(purl) for purl in sbom.packages(archive(BASE, upgraded))] == [
        "pkg:deb/debian/dash@0.5.13?distro=debian-12"
    ]


def test_it_is_valid_and_names_the_image(archive):
    bom = json.loads(sbom.of_image(archive(BASE), "workergroups-operator", "7.8.9"))
    assert (bom["bomFormat"], bom["specVersion"]) == ("CycloneDX", "1.6")
    assert bom["metadata"]["component"].items() >= {"name": "workergroups-operator", "version": "7.8.9"}.items()
    assert {component["purl"] for component in bom["components"]} == {
        "pkg:deb/debian/dash@0.5.12-2?distro=debian-12",
        "pkg:pypi/pip@23.0",
    }


def _tar(files: dict[str, str]) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as archive:
        for path, text in files.items():
            _add(archive, path, text.encode())
    return content.getvalue()


def _add_blob(archive: tarfile.TarFile, content: bytes) -> dict:
    name = hashlib.sha256(content).hexdigest()
    _add(archive, f"blobs/sha256/{name}", content)
    return {"digest": f"sha256:{name}"}


def _add(archive: tarfile.TarFile, path: str, content: bytes) -> None:
    entry = tarfile.TarInfo(path)
    entry.size = len(content)
    archive.addfile(entry, io.BytesIO(content))
