"""The project's images, built with buildah on a base made from Debian's packages."""

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

from tools.console import REPOSITORY, ToolError, run, run_logged, say
from tools.local_cluster import oci, packages
from tools.local_cluster.layout import CACHE, PAUSE_IMAGE

_IMAGES = {"workergroups-operator": "operator/Dockerfile", "workergroups-worker": "worker_image/Dockerfile"}
_TEST_IMAGES = {
    "workergroups-oldest-ray": "tests/cluster/images/oldest-ray.Dockerfile",
    "workergroups-too-old-ray": "tests/cluster/images/too-old-ray.Dockerfile",
}
_WORK = CACHE / "images"
_TAGS = _WORK / "tags.json"
_CA_BUNDLE = Path("/etc/ssl/certs/ca-certificates.crt")
_STORE = CACHE / "buildah"
# No daemon, no privileges, and the network of the machine.
BUILD = ("bud", "--layers", "--pull-never", "--isolation=chroot", "--network=host")

_BASE = "workergroups-base"
_BASE_PACKAGES = "ca-certificates,python3-pip,python3-venv"
_BASE_STRIPPED = (
    *("usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/info", "usr/share/lintian"),
    *("var/lib/apt/lists", "var/cache/apt", "var/log"),
)
# What debootstrap copies from this machine. The container engine writes a pod's own.
_BASE_OF_THIS_MACHINE = ("etc/hostname", "etc/resolv.conf")
# As in the official Python images: `python` and `pip` exist, and pip may write to the system.
_BASE_DOCKERFILE = """\
FROM scratch
ADD rootfs.tar /
RUN ln -s python3 /usr/bin/python && rm -f /usr/lib/python3*/EXTERNALLY-MANAGED && touch /etc/pip.conf
CMD ["python3"]
"""


def build(*, for_tests: bool) -> dict[str, str]:
    """Build what has changed since the last build, and return the reference of each image by its name.

    Images for tests that an earlier build made stay if another build would make the same.
    """
    base = build_base()
    images = {
        name: (_reference(name, dockerfile, base), dockerfile) for name, dockerfile in (_IMAGES | _TEST_IMAGES).items()
    }
    wanted = images if for_tests else images.keys() & _IMAGES.keys()
    for name, (reference, dockerfile) in images.items():
        if name in wanted and reference not in oci.references():
            _build_image(name, reference, dockerfile, base)
    built = {_BASE: base} | {name: reference for name, (reference, _) in images.items()}
    oci.keep_only({PAUSE_IMAGE, *built.values()})
    _drop_replaced(set(built.values()))
    _TAGS.write_text(json.dumps(built, indent=2))
    return built


def tags() -> dict[str, str]:
    """Return the images of the last build.

    Raises:
        ToolError: No image has been built.
    """
    if not _TAGS.exists():
        raise ToolError("no image has been built; run `python3 -m tools.local_cluster build-images`")
    return dict(json.loads(_TAGS.read_text()))


def build_base() -> str:
    """Build the base image of the others, unless it exists; return its reference in the layout."""
    packages.install_for_images()
    _WORK.mkdir(parents=True, exist_ok=True)
    recipe = repr((_BASE_PACKAGES, _BASE_STRIPPED, _BASE_OF_THIS_MACHINE, _BASE_DOCKERFILE))
    reference = f"localhost/{_BASE}:{_short_hash(recipe.encode())}"
    if reference in oci.references():
        return reference
    context = _WORK / "base"
    shutil.rmtree(context, ignore_errors=True)
    rootfs = context / "rootfs"
    rootfs.mkdir(parents=True)
    log = _WORK / "base.log"
    say(f"building the base image with debootstrap (log: {log})")
    # In its own mount namespace, so that a killed debootstrap leaves no /proc mounted in the cache.
    private = ["unshare", "--mount", "--propagation", "private"]
    bootstrap = ["debootstrap", "--variant=minbase", f"--include={_BASE_PACKAGES}", "bookworm", str(rootfs)]
    run_logged([*private, *bootstrap], log)
    for path in _BASE_STRIPPED:
        shutil.rmtree(rootfs / path)
        (rootfs / path).mkdir()
    for path in _BASE_OF_THIS_MACHINE:
        (rootfs / path).unlink(missing_ok=True)
    run(["tar", "--create", "--file", context / "rootfs.tar", "--directory", rootfs, "."])
    shutil.rmtree(rootfs)
    (context / "Dockerfile").write_text(_BASE_DOCKERFILE)
    _bud(reference, context, context / "Dockerfile", [])
    shutil.rmtree(context)
    return reference


