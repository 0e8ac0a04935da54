"""The command as a user's machine has it, in one namespace."""

import json
import os
import subprocess
import sys

SECONDS = 240


class CommandLine:
    """The command in one namespace, with a folder of its own."""

    def __init__(self, namespace, folder):
        self.namespace, self.folder = namespace, folder

    def start(self, *words, **more):
        """Run it; output and errors are one text, unless told otherwise."""
        index = words.index("--") if "--" in words else len(words)
        command = [*words[:index], "-n", self.namespace.name, *words[index:]]
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "cwd": self.folder}
        return subprocess.Popen([sys.executable, "-m", "workergroups_cli", *command], **options | more)

    def __call__(self, *words, code=0, input=None, **more):
        """Run it to its end, with what is typed into it, and return what it prints."""
        typed = {} if input is None else {"stdin": subprocess.PIPE}
        with self.start(*words, **typed, **more) as process:
            try:
                printed, _ = process.communicate(input, timeout=SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
        assert process.returncode == code, printed
        return printed

    def json(self, *words, code=0):
        """The same for what it prints for scripts."""
        return json.loads(self(*words, "-o", "json", code=code, stderr=subprocess.DEVNULL))

    def items(self, *words, code=0):
        """The objects in what it prints for scripts."""
        return self.json(*words, code=code)["items"]


def read_until(terminal, words):
    """What is printed on a terminal until these words have come."""
    seen = ""
    while words not in seen:
        seen += os.read(terminal, 4096).decode(errors="replace")
    return seen
