"""The images: kind's node image, which contains those of the control plane, and a base like Docker Hub's Python."""

import json
import shutil
from pathlib import Path

from tools.console import run, run_logged, say
from tools.local_cluster import components, images, oci
from tools.local_kind import engine, tools
from tools.local_kind.layout import BASE_IMAGE, HERE, KUBERAY_IMAGE, NODE_IMAGE, STATE, TOOLS

_STORE = STATE / "buildah"
_CONTEXT = STATE / "node"
_NETWORK_IMAGE = "localhost/workergroups-kind-network:1"
_PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# kubeadm's name of each image, and the path of its one program.
_CONTROL_PLANE = {
    name: f"/usr/local/bin/{name}" for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd")
}
_EVERYWHERE = {"coredns": "/coredns", "pause": "/pause"}


def provide(base: str) -> None:
    """Build the images, all on the local cluster's base image, and load them into the engine."""
    _load_base(base)
    say("building the image of kind's nodes")
    _lay_out_context()
    references = tools.images()
    for name, path in _CONTROL_PLANE.items():
        _program(references[name], name, path, _CONTEXT / "images" / "control-plane")
    for name, path in _EVERYWHERE.items():
        _program(references[name], name, path, _CONTEXT / "images")
    _program(KUBERAY_IMAGE, "ray-operator", "/manager", _CONTEXT / "images", user="65532:65532")
    settings = ["--build-arg", f"BASE_IMAGE={BASE_IMAGE}", "--build-arg", f"PAUSE_IMAGE={references['pause']}"]
    _build("network", _NETWORK_IMAGE, settings)
    for reference in (references["kube-proxy"], _NETWORK_IMAGE):
        _run("push", _NETWORK_IMAGE, _archive(reference, _CONTEXT / "images"))
    _build("node", NODE_IMAGE, settings)
    _load(NODE_IMAGE)
    shutil.rmtree(_CONTEXT)
    shutil.rmtree(_STORE)


def _load_base(base: str) -> None:
    """Give the engine the local cluster's base image, with this machine's certificates and pip settings in it."""
    # buildah derives the image's name from the path, in which no part may begin with a dot, as in ~/.cache.
    layout = STATE / "layout"
    layout.symlink_to(oci.LAYOUT)
    container = _run("from", f"oci:{layout}:{base}")
    for path, file in images.machine_files().items():
        _run("copy", container, file, path)
    _run("commit", "--rm", container, BASE_IMAGE)
    _load(BASE_IMAGE)


def _lay_out_context() -> None:
    """Collect what the Dockerfile copies."""
    shutil.copytree(HERE / "node", _CONTEXT)
    shutil.copytree(tools.files_of_kinds_nodes(), _CONTEXT / "kind", copy_function=shutil.copyfile)
    (_CONTEXT / "images" / "control-plane").mkdir(parents=True)
    (_CONTEXT / "version").write_text(tools.kubernetes_version())
    for name in ("kubelet", "kubectl", "kube-proxy"):
        shutil.copy(components.binaries() / name, _CONTEXT)
    shutil.copy(TOOLS / "kubeadm", _CONTEXT)


def _program(reference: str, binary: str, path: str, directory: Path, user: str = "") -> None:
    """Write an archive of an image that contains only one static program."""
    container = _run("from", "scratch")
    _run("copy", container, components.binaries() / binary, path)
    _run("config", "--entrypoint", json.dumps([path]), "--env", _PATH, "--user", user, container)
    _run("commit", "--rm", "--disable-compression=false", container, _archive(reference, directory))


def _build(target: str, reference: str, settings: list[str]) -> None:
    command = [*images.BUILD, *settings, f"--target={target}", f"--tag={reference}", str(_CONTEXT)]
    run_logged(_buildah(*command), STATE / f"{target}-image.log")


def _load(reference: str) -> None:
    archive = STATE / "image.tar"
    _run("push", reference, f"docker-archive:{archive}:{reference}")
    engine.docker("load", "--input", archive)
    archive.unlink()


def _archive(reference: str, directory: Path) -> str:
    return f"oci-archive:{directory / reference.replace('/', '_').replace(':', '_')}.tar:{reference}"


def _run(*arguments: str | Path) -> str:
    return run(_buildah(*arguments)).strip()


def _buildah(*arguments: str | Path) -> list[str]:
    return engine.alongside(images.buildah(*arguments, store=_STORE))
