"""The cluster's part of README.md does what it says, with the chart's archive and the wheel."""

import shlex

import pytest

from tests.cluster.kubectl import kubectl, new_namespace
from tests.unit.docs.pages import blocks, commands
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
    """A home directory with a kubeconfig, where the page's command line is installed."""
    config = clean_place.directory / ".kube" / "config"
    config.parent.mkdir()
    config.write_text(kubectl("config", "view", "--raw", "--flatten", "--minify"))
    kubectl("config", "set-context", "--current", f"--namespace={namespace.name}", f"--kubeconfig={config}")
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


def test_its_commands_lead_to_ranks_that_answer(place):
    _, init, up, ask, *_ = (shlex.split(command, comments=True) for command in of_page(commands("workergroups ")))
    (said,) = (line[2:] for text in of_page(blocks("sh")) for line in text.splitlines() if line.startswith("# ["))
    place.run(*init)
    place.run(*up, "--yes", f"--timeout={SECONDS}s")
    assert place.run(*ask).strip() == said
