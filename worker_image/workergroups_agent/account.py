"""What the executor reports in the GCS's key-value store: that it is alive, and how far launches are."""

import time
import uuid
from collections.abc import Callable, Mapping
from typing import Annotated

from pydantic import AfterValidator, Field

from workergroups.ray_private.gcs import Gcs
from workergroups_agent import records
from workergroups_agent.launch_state import GroupKey, Heard
from workergroups_api.conditions import Explanation
from workergroups_api.model import ApiModel
from workergroups_api.vocabulary import ENDED_LAUNCHES, Container, LaunchState
from workergroups_common.bounded_json import Limits
from workergroups_common.text import plain

NAMESPACE = "workergroups-executor"
HEARTBEAT_LIMITS = Limits(size=1024, depth=4, values=16)
ACCOUNT_LIMITS = Limits(size=8 * 1024 * 1024, depth=8, values=50_000)
MAX_MESSAGE = 1024
# The executor counts as silent if its last heartbeat is older than this. It writes several heartbeats a second.
SILENT_SECONDS = 5.0
# Its first heartbeat comes after the head's raylet has started and the executor has imported Ray.
START_SECONDS = 20.0
SILENCE = (
    "the executor in the head's container does not answer, and nothing new starts until it is restarted: "
    f"see its lines in the log of the head's pod (`kubectl logs`, container {Container.HEAD})"
)

_HEARTBEAT, _ACCOUNT = "heartbeat", "account"


class ExecutorHeartbeat(ApiModel):
    """Written after each look at Ray: if it changes, the executor has looked since."""

    executor: Annotated[str, Field(max_length=64)]
    looks: int
    # The stamp of the orders that it carries out.
    orders: Annotated[str | None, Field(max_length=64)] = None
    # Grows by one with each change of the account.
    account: int = 0


def _only_of_executor(state: LaunchState) -> LaunchState:
    """Refuse what only Ray's records can show, such as that a group is launched: users can write to the GCS."""
    if state is not LaunchState.LAUNCHING and state not in ENDED_LAUNCHES:
        raise ValueError(f"{state} is not a state that the executor may report")
    return state


class LaunchAccount(ApiModel):
    """How far one launch is."""

    uid: Annotated[str, Field(max_length=64)]
    incarnation: int
    state: Annotated[LaunchState, AfterValidator(_only_of_executor)]
    message: str


class Account(ApiModel):
    """All launches that run or did not succeed."""

    launches: tuple[LaunchAccount, ...] = ()


class AccountWriter:
    """Writes heartbeat and account; the executor's side."""

    def __init__(self, gcs: Gcs) -> None:
        self._gcs = gcs
        self._heartbeat = ExecutorHeartbeat(executor=uuid.uuid4().hex, looks=0)
        self._written: Mapping[GroupKey, Explanation] | None = None

    def tell(self, launches: Mapping[GroupKey, Explanation], orders: str | None) -> None:
        """Report that this executor has looked at Ray, and what it knows of launches."""
        account = self._heartbeat.account
        if launches != self._written:
            self._gcs.put(NAMESPACE, _ACCOUNT, records.dump(_account(launches)))
            account += 1
        heartbeat = self._heartbeat.model_copy(
            update={"looks": self._heartbeat.looks + 1, "orders": orders, "account": account}
        )
        self._gcs.put(NAMESPACE, _HEARTBEAT, records.dump(heartbeat))
        self._heartbeat, self._written = heartbeat, launches


class AccountReader:
    """Reads heartbeat and account; the observer's side."""

    def __init__(self, gcs: Gcs, clock: Callable[[], float] = time.monotonic) -> None:
        self._gcs = gcs
        self._clock = clock
        self._heartbeat: ExecutorHeartbeat | None = None
        self._changed = clock()
        self._launches: dict[GroupKey, Explanation] = {}

    @property
    def orders(self) -> str | None:
        """The stamp of the orders that the executor carries out."""
        return self._heartbeat.orders if self._heartbeat else None

    def look(self) -> Heard:
        """Return what the executor reports now."""
        heartbeat = records.read(ExecutorHeartbeat, self._gcs.get(NAMESPACE, _HEARTBEAT), HEARTBEAT_LIMITS)
        before = self._heartbeat
        if heartbeat is not None and heartbeat != before:
            if before is None or (heartbeat.executor, heartbeat.account) != (before.executor, before.account):
                self._launches = self._read_launches()
            self._heartbeat, self._changed = heartbeat, self._clock()
        silent = self._clock() - self._changed > (SILENT_SECONDS if self._heartbeat else START_SECONDS)
        return Heard(self._launches, silence=SILENCE if silent else None)

    def _read_launches(self) -> dict[GroupKey, Explanation]:
        account = records.read(Account, self._gcs.get(NAMESPACE, _ACCOUNT), ACCOUNT_LIMITS) or Account()
        return {
            (each.uid, each.incarnation): Explanation(each.state, plain(each.message, MAX_MESSAGE))
            for each in account.launches
        }


def _account(launches: Mapping[GroupKey, Explanation]) -> Account:
    return Account(
        launches=tuple(
            LaunchAccount(uid=uid, incarnation=number, state=why.reason, message=plain(why.message, MAX_MESSAGE))
            for (uid, number), why in launches.items()
        )
    )
