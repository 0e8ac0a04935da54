"""What a dry run of `make release` leaves."""

import subprocess
import sys
import tarfile

from tests.release.conftest import REPOSITORY
from tests.unit.chart.helm import IMAGES
from tools.release import version


def test_it_consists_of_these_files(released):
    now = version.current()
    assert {path.name for path in released.iterdir()} == {
        "SHA256SUMS",
        "release-notes.md",
        f"kubectl-workergroups-{now}.tar.gz",
        f"workergroups-{now}-py3-none-any.whl",
        f"workergroups-{now}.tar.gz",
        f"workergroups-{now}.tgz",
        "workergroups.yaml",
    }


def test_the_checksums_are_those_of_all_files(released):
    said = subprocess.run(
        ["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=released, capture_output=True, text=True, check=True
    )
    assert len(said.stdout.splitlines()) == len(list(released.iterdir())) - 1


def test_the_source_distribution_is_enough_to_work_on_it(released):
    (sources,) = released.glob("workergroups-*.tar.gz")
    with tarfile.open(sources) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    listed = subprocess.run(["git", "ls-files"], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert set(listed.stdout.splitlines()) - names == set()


def test_the_charts_archive_installs_this_version(released, helm):
    (chart,) = released.glob("*.tgz")
    rendered = helm.run("template", "release", chart, *IMAGES)
    assert f"helm.sh/chart: workergroups-{version.current()}\n" in rendered
    assert "kind: CustomResourceDefinition\n" in rendered


def test_the_notes_are_the_fragments(released):
    notes = (released / "release-notes.md").read_text()
    assert notes.startswith(f"## {version.current()}\n")
    fragment = next(iter(sorted((REPOSITORY / "changelog.d").glob("*.added.md"))), None)
    if fragment is not None:
        assert fragment.read_text().splitlines()[0] in notes


def test_a_dry_run_of_another_version_is_refused(tmp_path):
    command = [sys.executable, "-m", "tools.release", "9.9.9", "--dry-run", f"--to={tmp_path}/dist"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
    assert (done.returncode, (tmp_path / "dist").exists()) == (1, False)
    assert f"a dry run builds {version.current()}" in done.stderr
