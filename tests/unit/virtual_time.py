"""An event loop whose time goes by only while everybody sleeps, and then at once."""

import asyncio
import heapq


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    now = 0.0

    def time(self):
        return self.now

    def _run_once(self):
        # As asyncio does, which otherwise would really wait until what comes after a timer that was cancelled.
        while self._scheduled and self._scheduled[0].cancelled():
            self._timer_cancelled_count -= 1
            heapq.heappop(self._scheduled)._scheduled = False
        if not self._ready and self._scheduled:
            self.now = max(self.now, self._scheduled[0].when())
        super()._run_once()


def run(scenario):
    """The coroutine's result; hours of it pass in milliseconds."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(scenario)


def now():
    """Seconds of virtual time since the scenario began."""
    return asyncio.get_running_loop().time()
