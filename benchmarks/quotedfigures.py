"""`make figures`: measures the figures that the README and the docs quote, keeps them as data, and writes the pages.

Usage:

    python -m benchmarks.quotedfigures measure [NAME …]   measure all or some, then write
    python -m benchmarks.quotedfigures write              write the pages from the data that is there
    python -m benchmarks.quotedfigures check              say which pages are not as the data has them

A region stands between `<!-- figures: NAME -->` and `<!-- end of figures -->`. What cannot be measured here keeps its data and its stamp.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from benchmarks.checkouts import ChildFailed, running
from benchmarks.quoteddata import QUOTED, QuotedFigures, measure, read_figures, write_figures
from benchmarks.quotedregions import REGIONS
from placewright.api.bad_input import InputError, bad_field, printable
from placewright_lab.controlplane.assets import at_hand

END: Final = "<!-- end of figures -->"
_REGION: Final = re.compile(r"^<!-- figures: (\S+) -->\n(.*?)^<!-- end of figures -->$", re.MULTILINE | re.DOTALL)
_MARKER: Final = re.compile(r"^<!-- (?:figures: |end of figures)", re.MULTILINE)
#: Folder of the data in a checkout.
DATA: Final = "docs/figures"
_ROOT: Final = Path(__file__).resolve().parents[1]


def stale(root: Path) -> dict[Path, str]:
    """Return the pages of a checkout that differ from its data, with the text that they should have.

    Raise `InputError` for a marker without a pair, an unknown region, and a region that is not on one page.
    """
    if not (root / "README.md").is_file():
        raise InputError(f"{root}: no README.md: figures are written in a checkout")
    figures = {name: read_figures(root / DATA, name) for name in QUOTED}
    texts = {page: page.read_text(encoding="utf-8") for page in (root / "README.md", *sorted((root / "docs").glob("*.md")))}
    there = [name for page, text in texts.items() for name in _regions(str(page.relative_to(root)), text)]
    for name in REGIONS:
        if there.count(name) != 1:
            raise bad_field(f"<!-- figures: {name} -->", f"on {there.count(name)} pages", "one page")
    written = {page: _REGION.sub(lambda found: _written(found[1], figures), text) for page, text in texts.items()}
    return {page: text for page, text in written.items() if text != texts[page]}


def _regions(page: str, text: str) -> list[str]:
    names = [found[1] for found in _REGION.finditer(text)]
    if len(_MARKER.findall(text)) != 2 * len(names):
        raise InputError(f"{page}: a marker of figures without its pair")
    for name in names:
        if name not in REGIONS:
            raise bad_field(f"{page}: figures", name, ", ".join(REGIONS))
    return names


def _written(name: str, figures: dict[str, QuotedFigures]) -> str:
    return f"<!-- figures: {name} -->\n{REGIONS[name].written(figures)}\n{END}"


def outside_regions(text: str) -> str:
    """Return a page without its regions, every other line where it was."""
    return _REGION.sub(lambda found: "\n" * found[0].count("\n"), text)


def _measure(root: Path, names: Sequence[str]) -> Iterator[str]:
    """Measure, write each result at once, and yield the failures."""
    for name in names:
        if name not in QUOTED:
            raise bad_field("figures", name, ", ".join(QUOTED))
    with TemporaryDirectory(prefix="placewright-figures-") as folder:
        code = running(Path(folder))
        for name in names or QUOTED:
            if QUOTED[name].needs_server and not _server_at_hand():
                _say(f"{name}: left as it was: no kube-apiserver, etcd and kube-scheduler at hand (KUBEBUILDER_ASSETS)")
                continue
            try:
                write_figures(root / DATA, name, measure(QUOTED[name], code, _say))
            except ChildFailed as failed:
                yield f"{name}: left as it was: {failed}"


def _server_at_hand() -> bool:
    assets = at_hand(os.environ)
    return assets is not None and assets.kube_scheduler is not None


def _say(line: str) -> None:
    sys.stderr.write(f"{printable(line)}\n")


def main(words: Sequence[str], root: Path = _ROOT) -> int:
    """Return the exit code: 1 if something is out of date or could not be measured, 2 for words that mean nothing."""
    problems: list[str] = []
    try:
        if words[:1] == ["check"]:
            problems = [f"{page.relative_to(root)} is out of date: run 'make generate'" for page in stale(root)]
        elif words[:1] in (["write"], ["measure"]):
            problems += _measure(root, words[1:]) if words[0] == "measure" else ()
            for page, text in stale(root).items():
                page.write_text(text, encoding="utf-8")
        else:
            raise bad_field("figures", " ".join(words), "measure [NAME …], write or check")
    except InputError as error:
        _say(f"placewright: error: {error}")
        return 2
    for problem in problems:
        _say(problem)
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