def _reference(name: str, dockerfile: str, base: str) -> str:
    """Return the name, with a hash of everything that the image contains."""
    if not (REPOSITORY / dockerfile).exists():
        raise ToolError(f"{dockerfile} does not exist, from which {name} is built")
    digest = hashlib.sha256(base.encode())
    for path in _inputs(REPOSITORY / dockerfile):
        executable = (REPOSITORY / path).stat().st_mode & 0o111
        content = hashlib.sha256((REPOSITORY / path).read_bytes()).hexdigest()
        digest.update(f"{path} {executable} {content}\n".encode())
    return f"localhost/{name}:{digest.hexdigest()[:12]}"


def _build_image(name: str, reference: str, dockerfile: str, base: str) -> None:
    context = _WORK / f"context-{name}"
    _stage(_inputs(REPOSITORY / dockerfile), context)
    options = ["--build-arg", f"BASE_IMAGE={base}", *lend_to_build()]
    _bud(reference, context, context / dockerfile, options)
    shutil.rmtree(context)


def _inputs(dockerfile: Path) -> list[str]:
    """Return a Dockerfile and the files that it copies, among those that git does not ignore."""
    text = dockerfile.read_text().replace("\\\n", " ")
    copies = [line.split()[1:] for line in text.splitlines() if line.split()[:1] in (["COPY"], ["ADD"])]
    words = [words for words in copies if not any(word.startswith("--from=") for word in words)]
    sources = [word for copy in words for word in copy[:-1] if not word.startswith("--")]
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", "--"]
    listed = run([*command, *sources, str(dockerfile)])
    return sorted(path for path in set(listed.split("\0")) if path and (REPOSITORY / path).is_file())


def _stage(inputs: list[str], context: Path) -> None:
    """Create a build context of exactly the files that the tag is computed from."""
    shutil.rmtree(context, ignore_errors=True)
    for path in inputs:
        (context / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(REPOSITORY / path, context / path)


def lend_to_build() -> list[str]:
    """Mount this machine's certificates and pip settings into a build, over files that the base image has anyway."""
    return [word for path, file in machine_files().items() for word in ("--volume", f"{file}:{path}:ro")]


def machine_files() -> dict[str, Path]:
    """Return files of this machine by the path at which builds need them: certificates and pip's settings."""
    listed = subprocess.run([sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True).stdout
    settings = {}
    for line in listed.splitlines():
        key, _, value = line.partition("=")
        settings[key.rpartition(".")[2]] = value.strip("'")
    lent = ("index-url", "extra-index-url", "trusted-host", "proxy", "timeout", "default-timeout", "retries")
    lines = [f"{key} = {settings[key]}" for key in lent if key in settings]
    config = _WORK / "pip.conf"
    config.write_text("\n".join(["[global]", f"cert = {_CA_BUNDLE}", *lines, ""]))
    return {"/etc/pip.conf": config, str(_CA_BUNDLE): _CA_BUNDLE}


def _bud(reference: str, context: Path, dockerfile: Path, options: list[str]) -> None:
    """Run the build and add the result to the layout. Unchanged layers come from buildah's own cache."""
    log = _WORK / "build.log"
    say(f"building {reference} (log: {log})")
    run(buildah("rm", "--all"))
    run_logged(buildah(*BUILD, *options, f"--file={dockerfile}", f"--tag={reference}", str(context)), log)
    say(f"storing {reference}")
    run(buildah("push", reference, f"oci:{oci.LAYOUT}:{reference}"))


def _drop_replaced(current: set[str]) -> None:
    """Remove earlier images from buildah's store; the layers of the current ones stay."""
    for image in json.loads(run(buildah("images", "--json"))):
        stale = [name for name in image.get("names") or [] if name not in current]
        if stale:
            run(buildah("rmi", *stale))


def buildah(*arguments: str | Path, store: Path = _STORE) -> list[str]:
    """Return a command line of buildah, with its images and layers in our own directory."""
    where = ["--root", str(store / "root"), "--runroot", str(store / "run"), "--storage-driver", "overlay"]
    return ["buildah", *where, *map(str, arguments)]


def _short_hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:12]
