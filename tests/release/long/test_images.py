"""The images of a release, and what their bills of materials say."""

import hashlib
import json
import re
import subprocess
import sys
import tarfile

import pytest

from tests.release.conftest import REPOSITORY, dry_run
from tools.release import version

NAMES = {"workergroups-operator": ["operator", "debugger"], "workergroups-worker": ["worker"]}


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return dry_run(tmp_path_factory.mktemp("release"))


@pytest.fixture(params=NAMES)
def archive(request, directory):
    (path,) = directory.glob(f"{request.param}-{version.current()}-linux-*.tar")
    with tarfile.open(path) as archive:
        yield archive


def test_an_archive_is_a_whole_oci_layout(archive):
    blobs = [name for name in archive.getnames() if name.startswith("blobs/sha256/")]
    assert read(archive, "oci-layout")["imageLayoutVersion"] == "1.0.0"
    for name in blobs:
        assert name.endswith(hashlib.file_digest(archive.extractfile(name), "sha256").hexdigest())
    manifest = read(archive, blob(the_manifest(archive)))
    wanted = {blob(part) for part in (the_manifest(archive), manifest["config"], *manifest["layers"])}
    assert wanted == set(blobs)


def test_an_image_runs_as_nobody_in_particular_and_has_its_version_as_tag(archive):
    descriptor = the_manifest(archive)
    config = read(archive, blob(read(archive, blob(descriptor))["config"]))
    assert re.fullmatch(r"[1-9]\d+:[1-9]\d+", config["config"]["User"])
    assert descriptor["annotations"]["org.opencontainers.image.ref.name"] == version.current()


def test_an_image_has_nothing_of_the_machine_that_built_it(archive):
    base, *_ = read(archive, blob(the_manifest(archive)))["layers"]
    with tarfile.open(fileobj=archive.extractfile(blob(base))) as layer:
        names = {name.removeprefix("./") for name in layer.getnames()}
    assert "etc/os-release" in names
    assert names & {"etc/resolv.conf", "etc/hostname"} == set()


@pytest.mark.parametrize(("name", "locks"), NAMES.items())
def test_the_bill_of_materials_has_debian_and_what_is_pinned(directory, name, locks):
    (path,) = directory.glob(f"{name}-*.cdx.json")
    listed = {component["purl"] for component in json.loads(path.read_text())["components"]}
    pinned = {f"pkg:pypi/{name}@{number}" for lock in locks for name, number in pins(lock)}
    assert any(purl.startswith("pkg:deb/debian/libc6@") for purl in listed)
    assert pinned - listed == set()


@pytest.mark.parametrize("lock", ["operator", "debugger", "worker"])
def test_what_is_pinned_has_wheels_for_arm64(lock, tmp_path):
    platform = ["--python-platform=aarch64-manylinux_2_28", "--python-version=3.11", "--only-binary=:all:"]
    command = ["-m", "uv", "pip", "install", "--dry-run", f"--target={tmp_path}", "--require-hashes", *platform]
    subprocess.run([sys.executable, *command, f"--requirement=requirements/{lock}.lock"], cwd=REPOSITORY, check=True)


def pins(lock: str) -> list[tuple[str, str]]:
    """Those that every platform installs."""
    text = (REPOSITORY / "requirements" / f"{lock}.lock").read_text()
    return re.findall(r"(?m)^([a-z0-9-]+)(?:\[[a-z,]+\])?==(\S+) \\$", text)


def the_manifest(archive: tarfile.TarFile) -> dict:
    (manifest,) = read(archive, "index.json")["manifests"]
    return manifest


def read(archive: tarfile.TarFile, path: str) -> dict:
    return json.load(archive.extractfile(path))


def blob(descriptor: dict) -> str:
    return f"blobs/{descriptor['digest'].replace(':', '/')}"
