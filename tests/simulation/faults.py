"""Faults between a client and the API server, which a seed draws or a test chooses."""

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar
from urllib.parse import parse_qsl, urlsplit

WRITES = {"POST", "PUT", "PATCH", "DELETE"}


@dataclass(frozen=True)
class Request:
    """A request as the proxy sees it."""

    client: str
    method: str
    group: str
    plural: str
    namespace: str | None
    name: str | None
    subresource: str | None
    query: dict[str, str]

    @classmethod
    def parse(cls, client: str, method: str, url: str) -> "Request":
        """Parse the URL's path and query."""
        parts = urlsplit(url)
        segments = [segment for segment in parts.path.split("/") if segment]
        group = segments[1] if segments[:1] == ["apis"] and len(segments) > 1 else ""
        rest = segments[3 if segments[:1] == ["apis"] else 2 :]
        namespace = None
        if len(rest) >= 3 and rest[0] == "namespaces":
            namespace, rest = rest[1], rest[2:]
        plural, name, subresource = [*rest, None, None, None][:3]
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        return cls(client, method, group, plural or "", namespace, name, subresource, query)

    @property
    def is_watch(self) -> bool:
        """Whether the answer is a stream of events."""
        return self.query.get("watch", "").lower() in ("true", "1")

    @property
    def is_write(self) -> bool:
        """Whether the request may change something."""
        return self.method in WRITES and "dryRun" not in self.query

    @property
    def may_be_stale(self) -> bool:
        """Whether the client accepts any version, so that an older one is a correct answer."""
        return self.method == "GET" and not self.is_watch and self.query.get("resourceVersion") == "0"

    def __str__(self) -> str:
        path = "/".join(filter(None, (self.plural, self.name, self.subresource)))
        return f"{self.client} {'WATCH' if self.is_watch else self.method} {path}"


@dataclass(frozen=True)
class Refuse:
    """The API server rejects the request, and does nothing."""

    status: int
    reason: str
    message: str
    retry_after: int | None = None

    def body(self) -> bytes:
        """The answer in the API server's words."""
        status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
        details = {"retryAfterSeconds": self.retry_after} if self.retry_after else {}
        return json.dumps(
            status | {"message": self.message, "reason": self.reason, "code": self.status, "details": details}
        ).encode()


@dataclass(frozen=True)
class Cut:
    """The connection ends without an answer, before the API server has the request or after it has performed it."""

    done: bool
    after_seconds: float = 0.0


@dataclass(frozen=True)
class CutBody:
    """The connection ends in the middle of the answer's body, after the request was performed."""


@dataclass(frozen=True)
class Delay:
    """The API server gets the request late; or an event is late, and all later ones."""

    seconds: float


@dataclass(frozen=True)
class Late:
    """The API server has performed the request, and its answer is late."""

    seconds: float


@dataclass(frozen=True)
class Stale:
    """A list is of an earlier version, where the client accepts any."""


@dataclass(frozen=True)
class Repeat:
    """A watch sends an event twice."""


@dataclass(frozen=True)
class Gap:
    """A watch sends nothing for a while, and then reports that its version is too old."""

    seconds: float


@dataclass(frozen=True)
class Close:
    """A watch ends, in the middle of an event's line or between two."""

    in_line: bool


@dataclass(frozen=True)
class Say:
    """The answer, or the rest of a watch, is not from the API server."""

    body: bytes
    content_type: str = "application/json"
    status: int = 200


@dataclass(frozen=True)
class Silence:
    """A watch stays open and sends nothing any more; it breaks off after these seconds."""

    seconds: float


Fault = TypeVar("Fault", bound="RequestFault | WatchFault")
RequestFault = Refuse | Cut | CutBody | Delay | Late | Stale | Say | Silence
WatchFault = Delay | Repeat | Gap | Close | Say | Silence

CONFLICT = Refuse(409, "Conflict", "the object has been modified; please apply your changes to the latest version")
GONE = Refuse(410, "Expired", "too old resource version")
TOO_MANY = Refuse(429, "TooManyRequests", "too many requests, please try again later", retry_after=1)
INTERNAL = Refuse(500, "InternalError", "etcdserver: request timed out")
UNAVAILABLE = Refuse(503, "ServiceUnavailable", "apiserver is shutting down")
WEBHOOK = Refuse(403, "Forbidden", 'admission webhook "no.example.com" denied the request: simulated')
QUOTA = Refuse(403, "Forbidden", "exceeded quota: simulated, requested: count/x=1, used: 1, limited: 1")


