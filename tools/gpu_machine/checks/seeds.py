"""The seeds' programs on CUDA: on nodes for which nothing is reserved, and on the bundles of two pools."""

from tools.gpu_machine.checks import pods
from tools.gpu_machine.checks.site import Site


def check(site: Site) -> None:
    """Run them."""
    pods.clear(site.kubectl)
    pods.apply(site, site.pool("gpu", reservation="None"))
    pods.until_ready(site, "resourcepool/gpu")
    half = str(site.gpus // 2)
    for name, arguments in (("seed_000", (half,)), ("seed_001", ()), ("seed_002", ())):
        _run(site, name, *arguments)
    pods.clear(site.kubectl)
    names = ("green", "red")
    pods.apply(site, *(site.pool(name, gpus=site.gpus // 2, clusterName="seeds") for name in names))
    for name in names:
        pods.until_ready(site, f"resourcepool/{name}")
    _run(site, "bundles")
    pods.clear(site.kubectl)


def _run(site: Site, name: str, *arguments: str) -> None:
    well, printed = pods.run_program(site, name, *arguments)
    site.say(printed)
    site.say.row(f"{name} runs on CUDA", well, printed.splitlines()[-1])
