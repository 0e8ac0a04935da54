"""kind and kubeadm, built from Go modules; `local_cluster` builds the rest of Kubernetes."""

import shutil
from pathlib import Path

from tools.console import run, run_logged, say
from tools.local_cluster import components
from tools.local_kind import engine
from tools.local_kind.layout import STATE, TOOLS

_KIND = "sigs.k8s.io/kind@v0.33.0"
_KUBEADM = "k8s.io/kubernetes/cmd/kubeadm"


def build() -> None:
    """Build both."""
    say("building kind and kubeadm from Go modules")
    TOOLS.mkdir()
    go, environment = str(components.toolchain()), {**components.BUILD_ENVIRONMENT, "GOBIN": str(TOOLS)}
    run_logged(engine.alongside([go, "install", "-buildvcs=false", _KIND]), STATE / "kind.log", env=environment)
    # The local cluster's pins, and from Kubernetes' own pins what kubeadm needs in addition.
    module = STATE / "go"
    module.mkdir()
    for name in ("go.mod", "go.sum"):
        shutil.copy(components.MODULE / name, module)
    build = [go, "build", "-C", str(module), "-mod=mod", *components.build_flags(), "-o", str(TOOLS), _KUBEADM]
    run_logged(engine.alongside(build), STATE / "kubeadm.log", env=components.BUILD_ENVIRONMENT)


def files_of_kinds_nodes() -> Path:
    """Return the directory with the files that kind copies into its nodes' root."""
    go, (module, version) = components.toolchain(), _KIND.split("@")
    cache = run([go, "env", "GOMODCACHE"], env={"GOTOOLCHAIN": "local"}).strip()
    return Path(cache, f"{module}@{version}", "images", "base", "files")


def kubernetes_version() -> str:
    """Return the version of the components, as in the tags of images."""
    return components.pinned(r"k8s\.io/kubernetes (v1\.\d+\.\d+)")[1]


def images() -> dict[str, str]:
    """Return kubeadm's name of each image, by the image's name."""
    listed = run([TOOLS / "kubeadm", "config", "images", "list", f"--kubernetes-version={kubernetes_version()}"])
    return {reference.rpartition("/")[2].partition(":")[0]: reference for reference in listed.split()}
