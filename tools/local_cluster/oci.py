"""Images on disk: one OCI layout, from which a node receives only the layers that it lacks.

containerd would copy every layer of an archive again, also those that it has. A changed source file is a few
kilobytes on top of layers of hundreds of megabytes, so the archive omits the layers that the node has.
"""

import hashlib
import io
import json
import subprocess
import tarfile
from pathlib import Path
from typing import Any

from tools.console import ToolError, run, say
from tools.local_cluster.layout import CACHE, PAUSE_IMAGE, Node
from tools.local_cluster.node import ctr

LAYOUT = CACHE / "images" / "layout"
_BLOBS = LAYOUT / "blobs" / "sha256"
_INDEX = LAYOUT / "index.json"
_REFERENCE = "org.opencontainers.image.ref.name"
_CONTAINERD_NAME = "io.containerd.image.name"


def references() -> dict[str, dict[str, Any]]:
    """Return the manifest descriptor of each image in the layout, by its full reference."""
    if not _INDEX.exists():
        return {}
    manifests = json.loads(_INDEX.read_text())["manifests"]
    return {manifest["annotations"][_REFERENCE]: manifest for manifest in manifests}


def keep_only(wanted: set[str]) -> None:
    """Remove all other images from the layout, and the layers that no image uses any more."""
    kept = {reference: manifest for reference, manifest in references().items() if reference in wanted}
    _write_index(list(kept.values()))
    used = {digest for manifest in kept.values() for digest in _closure(manifest)}
    for blob in _BLOBS.iterdir():
        if f"sha256:{blob.name}" not in used:
            blob.unlink()


def ensure_pause(binary: Path) -> None:
    """Add the pause image, one static program, to the layout."""
    if PAUSE_IMAGE in references():
        return
    _BLOBS.mkdir(parents=True, exist_ok=True)
    (LAYOUT / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as archive:
        entry = tarfile.TarInfo("pause")
        entry.size, entry.mode = binary.stat().st_size, 0o755
        archive.addfile(entry, io.BytesIO(binary.read_bytes()))
    content = _add_blob("application/vnd.oci.image.layer.v1.tar", layer.getvalue())
    config = {
        "architecture": "amd64",
        "os": "linux",
        "config": {"Entrypoint": ["/pause"]},
        "rootfs": {"type": "layers", "diff_ids": [content["digest"]]},
    }
    image = {
        "schemaVersion": 2,
        "config": _add_blob("application/vnd.oci.image.config.v1+json", json.dumps(config).encode()),
        "layers": [content],
    }
    manifest = _add_blob("application/vnd.oci.image.manifest.v1+json", json.dumps(image).encode())
    manifest["annotations"] = {_REFERENCE: PAUSE_IMAGE}
    _write_index([*references().values(), manifest])


def load(reference: str, node: Node) -> None:
    """Import an image into a node's containerd, unless the node has it."""
    manifest = references().get(reference)
    if manifest is None:
        raise ToolError(f"no image {reference} has been built; the images are: {', '.join(references())}")
    if not node.containerd_socket.exists():
        raise ToolError(f"node {node.name} is not running; run `python3 -m tools.local_cluster up` first")
    if _stored_images(node).get(reference) != manifest["digest"] or not _is_whole(reference, node):
        _import(reference, manifest, node)
    _remove_replaced(reference, node)


def _import(reference: str, manifest: dict[str, Any], node: Node) -> None:
    present = set(run(ctr(node, "content", "list", "--quiet")).split())
    missing = [digest for digest in _closure(manifest) if digest not in present]
    size = sum(_blob(digest).stat().st_size for digest in missing)
    say(f"importing {reference} into node {node.name}: {len(missing)} new blobs, {size / 1e6:.1f} MB")
    with subprocess.Popen(
        ctr(node, "images", "import", "-"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as importer:
        assert importer.stdin is not None
        assert importer.stdout is not None
        with importer.stdin, tarfile.open(fileobj=importer.stdin, mode="w|") as archive:
            _add_layout(archive, {**manifest, "annotations": {_CONTAINERD_NAME: reference}}, missing)
        output = importer.stdout.read().decode()
    if importer.returncode != 0:
        raise ToolError(f"cannot import {reference} into node {node.name}:\n{output}")


def write_archive(reference: str, name: str, path: Path) -> None:
    """Write an image of the layout as an OCI archive, in which it has a full name with a tag."""
    manifest = references()[reference]
    named = {**manifest, "annotations": {_CONTAINERD_NAME: name, _REFERENCE: name.rpartition(":")[2]}}
    with tarfile.open(path, mode="w") as archive:
        _add_layout(archive, named, _closure(manifest))


def _add_layout(archive: tarfile.TarFile, manifest: dict[str, Any], digests: list[str]) -> None:
    """Add a layout with one image, and those of its blobs that the reader lacks."""
    for digest in digests:
        archive.add(_blob(digest), f"blobs/sha256/{_blob(digest).name}")
    archive.add(LAYOUT / "oci-layout", "oci-layout")
    index = json.dumps({"schemaVersion": 2, "manifests": [manifest]}).encode()
    entry = tarfile.TarInfo("index.json")
    entry.size = len(index)
    archive.addfile(entry, io.BytesIO(index))


def _stored_images(node: Node) -> dict[str, str]:
    """Return the manifest digest of each image in a node's containerd, by name."""
    lines = run(ctr(node, "images", "list")).splitlines()[1:]
    return {fields[0]: fields[2] for fields in map(str.split, lines)}


def _is_whole(reference: str, node: Node) -> bool:
    """Return whether an image is complete and unpacked: an import that broke off leaves its name behind."""
    _, *lines = run(ctr(node, "images", "check", f"name=={reference}")).splitlines()
    return any(" complete " in line and line.split()[-1] == "true" for line in lines)


def _remove_replaced(reference: str, node: Node) -> None:
    """Remove the older images of the same repository, under each name that they have.

    Not those of other repositories: their successors, which may not be imported yet, need the same layers.
    """
    repository = reference.rpartition(":")[0] + ":"
    stored = _stored_images(node)
    known = references()
    replaced = {digest for name, digest in stored.items() if name.startswith(repository) and name not in known} - {
        manifest["digest"] for manifest in known.values()
    }
    names = [name for name, digest in stored.items() if digest in replaced]
    if names:
        run(ctr(node, "images", "remove", *names))


def _closure(manifest: dict[str, Any]) -> list[str]:
    """List the digests that make up an image, its manifest last."""
    image = json.loads(_blob(manifest["digest"]).read_text())
    parts = [*image["layers"], image["config"], manifest]
    return list(dict.fromkeys(part["digest"] for part in parts))


def _blob(digest: str) -> Path:
    return _BLOBS / digest.removeprefix("sha256:")


def _add_blob(media_type: str, content: bytes) -> dict[str, Any]:
    name = hashlib.sha256(content).hexdigest()
    (_BLOBS / name).write_bytes(content)
    return {"mediaType": media_type, "digest": f"sha256:{name}", "size": len(content)}


def _write_index(manifests: list[dict[str, Any]]) -> None:
    _INDEX.write_text(json.dumps({"schemaVersion": 2, "manifests": manifests}))
