"""The operator takes its words from the vocabulary: a word of several syllables stands nowhere as a bare string."""

import ast
from pathlib import Path

import workergroups_operator
from workergroups_api import vocabulary
from workergroups_api.vocabulary import Word

SOURCES = Path(workergroups_operator.__file__).parent
WORDS = {
    str(word)
    for kind in vars(vocabulary).values()
    if isinstance(kind, type) and issubclass(kind, Word)
    for word in kind
}
# Keys of manifests are spelled like these, and Kubernetes, Ray and Kueue have their own "Ready", "head" and "Evicted".
COMMON = {"Ready", "Admitted", "Evicted", "None", "Waiting", "Removed", "head", "worker", "agent", "none"}


def test_no_word_of_the_vocabulary_is_written_out():
    assert [found for file in SOURCES.rglob("*.py") for found in _written_out(file)] == []


def _written_out(file):
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Constant) and node.value in WORDS - COMMON:
            yield f"{file.name}:{node.lineno}: {node.value}"
