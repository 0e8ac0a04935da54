"""What can lie where a file of the exchange should be."""

import json
import os
import socket

from hypothesis import strategies as st

_NAMES = st.sampled_from(["session", "pools", "groups", "count", "uid", "report", "cluster", "x", "é\n"])
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_NAMES, inner, max_size=4),
    max_leaves=20,
)

CONTENTS = st.one_of(
    st.binary(max_size=200),
    _JSON.map(lambda value: json.dumps(value).encode()),
    st.sampled_from(
        [
            b"",
            b"\0" * 1000,
            b"[" * 100_000,
            b'{"a":' * 100_000,
            b"1e999",
            b"NaN",
            b"-" + b"9" * 5000,
            b'{"session": "s", "session": 1, "count": ' + b"9" * 5000 + b"}",
            b'{"session": "s", "pools": {"p": 1}}',
            b'{"session": "\\ud800", "count": 1e3}',
            b'"' + b"x" * 10_000_000 + b'"',
            b"[" + b"{}," * 1_000_000 + b"{}]",
            "ünicode".encode("latin-1"),
        ]
    ),
)


def put_content(path, content):
    path.write_bytes(content)


def put_pipe(path):
    os.mkfifo(path)


def put_directory(path):
    path.mkdir()
    (path / "full").touch()


def put_dangling_link(path):
    path.symlink_to(path.parent / "nowhere")


def put_endless_link(path):
    path.symlink_to("/dev/zero")


def put_link_to_itself(path):
    path.symlink_to(path)


def put_socket(path):
    # A path of a socket may have 108 bytes: it is bound by a name relative to a directory's descriptor.
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        socket.socket(socket.AF_UNIX).bind(f"/proc/self/fd/{directory}/{path.name}")
    finally:
        os.close(directory)


NO_FILES = [put_pipe, put_directory, put_dangling_link, put_endless_link, put_link_to_itself, put_socket]
