"""Let the operator read without end; fail if its memory rises: `python -m tests.soak --minutes=10 --clusters=12`."""

import argparse
import asyncio
import random
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import aiohttp

from tests.simulation.control_plane import Access, control_plane
from tests.simulation.program import Program
from tests.simulation.scene import Scene
from tests.soak.etcd import Etcd
from tests.soak.memory import Sample, rise_mib, rises
from tests.soak.page import page
from tests.soak.storm import Storm
from tools.console import end_when_told
from workergroups_api.manifest import RESOURCE_POOL, WORKER_GROUP

NAMESPACE = "soak"
READY_SECONDS = 300.0


def main() -> int:
    """Run the soak; return 1 if memory rises."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10, help="how long, after all clusters run")
    parser.add_argument("--clusters", type=int, default=12, help="how many clusters run")
    parser.add_argument("--page", type=Path, help="write what was seen to this file")
    arguments = parser.parse_args()
    end_when_told()
    with control_plane() as access:
        samples = asyncio.run(soak(access, arguments.clusters, arguments.minutes * 60))
    if arguments.page:
        arguments.page.write_text(page(samples, arguments.clusters))
    return tell(samples)


async def soak(access: Access, clusters: int, seconds: float) -> list[Sample]:
    """Start clusters, let the storm blow, and look at the operator's memory a hundred times."""
    names = [f"c{number}" for number in range(clusters)]
    choices = random.Random(0)
    with tempfile.TemporaryDirectory(prefix="soak-") as directory:
        async with aiohttp.ClientSession() as session, Scene.open(access, NAMESPACE, choices) as scene:
            program = Program([NAMESPACE], Path(directory) / "operator.log")
            scene.operator = program.start()
            await _start(scene, names)
            # From now on the storm renews their Leases. A hundred reporters would leave it no time.
            await scene.world.end_agents()
            storm = Storm(scene, Etcd(access.etcd, session), names, choices)
            blowing = asyncio.create_task(storm.blow())
            try:
                samples = [sample async for sample in _looks(program, storm, seconds)]
                if blowing.done():
                    await blowing  # What ended it is why nothing was read any more.
                if idle := storm.idle():
                    raise RuntimeError(f"never happened: {', '.join(idle)}")
                return samples
            finally:
                blowing.cancel()
                await asyncio.gather(blowing, return_exceptions=True)


async def _start(scene: Scene, names: Sequence[str]) -> None:
    for name in names:
        await scene.pool(name)
        await scene.group(name)
    for name in names:
        await scene.ready(RESOURCE_POOL, name, seconds=READY_SECONDS)
        await scene.ready(WORKER_GROUP, name, seconds=READY_SECONDS)


async def _looks(program: Program, storm: Storm, seconds: float) -> AsyncIterator[Sample]:
    began = time.monotonic()
    for number in range(1, 101):
        await asyncio.sleep(max(0.0, began + seconds * number / 100 - time.monotonic()))
        if program.failure:
            raise program.failure
        sample = Sample(time.monotonic() - began, dict(storm.writes), program.resident_mib())
        if number % 5 == 0:
            print(f"{sample.seconds:6.0f} s: {sample.events:7} events, {sample.resident_mib:6.1f} MiB", flush=True)
        yield sample


def tell(samples: Sequence[Sample]) -> int:
    """Print what was seen; return 1 if memory rises."""
    last = samples[-1]
    print(", ".join(f"{count} {name}" for name, count in sorted(last.writes.items())))
    print(f"the operator's memory rose by {rise_mib(samples):.1f} MiB in the second half of {last.events} events")
    return 1 if rises(samples) else 0


if __name__ == "__main__":
    sys.exit(main())
