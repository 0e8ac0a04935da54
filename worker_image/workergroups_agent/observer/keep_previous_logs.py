"""Keep the last lines of each rank that dies, for `workergroups logs --previous`: its log may vanish with its pod."""

import logging
import re
import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from workergroups.naming import RankName
from workergroups_agent.files import UnreadableFile
from workergroups_agent.observer.printed_lines import Tails
from workergroups_agent.observer.report import failure_of
from workergroups_agent.previous_logs import Key, PreviousLogs, now
from workergroups_agent.ray_state import RankActor, RayState
from workergroups_api.report import MAX_FAILURES, MAX_LAST_WORDS, DeadRank, LastWords, RankFailure
from workergroups_api.vocabulary import RankEnd
from workergroups_common.text import plain

LOGGER = logging.getLogger(__name__)

# A death is known before Ray's log monitor has read everything that the process wrote.
SETTLE_SECONDS = 5.0
# A group can be out of the plan for a while without being deleted.
GONE_SECONDS = 600.0
TIDY_SECONDS = 30.0
# A look at Ray that ends this long after the head was lost has found it again.
FOUND_SECONDS = 2.0

# How the words of a crash begin: C++, then faulthandler.
_CRASHES = (b"terminate called ", b"Fatal Python error: ")
# The lines of a traceback that only underline the line above.
_UNDERLINES = re.compile(rb"(?m)^[ ~]*\^[~^ ]*$")
# Of a text whose beginning is left out.
_CUT = "... "
_HEAD_LOST_MESSAGE = "the agent lost the connection to Ray's head, with which all ranks end"


@dataclass
class _Dying:
    """A rank whose death is known, and whose last lines may not all have arrived."""

    rank: RankActor
    died: datetime
    until: float
    written: tuple[DeadRank, bytes] | None = None


