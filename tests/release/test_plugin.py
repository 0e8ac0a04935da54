"""The plugin for kubectl, and its manifest for krew's index."""

import hashlib
import tarfile

import pytest
import yaml

from tools.release import version


@pytest.fixture
def manifest(released):
    return yaml.safe_load((released / "workergroups.yaml").read_text())


def test_the_manifest_names_the_version_and_the_archives_digest(released, manifest):
    spec = manifest["spec"]
    (platform,) = spec["platforms"]
    archive = released / platform["uri"].rpartition("/")[2]
    assert (manifest["metadata"]["name"], spec["version"]) == ("workergroups", f"v{version.current()}")
    assert platform["uri"].startswith(f"{spec['homepage']}/releases/download/v{version.current()}/")
    assert platform["sha256"] == hashlib.sha256(archive.read_bytes()).hexdigest()


def test_the_archive_has_the_program_of_the_manifest_and_the_license(released, manifest):
    (platform,) = manifest["spec"]["platforms"]
    with tarfile.open(released / platform["uri"].rpartition("/")[2]) as packed:
        members = {member.name: member for member in packed}
    assert members[platform["bin"]].mode & 0o111
    assert "LICENSE" in members
    assert {member.uname for member in members.values()} == {""}


def test_the_manifest_is_as_krews_index_wants_it(manifest):
    spec = manifest["spec"]
    assert manifest["apiVersion"] == "krew.googlecontainertools.github.com/v1alpha2"
    assert manifest["kind"] == "Plugin"
    assert len(spec["shortDescription"]) <= 50
    assert not spec["shortDescription"].endswith(".")
    assert {"homepage", "description", "caveats"} <= spec.keys()
