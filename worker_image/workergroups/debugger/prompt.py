"""A prompt with pdb's commands for a paused rank: ``python -m workergroups.debugger.prompt PORT``.

It talks to debugpy as an editor does. pdb itself cannot trace a program together with debugpy.
"""

from __future__ import annotations

import ast
import cmd
import sys

from .dap import Attached, DebuggerGoneError, RefusedError, StackFrame

_LINES_AROUND = 5


def talk(port: int, name: str = "rank") -> None:
    """Attach, and carry out commands until the user leaves or the rank continues.

    Args:
        port: The port on this machine's loopback.
        name: The name that the prompt shows.

    Raises:
        DebuggerGoneError: Nothing listens there.
    """
    session = Attached(port)
    try:
        Prompt(session, name).run()
    except KeyboardInterrupt:
        print()
    finally:
        session.close()


class Prompt(cmd.Cmd):
    """pdb's commands: h, w, u, d, l, p, pp, a, b, cl, n, s, r, c, q. Anything else is Python.

    Args:
        session: A connection to a program that is stopped, or about to stop.
        name: The name that the prompt shows.
    """

    def __init__(self, session: Attached, name: str) -> None:
        super().__init__()
        self.prompt = f"({name}) "
        self._session = session
        self._thread = 0
        self._frames: list[StackFrame] = []
        self._at = 0
        self._breakpoints: dict[str, list[int]] = {}

    def run(self) -> None:
        """Carry out commands until the user leaves, or the program ends or continues without breakpoints."""
        if self._stops():
            self.cmdloop()

    def default(self, line: str) -> None:
        """Run the line as Python in the current frame."""
        self._evaluate(line.removeprefix("!"))

    def emptyline(self) -> bool:
        """Do nothing: repeating the last command could step too far, which cannot be undone."""
        return False

    def do_p(self, arg: str) -> None:
        """p EXPRESSION: print its value."""
        self._evaluate(arg)

    def do_pp(self, arg: str) -> None:
        """pp EXPRESSION: pretty-print its value."""
        text = self._value(f"__import__('pprint').pformat({arg})")
        print(ast.literal_eval(text) if text else "")

    def do_a(self, _arg: str) -> None:
        """a: print the names in the frame and their values."""
        scope = self._session.ask("scopes", frameId=self._frame.id)["scopes"][0]
        for each in self._session.ask("variables", variablesReference=scope["variablesReference"])["variables"]:
            if each.get("type") and not each["name"].endswith(" variables"):
                print(f"{each['name']} = {each['value']}")

    def do_w(self, _arg: str) -> None:
        """w: print the stack, the innermost call last; an arrow marks the current frame."""
        for number in range(len(self._frames) - 1, -1, -1):
            self._show(number)

    def do_u(self, _arg: str) -> None:
        """u: move to the caller's frame."""
        self._look_at(self._at + 1)

    def do_d(self, _arg: str) -> None:
        """d: move to the frame that was called."""
        self._look_at(self._at - 1)

    def do_l(self, _arg: str) -> None:
        """l: print the source around the current line."""
        frame = self._frame
        text = self._value(f"__import__('linecache').getlines({frame.file!r})")
        lines = ast.literal_eval(text) if text else []
        first = max(1, frame.line - _LINES_AROUND)
        for number, line in enumerate(lines[first - 1 : frame.line + _LINES_AROUND], first):
            print(f"{number:5d} {'->' if number == frame.line else '  '} {line.rstrip()}")

    def do_b(self, arg: str) -> None:
        """b [[FILE:]LINE]: set a breakpoint; without a line, list the breakpoints."""
        file, _, line = arg.rpartition(":")
        if not arg:
            for path, lines in self._breakpoints.items():
                print("\n".join(f"{path}:{line}" for line in lines))
        elif not line.isdecimal():
            print("write b LINE, or b FILE:LINE with the file as `w` shows it")
        else:
            path = file or self._frame.file
            self._set_breakpoints(path, [*self._breakpoints.get(path, []), int(line)])

    def do_cl(self, _arg: str) -> None:
        """cl: clear all breakpoints."""
        for path in list(self._breakpoints):
            self._set_breakpoints(path, [])

    def do_n(self, _arg: str) -> bool:
        """n: execute this line."""
        return self._go_on("next")

    def do_s(self, _arg: str) -> bool:
        """s: execute this line, and stop in a function that it calls."""
        return self._go_on("stepIn")

    def do_r(self, _arg: str) -> bool:
        """r: continue until this function returns."""
        return self._go_on("stepOut")

    def do_c(self, _arg: str) -> bool:
        """c: continue to the next breakpoint that was set here; if there is none, leave."""
        if not self._breakpoints:
            return True
        print("continuing to the next breakpoint; Ctrl-C leaves")
        return self._go_on("continue")

    def do_q(self, _arg: str) -> bool:
        """q: leave; the rank continues."""
        return True

    do_EOF = do_exit = do_quit = do_q
    do_cont = do_continue = do_c
    do_where = do_bt = do_w
    do_h = cmd.Cmd.do_help
    do_next, do_step, do_return, do_up, do_down, do_list = do_n, do_s, do_r, do_u, do_d, do_l
    do_break, do_clear, do_args = do_b, do_cl, do_a

    @property
    def _frame(self) -> StackFrame:
        return self._frames[self._at]

    def _go_on(self, how: str) -> bool:
        """Continue in that way; return whether the program has ended."""
        self._session.ask(how, threadId=self._thread)
        return not self._stops()

    def _stops(self) -> bool:
        """Wait until the program stops, and show where; return False if it has ended."""
        thread = self._session.wait_until_stopped()
        if thread is None:
            return False
        self._thread, self._frames = thread, self._session.frames(thread)
        self._look_at(0)
        return True

    def _look_at(self, number: int) -> None:
        if not 0 <= number < len(self._frames):
            print("there is no further frame")
            return
        self._at = number
        self._show(number)

    def _show(self, number: int) -> None:
        frame = self._frames[number]
        print(f"{'>' if number == self._at else ' '} {frame.file}({frame.line}){frame.name}()")
        line = self._value(f"__import__('linecache').getline({frame.file!r}, {frame.line})")
        if line:
            print(f"-> {ast.literal_eval(line).strip()}")

    def _evaluate(self, code: str) -> None:
        if text := self._value(code):
            print(text)

    def _value(self, code: str) -> str:
        """Return the value; if the code raises an exception, print that and return an empty text."""
        try:
            return self._session.evaluate(code, self._frame)
        except RefusedError as error:
            print(f"*** {str(error).strip().splitlines()[-1]}")
            return ""

    def _set_breakpoints(self, path: str, lines: list[int]) -> None:
        wanted = [{"line": line} for line in lines]
        answers = self._session.ask("setBreakpoints", source={"path": path}, breakpoints=wanted)["breakpoints"]
        for answer in answers:
            if not answer["verified"]:
                print(f"*** {answer.get('message', 'no program line is there')}")
        kept = [line for line, answer in zip(lines, answers, strict=True) if answer["verified"]]
        self._breakpoints = {**self._breakpoints, path: kept} if kept else _without(self._breakpoints, path)


def _without(breakpoints: dict[str, list[int]], path: str) -> dict[str, list[int]]:
    return {each: lines for each, lines in breakpoints.items() if each != path}


if __name__ == "__main__":
    try:
        talk(int(sys.argv[1]))
    except DebuggerGoneError as gone:
        sys.exit(str(gone))
