"""The command line and kubectl read the same manifests in the same way."""

import json
import random
import subprocess

import pytest
import yaml

from tests.simulation.control_plane import binaries
from workergroups_client.files.kubernetes_yaml import documents

TEXT = """
1e-6 1E5 1.5e3 .5 5. +1 -0 0x1F 0o17 017 089 0b11 1_000 1:30 22:22:22 2024-01-01 2024-01-01T10:00:00Z y Y n N
yes on Off no true True tRue ~ null Null 1.0 12345678901234567890 = 1__0 0x -0b11 +.5 1e3 1_0.5 0.1 1e400
-1e-400 -- . .. +. _1 1_ 0_ 0x_f 0b2 08 -017 +0x1F 1e 1e+ 1.2.3 nan .nanx inf 1e5_0 0o 0o8 1E+2 -.5e1
9007199254740993 -9223372036854775809 on_ NO nO none NULL 18446744073709551616 0777777777777777777777777 1_.5
._5 .5_ .5_1 ._ .5_e1 00 0_0 -0x0 0X1f 0B1 0O7 1d5 1f 0x1p3 Infinity 0b1_1 <<x =x
0b-0 0b-11 0b+1 0b_-1 0B-1 -0b-1 -0b+1 0x-1 0o-7 0-7
"""
SCALARS = TEXT.split()
DOCUMENTS = {
    "keys that are no texts": "{1: a, true: b, 2024-01-01: e, 010: f, y: k, -0x1: l}",
    "an empty key": "{null: d}",
    "tags": "[!!str 5, !!binary aGVsbG8=, !!timestamp 2024-01-01, !mine x, !!set {a}, !!int 5, !!float 5, !!bool yes]",
    "quoted": "['1e-6', \"yes\", '', '~', '1']",
    "anchors": "{a: &a {x: 1, y: 2}, b: {<<: *a, y: 3}, c: [*a, *a]}",
    "merged lists": "{a: &a {x: 1}, b: &b {x: 2, y: 3}, c: {<<: [*a, *b], z: 4}}",
    "a key twice": "{a: 1, a: 2}",
    "empty": "{a: , b: [], c: {}, d: ''}",
    "characters": '["\\u00e9\\U0001F600\\n\\x07", "caf\N{LATIN SMALL LETTER E WITH ACUTE} \N{GRINNING FACE}"]',
    "blocks": "{a: [1, [2, [3]]], ? b : c}",
    "signed infinities": "[+.inf, -.INF]",
    "not a number": "[.NaN]",
}


def by_kubectl(text, tmp_path):
    """What kubectl reads; None if it refuses the text."""
    file = tmp_path / "object.yaml"
    file.write_text(text, encoding="utf-8")
    command = [str(binaries() / "kubectl"), "label", "--local", f"--filename={file}", "a=b", "--output=json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={"KUBECONFIG": "/dev/null"})
    return json.loads(done.stdout)["spec"] if done.returncode == 0 else None


def by_us(text):
    try:
        (document,) = documents(text)
    except yaml.YAMLError:
        return None
    # As the API server stores numbers: floats without a fraction are integers.
    return json.loads(json.dumps(document["spec"]), parse_float=number, parse_int=number)


def number(text):
    return float(text)


def same(found):
    return json.loads(json.dumps(found), parse_float=number, parse_int=number)


def manifest(spec):
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\nspec:\n  {spec}\n"


def test_plain_scalars_are_what_kubectl_makes_of_them(tmp_path):
    text = manifest("\n  ".join(f"k{number}: {scalar}" for number, scalar in enumerate(SCALARS)))
    kubectl, ours = same(by_kubectl(text, tmp_path)), by_us(text)
    assert {SCALARS[int(key[1:])]: (kubectl[key], ours[key]) for key in kubectl if kubectl[key] != ours[key]} == {}
    assert [type(kubectl[key]) for key in kubectl] == [type(ours[key]) for key in kubectl]


def test_scalars_drawn_at_random_are_what_kubectl_makes_of_them(tmp_path):
    seed = random.randrange(1_000_000)
    draw = random.Random(seed)
    drawn = ["".join(draw.choices("0123456789+-._eExXbBoOyYnN", k=draw.randrange(1, 6))) for _ in range(2000)]
    drawn = [each for each in drawn if set(each) - set("-.") and not each.lower().startswith((".inf", ".nan"))]
    text = manifest("\n  ".join(f"k{number}: {scalar}" for number, scalar in enumerate(drawn)))
    kubectl, ours = same(by_kubectl(text, tmp_path)), by_us(text)
    assert {drawn[int(key[1:])]: (kubectl[key], ours[key]) for key in kubectl if kubectl[key] != ours[key]} == {}, seed


@pytest.mark.parametrize("document", DOCUMENTS.values(), ids=DOCUMENTS)
def test_documents_are_what_kubectl_makes_of_them(tmp_path, document):
    text = manifest(f"x: {document}")
    kubectl = by_kubectl(text, tmp_path)
    assert by_us(text) == (kubectl if kubectl is None else same(kubectl))
