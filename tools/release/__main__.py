"""The command line behind `make release`."""

import argparse
import shutil
import sys
from pathlib import Path

from tools.console import REPOSITORY, ToolError, say
from tools.release import checksums, images, notes, packages, plugin, version


def main() -> int:
    """Run the release; print a failure as one message."""
    parser = argparse.ArgumentParser(prog="python -m tools.release", description=__doc__)
    parser.add_argument("version", nargs="?", help="three numbers, such as 0.2.0; default for a dry run: as it is")
    parser.add_argument("--dry-run", action="store_true", help="build the checkout as it is, and change nothing in it")
    parser.add_argument("--without-images", action="store_true", help="build no images, and no bills of materials")
    parser.add_argument("--to", type=Path, default=REPOSITORY / "dist", help="directory that is replaced")
    arguments = parser.parse_args()
    try:
        _release(arguments)
    except ToolError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def _release(arguments: argparse.Namespace) -> None:
    released, directory = arguments.version or version.current(), arguments.to.resolve()
    if arguments.dry_run:
        version.refuse_other_than_current(released)
    else:
        version.refuse_unless_new(arguments.version)
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    (directory / "release-notes.md").write_text(notes.draft(released))
    if not arguments.dry_run:
        version.change(released)
        notes.move_to_changelog(released)
    _build(released, directory, with_images=not arguments.without_images)
    say(f"{directory} has version {released}")
    if not arguments.dry_run:
        say(f"review `git diff HEAD`, commit it as version {released}, and go on as docs/releasing.md says")


def _build(released: str, directory: Path, *, with_images: bool) -> None:
    packages.build_python(directory)
    packages.package_chart(directory)
    plugin.package(released, directory)
    if with_images:
        images.build(released, directory)
    checksums.write(directory)


if __name__ == "__main__":
    sys.exit(main())
