"""The cluster's part of README.md does what it says, with the chart's archive, the wheel and the example."""

import re
import shlex
import shutil

import pytest

from tests.cluster.kubectl import kubectl, new_namespace
from tests.release.conftest import REPOSITORY
from tests.unit.docs.pages import blocks, commands, inline
from tools.console import run

PAGE = "README.md"
SECONDS = 240


def of_page(samples):
    return [sample.text for sample in samples if sample.page == PAGE]


@pytest.fixture(scope="module")
def namespace():
    with new_namespace("first") as namespace:
        yield namespace


@pytest.fixture
def place(namespace, released, clean_place):
    """A home directory with a kubeconfig, where the page's command line is installed, and its example lies."""
    config = clean_place.directory / ".kube" / "config"
    config.parent.mkdir()
    config.write_text(kubectl("config", "view", "--raw", "--flatten", "--minify"))
    kubectl("config", "set-context", "--current", f"--namespace={namespace.name}", f"--kubeconfig={config}")
    shutil.copytree(REPOSITORY / "examples" / "quickstart", clean_place.directory / "examples" / "quickstart")
    (wheel,) = released.glob("*.whl")
    clean_place.install(f"{wheel}[cli]")
    return clean_place


def test_its_helm_commands_upgrade_and_try_the_operator(released):
    (chart,) = released.glob("workergroups-*.tgz")
    (upgrade,) = of_page(commands("helm upgrade --install"))
    words = [str(chart) if word == "charts/workergroups" else word for word in shlex.split(upgrade)]
    # The images that the cluster has, instead of those of a registry.
    cut = words.index("--set")
    assert set(words[cut::2]) == {"--set"}
    run([*words[:cut], "--reuse-values", "--wait", "--timeout=180s"])
    (tried,) = of_page(commands("helm test"))
    assert "Phase:          Succeeded" in run(shlex.split(tried))


def test_its_manifest_becomes_what_it_shows_and_its_driver_prints_what_it_says(namespace, place):
    (manifest,) = of_page(blocks("yaml"))
    code = place.directory / "examples" / "quickstart" / "accumulator.py"
    namespace.run("create", "configmap", "quickstart-code", f"--from-file={code}")
    namespace.run("apply", "--filename=-", stdin=manifest)
    for kind in ("resourcepool", "workergroup"):
        namespace.run("wait", "--for=condition=Ready", f"{kind}/quickstart", f"--timeout={SECONDS}s", timeout=SECONDS)

    (shown,) = (text for text in of_page(blocks("console")) if text.startswith("$ kubectl get "))
    command, _, table = shown.partition("\n")
    got = namespace.run(*shlex.split(command)[2:])
    assert without_ages(got) == without_ages(table)

    *_, program = of_page(blocks("python"))
    (expected,) = re.findall(r"print\(.*\)  # (.*)", program)
    (submit,) = of_page(inline("workergroups job submit quickstart --working-dir"))
    assert "[1.0, 2.0, 3.0, 4.0]" in place.run(*shlex.split(submit))
    (place.directory / "examples" / "quickstart" / "driver.py").write_text(
        f"import workergroups\nworkergroups.attach('quickstart').reset()\n{program}"
    )
    assert expected in place.run(*shlex.split(submit)).splitlines()


def without_ages(table):
    return [line.split()[:-1] for line in table.splitlines() if line.strip()]
