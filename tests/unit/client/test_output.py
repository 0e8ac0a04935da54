"""What reaches the user's terminal: no control sequences from the cluster."""

import json
import sys
from io import StringIO

import pytest
from rich.console import Console

from workergroups_cli import output, pod_commands
from workergroups_cli.json_output import print_list
from workergroups_cli.output import ProgramOutput, Teller, complain, note, print_text, table
from workergroups_client.errors import ClientError, NotRunningError
from workergroups_client.pods.pods import PodContainer
from workergroups_client.waiting import Lasting

SHOWS = [
    print_text,
    note,
    lambda text: tell(text),
    lambda text: table("A", rows=[[text]]),
    lambda text: complain(ClientError(text)),
]
PODS = [PodContainer("pod-0", "ray-worker"), PodContainer("pod-1", "ray-worker")]
EVIL = "a\x1b]52;c;ZXZpbA==\x07b\x1b[2Jc\x9b1md\u202ee\x1b[31mf"


def tell(text):
    with Teller() as teller:
        teller(text)


@pytest.mark.parametrize("show", SHOWS)
def test_messages_are_printed_without_control_sequences(show, capsys):
    show(EVIL)
    shown = "".join(capsys.readouterr())
    assert "a" in shown
    assert not set(shown) & set("\x1b\x07\x9b\u202e")


@pytest.mark.parametrize("show", SHOWS)
def test_what_looks_like_markup_is_printed_as_it_is(show, capsys):
    show("train:bug: [red]r[/] 3")
    assert "train:bug: [red]r[/] 3" in "".join(capsys.readouterr())


def test_json_has_them_escaped(capsys):
    print_list("Odd", [{"message": EVIL}])
    text = capsys.readouterr().out
    assert "\x1b" not in text
    assert json.loads(text)["items"] == [{"message": EVIL}]


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_a_terminal_gets_the_colours_of_a_program_and_nothing_else(capsys, monkeypatch, size):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    output = ProgramOutput()
    printed = f"{EVIL}\x1b[0m\n50 %\r100 %\t\n".encode()
    for start in range(0, len(printed), size):
        output.print(printed[start : start + size])
    shown = capsys.readouterr().out
    assert shown.endswith("e\x1b[31mf\x1b[0m\n50 %\r100 %\t\n")
    assert shown.count("\x1b") == 2
    assert not set(shown) & set("\x07\x9b\u202e")


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        ("\x1b[8mhidden\x1b[0m", "\x1b[28mhidden\x1b[0m"),
        ("\x1b[1;08;31mhidden\x1b[0m", "\x1b[1;28;31mhidden\x1b[0m"),
        ("\x1b[38;5;8mgrey \x1b[48;2;8;8;8;8mhidden\x1b[0m", "\x1b[38;5;8mgrey \x1b[48;2;8;8;8;28mhidden\x1b[0m"),
        ("\x1b[28;38;48mplain\x1b[0m", "\x1b[28;38;48mplain\x1b[0m"),
    ],
)
def test_a_program_conceals_nothing_on_a_terminal(capsys, monkeypatch, printed, shown):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    ProgramOutput().print(printed.encode())
    assert capsys.readouterr().out == shown


def test_a_message_hides_nothing_behind_a_carriage_return(capsys):
    print_text("a\r\nfailed\rall is well")
    assert capsys.readouterr().out == "a\nfailed\ufffdall is well\n"


def test_a_terminal_shows_bytes_that_are_no_text(capsys, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    output = ProgramOutput()
    for piece in (b"caf\xe9\n", b"caf\xc3", b"\xa9\n"):
        output.print(piece)
    assert capsys.readouterr().out == "caf\\xe9\ncaf\xe9\n"


@pytest.mark.parametrize("printed", [EVIL.encode(), b"caf\xe9\n", b"\x1b["])
def test_a_file_gets_the_bytes_that_the_program_has_printed(capfdbinary, printed):
    ProgramOutput().print(printed)
    assert capfdbinary.readouterr().out == printed


def test_a_table_is_not_cut_without_a_terminal(capsys):
    wide = ["x" * 900, "y" * 900]
    table("A", "B", rows=[wide])
    assert capsys.readouterr().out.splitlines()[1].split() == wide


def test_no_line_of_a_table_ends_with_spaces(capsys):
    table("A", "B", rows=[["1", "short"], ["2", "y" * 500]])
    assert capsys.readouterr().out.splitlines()[:2] == ["A  B", "1  short"]


def test_a_pod_that_is_lost_hides_neither_its_output_nor_another_ones_exit_code(monkeypatch, capsysbinary):
    def execute(cluster, pod, name, command, *, stdout, stderr):
        stdout(b"one line\nhalf a")
        if pod == "pod-1":
            raise NotRunningError("pods pod-1 not found")
        return 7

    monkeypatch.setattr(pod_commands, "execute", execute)
    assert pod_commands._on_all(None, PODS, ["ls"]) == 7
    out, err = capsysbinary.readouterr()
    assert sorted(out.splitlines()) == sorted(
        f"[{pod.pod}] {line}".encode() for pod in PODS for line in ("one line", "half a")
    )
    assert err == b"[pod-1] error: pods pod-1 not found\n"


def test_a_fact_stays_on_the_terminal_when_the_progress_is_gone(monkeypatch):
    shown = Console(file=StringIO(), force_terminal=True, force_interactive=True, width=100)
    monkeypatch.setattr(output, "err", shown)
    with Teller() as tell:
        tell("asking the pool")
        tell(Lasting("one pool did not answer"))
        tell("asking the next pool")
    assert "\n\x1b[2mone pool did not answer\x1b[0m\n" in f"\n{shown.file.getvalue()}".replace("\x1b[2K", "\n")
