"""How long devices of pools were in each state, since this process serves."""

import time
from collections.abc import Callable, Mapping
from threading import Lock
from typing import NamedTuple

from workergroups_operator.status.devices import DeviceState

# Prometheus counts nothing of a counter's first value: so each begins with zero.
_NOTHING: Mapping[str, float] = dict.fromkeys(DeviceState, 0.0)


class _Account(NamedTuple):
    """What a pool has spent until `since`, and in which states its devices are from then on."""

    since: float
    devices: Mapping[str, int]
    spent: Mapping[str, float]

    def at(self, now: float) -> Mapping[str, float]:
        """Return the seconds of devices in each state until now."""
        return {state: spent + self.devices.get(state, 0) * (now - self.since) for state, spent in self.spent.items()}


class DeviceSeconds:
    """An account for each pool. Scrapes read them in another thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._accounts: dict[tuple[str, str], _Account] = {}
        # A clock that is read before another thread books would let a counter go back, which Prometheus takes for a
        # new one: it would count everything twice.
        self._lock = Lock()

    def note(self, namespace: str, pool: str, devices: Mapping[str, int] | None) -> None:
        """Take note of how many devices of a pool are in each state from now on; None if it is not known."""
        with self._lock:
            account, now = self._accounts.get((namespace, pool)), self._clock()
            if account is None:
                if devices:
                    self._accounts[namespace, pool] = _Account(now, devices, _NOTHING)
                return
            if devices is None:
                pending = account.devices.get(DeviceState.PENDING, 0)
                held = sum(account.devices.values()) - pending
                devices = {DeviceState.PENDING: pending, DeviceState.UNKNOWN: held}
            if account.devices != devices:
                self._accounts[namespace, pool] = _Account(now, devices, account.at(now))

    def forget(self, namespace: str, pool: str) -> None:
        """Forget a pool that is gone."""
        with self._lock:
            self._accounts.pop((namespace, pool), None)

    def spent(self) -> list[tuple[tuple[str, str, str], float]]:
        """Return namespace, pool and state with the seconds of devices."""
        with self._lock:
            now = self._clock()
            accounts = {key: account.at(now) for key, account in self._accounts.items()}
        return [((*key, state), seconds) for key, spent in accounts.items() for state, seconds in spent.items()]
