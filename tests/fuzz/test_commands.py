"""Every command that reads a file of anybody's: an exit code and lines for a person, whatever is in it; never a traceback."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path

import pytest
from hypothesis import strategies as st

from fuzz.effort import bounded, fuzz
from fuzz.mutants import mutants, torn
from fuzz.seeds import DOCUMENTS, NODE, POD, PROFILES
from placewright.cli.main import main

#: Bytes; evaluate reads files into a buffer of 64 MiB.
BESIDES = 100 * 2**20
COMMANDS = (
    ("validate", "FILE"),
    ("convert", "FILE"),
    ("convert", "FILE", "--to", "kubeschedulerconfiguration"),
    ("evaluate", "-f", "FILE"),
    ("evaluate", "-f", "FILE", "-o", "json"),
    ("evaluate", "-f", "SEEDS", "--profile", "FILE"),
    ("evaluate", "--cases", "FILE"),
    ("simulate", "-f", "FILE"),
    ("simulate", "-f", "SEEDS", "--profile", "FILE", "-o", "json"),
    ("simulate", "--snapshot", "FILE"),
    ("simulate", "--record", "FILE"),
    ("compare", "-f", "SEEDS", "--profile", "FILE"),
    ("diff", "--snapshot", "FILE", "FILE", "FILE"),
    ("snapshot", "--show", "FILE"),
    ("profiles", "show", "FILE"),
    ("profiles", "diff", "FILE", "FILE"),
    ("profiles", "list", "--kubeconfig", "FILE"),
    ("run", "--config", "FILE", "--write-config-to", "/dev/null"),
)


def said(words: tuple[str, ...], content: bytes, folder: Path) -> tuple[int, str, str]:
    """Run it; its exit code, and what it wrote on standard output and on standard error."""
    (folder / "f.yaml").write_bytes(content)
    (folder / "seeds.yaml").write_text("\n---\n".join(map(json.dumps, (NODE, POD))))
    names = {"FILE": str(folder / "f.yaml"), "SEEDS": str(folder / "seeds.yaml")}
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), bounded(len(content), BESIDES):
        code = main([names.get(word, word) for word in words])
    return code, out.getvalue(), err.getvalue()


def is_clear(error: str) -> bool:
    return all(line.startswith("placewright: ") and line.isprintable() for line in error.splitlines())


@fuzz(40, words=st.sampled_from(COMMANDS), content=mutants((*PROFILES, *DOCUMENTS)).map(lambda document: json.dumps(document).encode()))
def test_a_changed_document_is_used_or_refused(words: tuple[str, ...], content: bytes, tmp_path: Path) -> None:
    code, out, err = said(words, content, tmp_path)
    assert code in (0, 1, 2)
    assert out + err
    assert is_clear(err)


@fuzz(30, words=st.sampled_from(COMMANDS), content=torn((*PROFILES, *DOCUMENTS)))
def test_a_torn_file_is_used_or_refused(words: tuple[str, ...], content: bytes, tmp_path: Path) -> None:
    code, out, err = said(words, content, tmp_path)
    assert code in (0, 1, 2)
    assert out + err
    assert is_clear(err)


BOMBS = {
    "laughs": "kind: Policy\n" + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9) if i else 'x'}]\n" for i in range(30)),
    "merges": "kind: Policy\na0: &a0 {x: 1}\n" + "".join(f"a{i}: &a{i} {{<<: [{', '.join([f'*a{i - 1}'] * 9)}]}}\n" for i in range(1, 30)),
    "nesting": "[" * 50_000,
    "nesting after a kind": "kind: SchedulingProfile\nspec: " + '{"a":' * 50_000,
    "in itself": "kind: List\nitems: &a [{kind: List, items: *a}]\n",
    "no text": "\xff\xfe\x00",
}


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("bomb", BOMBS)
def test_a_bomb_is_refused_in_a_line(words: tuple[str, ...], bomb: str, tmp_path: Path) -> None:
    code, _, err = said(words, BOMBS[bomb].encode("latin-1"), tmp_path)
    assert is_clear(err)
    assert len(err) < 1000
    if words[0] == "validate":  # looks at whole repositories, and passes over what does not look like a profile
        assert code in (0, 2)
    else:
        assert (code, err.count("\n")) == (2, 1)