def watch_error(refusal: Refuse) -> Say:
    """An error in the middle of a watch, where no HTTP status can be sent any more."""
    return Say(b'{"type":"ERROR","object":' + refusal.body() + b"}\n")


# Faults of a watch other than those of its connection; real API servers, or proxies in front of them, cause each.
WATCH_ERRORS = {
    "no leader": watch_error(Refuse(500, "InternalError", "etcdserver: no leader")),
    "too many": watch_error(TOO_MANY),
    "expired": watch_error(GONE),
    "forbidden": watch_error(Refuse(403, "Forbidden", "watches are forbidden: simulated")),
    "compacted": watch_error(Refuse(500, "", "the server has received too many requests or the revision is compacted")),
    "error without status": Say(b'{"type":"ERROR","object":null}\n'),
    "unknown type": Say(b'{"type":"RENAMED","object":{"metadata":{"name":"x"}}}\n'),
    "no object": Say(b'{"type":"ADDED"}\n'),
    "no metadata": Say(b'{"type":"MODIFIED","object":{"spec":{}}}\n'),
    "bare status": Say(GONE.body()),
    "no JSON": Say(b"<html>Bad gateway</html>", content_type="text/html"),
    "half a line": Say(b'{"type":"ADDED","object":{"metadata":{"na'),
    "depth": Say(b"[" * 100_000 + b"\n"),
    "bytes": Say(bytes(range(1, 256)) + b"\n"),
    "nothing": Say(b""),
}


@dataclass(frozen=True)
class Weather:
    """How often each fault occurs, as a part of all requests or of all events."""

    requests: float = 0.0
    events: float = 0.0


CALM = Weather()


@dataclass
class Rule:
    """A fault that a test chooses for the next requests that match."""

    matches: Callable[[Request], bool]
    fault: RequestFault
    times: int
    hits: int = 0


@dataclass
class Faults:
    """Draws the next fault from a generator."""

    choices: random.Random = field(default_factory=lambda: random.Random(0))
    weather: Weather = CALM
    rules: list[Rule] = field(default_factory=list)
    seen: dict[str, int] = field(default_factory=dict)

    def of_request(self, request: Request) -> RequestFault | None:
        """Return the fault of a request, None for no fault."""
        for rule in self.rules:
            if rule.hits < rule.times and rule.matches(request):
                rule.hits += 1
                return self._noted(rule.fault)
        if self.choices.random() >= self.weather.requests:
            return None
        return self._noted(self._draw(request))

    def _draw(self, request: Request) -> RequestFault:
        common: list[RequestFault] = [
            TOO_MANY,
            INTERNAL,
            UNAVAILABLE,
            Cut(done=False, after_seconds=self.choices.uniform(0.0, 0.5)),
            CutBody(),
            Delay(self.choices.uniform(0.05, 0.6)),
            Late(self.choices.uniform(0.05, 0.6)),
        ]
        if request.is_watch:
            common = [TOO_MANY, INTERNAL, GONE, Cut(done=False), self._watch_error(), self._watch_error()]
        elif request.method in WRITES:
            common += [CONFLICT, WEBHOOK, Cut(done=True, after_seconds=self.choices.uniform(0.0, 0.5)), Cut(done=True)]
        elif request.may_be_stale:
            common += [Stale()] * 4
        return self.choices.choice(common)

    def of_event(self) -> WatchFault | None:
        """Return the fault at an event of a watch."""
        if self.choices.random() >= self.weather.events:
            return None
        choices: list[WatchFault] = [
            Delay(self.choices.uniform(0.05, 0.8)),
            Delay(self.choices.uniform(0.5, 2.0)),
            Repeat(),
            Gap(self.choices.uniform(0.1, 1.5)),
            Close(in_line=True),
            Close(in_line=False),
            self._watch_error(),
            self._watch_error(),
            Silence(self.choices.uniform(1.0, 10.0)),
        ]
        return self._noted(self.choices.choice(choices))

    def _watch_error(self) -> Say:
        return self.choices.choice(list(WATCH_ERRORS.values()))

    def _noted(self, fault: Fault) -> Fault:
        name = f"{fault.status}" if isinstance(fault, Refuse) else type(fault).__name__
        self.seen[name] = self.seen.get(name, 0) + 1
        return fault
