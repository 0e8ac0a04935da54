"""A client of the Debug Adapter Protocol, as far as a prompt needs it."""

from __future__ import annotations

import json
import socket
from dataclasses import dataclass
from typing import Any

from .listening import LOOPBACK

_ANSWER_SECONDS = 60.0
Message = dict[str, Any]


class DebuggerGoneError(ConnectionError):
    """debugpy has closed the connection, or something else listens on the port."""


class RefusedError(Exception):
    """debugpy refuses a request; the message says why."""


@dataclass(frozen=True)
class StackFrame:
    """One call on the stack of the stopped thread."""

    id: int
    name: str
    file: str
    line: int


class Attached:
    """A connection to debugpy. When it is closed, the program continues.

    Args:
        port: The port on this machine's loopback where debugpy, or a tunnel to it, listens.

    Raises:
        DebuggerGoneError: Nothing listens there, or debugpy has another client.
    """

    def __init__(self, port: int) -> None:
        self._number = 0
        self._events: list[Message] = []
        try:
            self._socket = socket.create_connection((LOOPBACK, port), timeout=_ANSWER_SECONDS)
        except OSError as error:
            raise DebuggerGoneError(f"nothing listens on port {port}: {error}") from error
        self._file = self._socket.makefile("rwb")
        try:
            self._attach()
        except (RefusedError, TimeoutError) as error:
            self._socket.close()
            raise DebuggerGoneError(f"debugpy on port {port} does not accept the connection: {error}") from error

    def ask(self, command: str, **arguments: Any) -> Message:
        """Send a request; return the body of the answer.

        Raises:
            RefusedError: debugpy refuses the request.
            DebuggerGoneError: debugpy does not answer.
        """
        return self._answer(self._send(command, **arguments))

    def event(self, *names: str) -> Message:
        """Return the next event that has one of these names."""
        for event in self._events:
            if event["event"] in names:
                self._events.remove(event)
                return event
        while True:
            message = self._read()
            if message["type"] == "event" and message["event"] in names:
                return message
            if message.get("success") is False:
                raise RefusedError(_reason(message))
            self._keep(message)

    def wait_until_stopped(self) -> int | None:
        """Wait, without a deadline, until a thread stops; return its number, ``None`` if the program ends instead."""
        self._socket.settimeout(None)
        event = self.event("stopped", "terminated", "exited")
        self._socket.settimeout(_ANSWER_SECONDS)
        return int(event["body"]["threadId"]) if event["event"] == "stopped" else None

    def frames(self, thread: int) -> list[StackFrame]:
        """Return the stack of a stopped thread, the innermost call first."""
        found = self.ask("stackTrace", threadId=thread)["stackFrames"]
        return [
            StackFrame(each["id"], each["name"], (each.get("source") or {}).get("path", "?"), each["line"])
            for each in found
        ]

    def evaluate(self, code: str, frame: StackFrame) -> str:
        """Evaluate an expression in a frame and return its value as text, or execute a statement there.

        Raises:
            RefusedError: The code raises an exception, which is the message.
        """
        return str(self.ask("evaluate", expression=code, frameId=frame.id, context="repl")["result"])

    def close(self) -> None:
        """Disconnect. The program continues without the breakpoints that this client has set."""
        try:
            self.ask("disconnect", terminateDebuggee=False)
        except (OSError, RefusedError):
            pass  # debugpy is gone
        finally:
            self._socket.close()

    def _attach(self) -> None:
        self.ask("initialize", adapterID="workergroups", pathFormat="path")
        attach = self._send("attach", justMyCode=False)
        self.event("initialized")
        self.ask("setExceptionBreakpoints", filters=[])
        self.ask("configurationDone")
        self._answer(attach)

    def _send(self, command: str, **arguments: Any) -> int:
        self._number += 1
        message = {"seq": self._number, "type": "request", "command": command, "arguments": arguments}
        body = json.dumps(message).encode()
        self._file.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self._file.flush()
        return self._number

    def _answer(self, number: int) -> Message:
        while True:
            message = self._read()
            if message["type"] == "response" and message["request_seq"] == number:
                if not message["success"]:
                    raise RefusedError(_reason(message))
                return dict(message.get("body") or {})
            self._keep(message)

    def _keep(self, message: Message) -> None:
        if message["type"] == "event" and message["event"] != "output":
            self._events.append(message)

    def _read(self) -> Message:
        length = 0
        while line := self._file.readline().strip():
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        body = self._file.read(length)
        if not body:
            raise DebuggerGoneError("debugpy has closed the connection: another debugger may be attached")
        message: Message = json.loads(body)
        return message


def _reason(refusal: Message) -> str:
    if said := refusal.get("message"):
        return str(said)
    command = refusal.get("command", "a command")
    return f"debugpy refuses {command!r} and does not say why: leave, and attach again"