class PreviousLogKeeper:
    """Writes what dead ranks printed last; call it after each look at Ray, and when Ray's head is lost."""

    def __init__(self, lines: PreviousLogs, tails: Tails, clock: Callable[[], float] = time.monotonic) -> None:
        self._lines, self._tails, self._clock = lines, tails, clock
        self._state: RayState | None = None
        self._dead: set[RankName] = set()
        self._dying: dict[RankName, _Dying] = {}
        # When Ray's head is lost, its ranks end, and soon this process: lines are written at once, and removed again if
        # the head still runs.
        # If the rank had died before, with an earlier birth, what was kept of that comes back instead.
        self._presumed_dead: dict[Key, tuple[DeadRank, bytes] | None] = {
            key: None for key in lines.kept() if self._is_presumed(key)
        }
        self._lost = -FOUND_SECONDS
        # Since when a group whose lines are kept has not been planned, by UID.
        self._unplanned: dict[str, float] = {}
        self._tidied = -TIDY_SECONDS
        # By group UID; replaced when a group's change, so that a reader sees whether they have.
        self._last_words: dict[str, tuple[LastWords, ...]] = {}
        self._lock = threading.Lock()
        try:
            lines.begin()
        except OSError as error:
            LOGGER.warning("cannot keep last lines of ranks: %s", error.strerror)

    def look(self, state: RayState) -> None:
        """Learn which ranks have died, and write the lines of theirs that have arrived since."""
        with self._lock:
            if self._state is None or state.ranks is not self._state.ranks:
                self._learn(state, is_first=self._state is None)
            self._state = state
            self._take_back(state)
            news = [self._keep(dying, state) for dying in self._dying.values()]
            if any(news):
                self._lines.make_room()
            time_now = self._clock()
            self._dying = {name: dying for name, dying in self._dying.items() if time_now < dying.until}

    def last_words(self) -> Mapping[str, tuple[LastWords, ...]]:
        """Return what the latest dead ranks of each group printed last, by the group's UID."""
        return dict(self._last_words)

    def lose_head(self) -> None:
        """Write what living ranks have printed, as the GCS does not answer. The listener's thread calls this."""
        with self._lock:
            if self._state is None:
                return
            self._lost = self._clock()
            for rank in self._state.ranks:
                if rank.is_alive and rank.process is not None:
                    self._presume_dead(rank, self._state.pods.get(rank.node_id))
            self._lines.make_room()

    def forget_but(self, planned: Collection[str]) -> None:
        """Remove the lines of groups whose UIDs have not been among these for a while."""
        time_now = self._clock()
        if time_now - self._tidied < TIDY_SECONDS:
            return
        self._tidied = time_now
        self._last_words = {uid: words for uid, words in self._last_words.items() if uid in planned}
        with self._lock:
            kept = self._lines.kept()
            unplanned = {uid for uid, _, _ in kept}.difference(planned)
            self._unplanned = {uid: self._unplanned.get(uid, time_now) for uid in unplanned}
            for key in kept:
                if time_now - self._unplanned.get(key[0], time_now) > GONE_SECONDS:
                    self._lines.remove(key)

    def _learn(self, state: RayState, *, is_first: bool) -> None:
        dead = {rank.name: rank for rank in state.ranks if not rank.is_alive}
        if not is_first:  # nothing was heard of ranks that died earlier
            for name in dead.keys() & self._dying.keys():  # that the node had no memory is known a moment later
                self._dying[name].rank = replace(self._dying[name].rank, death=dead[name].death)
            died = now()
            for name in dead.keys() - self._dead:
                self._dying[name] = _Dying(dead[name], died, self._clock() + SETTLE_SECONDS)
        self._dead = set(dead)
        listened_to = [rank for rank in state.ranks if rank.is_alive or rank.name in self._dying]
        self._tails.claim({rank.process for rank in listened_to if rank.process is not None})

    def _keep(self, dying: _Dying, state: RayState) -> bool:
        """Write the rank's lines if they have changed; return whether they have."""
        dead = _dead_rank(dying.rank.name, failure_of(dying.rank, state), dying.died)
        known = dead, self._text(dying.rank)
        if known == dying.written:
            return False
        dying.written = known
        self._presumed_dead.pop(_key(dying.rank.name), None)
        self._write(*known)
        self._note(*known)
        return True

    def _note(self, dead: DeadRank, text: bytes) -> None:
        """Remember the end of what the rank printed, unless it was ended on purpose, as all are that are recreated."""
        end = last_words(text)
        if dead.reason == RankEnd.REMOVED or not end:
            return
        new = LastWords(incarnation=dead.incarnation, rank=dead.rank, birth=dead.birth, text=end)
        others = (each for each in self._last_words.get(dead.uid, ()) if _death(each) != _death(new))
        latest = sorted((*others, new), key=lambda each: (-each.incarnation, -(each.birth or 0), each.rank))
        self._last_words[dead.uid] = tuple(latest[:MAX_FAILURES])

    def _presume_dead(self, rank: RankActor, pod: str | None) -> None:
        name, why = rank.name, RankEnd.HEAD_LOST
        failure = RankFailure(rank=name.rank, birth=name.birth or None, reason=why, message=_HEAD_LOST_MESSAGE, pod=pod)
        if _key(name) not in self._presumed_dead:
            self._presumed_dead[_key(name)] = self._read(_key(name))
        self._write(_dead_rank(name, failure, now()), self._text(rank))

    def _take_back(self, state: RayState) -> None:
        if self._presumed_dead and self._clock() - self._lost > FOUND_SECONDS:
            living = {_key(rank.name) for rank in state.ranks if rank.is_alive}
            for key in self._presumed_dead.keys() & living:
                before = self._presumed_dead[key]
                if before is None:
                    self._lines.remove(key)
                else:
                    self._write(*before)
            self._presumed_dead = {}

    def _is_presumed(self, key: Key) -> bool:
        found = self._read(key)
        return found is not None and found[0].reason == RankEnd.HEAD_LOST

    def _read(self, key: Key) -> tuple[DeadRank, bytes] | None:
        try:
            return self._lines.read(key)
        except UnreadableFile:
            return None

    def _text(self, rank: RankActor) -> bytes:
        return self._tails.text(rank.process) if rank.process is not None else b""

    def _write(self, dead: DeadRank, text: bytes) -> None:
        try:
            self._lines.write(dead, text)
        except OSError as error:
            LOGGER.warning("cannot keep the last lines of a rank: %s", error.strerror)


def last_words(text: bytes) -> str:
    """Return the end of a text, from the beginning of a word, without what a status cannot hold.

    If the process crashed, return what it said of that: the list of modules that faulthandler appends is longer.
    """
    text = _UNDERLINES.sub(b"", text)
    for crash in _CRASHES:
        if (at := text.rfind(crash)) >= 0:
            return plain(text[at:].partition(b"\nExtension modules: ")[0].decode(errors="replace"), MAX_LAST_WORDS)
    end = text[-4 * MAX_LAST_WORDS :].decode(errors="replace").strip()
    if len(end) > MAX_LAST_WORDS:
        _, *rest = end[-(MAX_LAST_WORDS - len(_CUT)) :].split(maxsplit=1)
        end = _CUT + rest[0] if rest else end[-MAX_LAST_WORDS:]
    return plain(end, MAX_LAST_WORDS)


def _death(words: LastWords) -> tuple[int, int, int | None]:
    """Return what tells a death from all others of the group."""
    return words.incarnation, words.rank, words.birth


def _key(name: RankName) -> Key:
    return name.uid, name.incarnation, name.rank


def _dead_rank(name: RankName, failure: RankFailure, died: datetime) -> DeadRank:
    return DeadRank(uid=name.uid, incarnation=name.incarnation, died=died, **failure.model_dump())
