"""`python -m tools.generated.site PAGES SITES`: the pages of the documentation as a site needs them; `make docs` builds it from there.

The pages in docs/ link files of the repository. On a site such a link leads to the address in `PLACEWRIGHT_REPOSITORY`. If none is set,
the file's name stands there. The changelog and the policy of security become pages.

SITES has a site for each version. Its `versions.json`, in the form of mike, fills the menu of versions of each of them.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Final

from placewright import __version__

ROOT: Final = Path(__file__).resolve().parents[2]
#: Pages beside the folder docs.
_BESIDE: Final = ("CHANGELOG.md", "SECURITY.md")
#: A word behind the language of a block, which only tests read: the site's builder sees no block there.
_KIND: Final = re.compile(r"^(```\w+) [\w-]+$", re.MULTILINE)
_DIAGRAM: Final = "\n```mermaid\n"
_LINK: Final = re.compile(r"\[([^\]]*)\]\(((?:\.\./)+)([^)]+)\)")


def page(text: str, depth: int, repository: str) -> str:
    """Return a page with links and blocks that a site can show. A page with a diagram loads the library that draws it from the site.

    `depth` is the number of folders between the page and the root of the repository.
    """

    def followed(link: re.Match[str]) -> str:
        words, up, target = link.groups()
        if up.count("../") < depth:  # a page of docs
            return link[0]
        if target in _BESIDE:
            return f"[{words}]({'../' * (depth - 1)}{target})"
        return f"[{words}]({repository}/{target})" if repository else f"{words} (`{target}`)"

    library = f'\n<script src="{"../" * (depth - 1)}mermaid.min.js"></script>\n' if _DIAGRAM in text else ""
    return _LINK.sub(followed, _KIND.sub(r"\1", text)) + library


def write(folder: Path, repository: str) -> None:
    """Write all pages into an empty folder."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "docs", folder, ignore=shutil.ignore_patterns("*.json", "*.py", "*.patch"))
    for file in folder.rglob("*.md"):
        file.write_text(page(file.read_text(), len(file.relative_to(folder).parts), repository))
    for name in _BESIDE:
        (folder / name).write_text((ROOT / name).read_text().replace("](docs/", "]("))


def write_versions(sites: Path, current: str) -> None:
    """Name the sites that are there and the one of the current version, newest first; the page above leads to the newest."""
    sites.mkdir(parents=True, exist_ok=True)
    numbers = {current} | {folder.name for folder in sites.iterdir() if folder.is_dir()}
    newest, *older = sorted(numbers, key=lambda number: [int(part) for part in number.split(".")], reverse=True)
    listed = [{"version": number, "title": number, "aliases": ["latest"] * (number == newest)} for number in (newest, *older)]
    (sites / "versions.json").write_text(json.dumps(listed) + "\n")
    (sites / "index.html").write_text(f'<!doctype html><title>Placewright</title><meta http-equiv="refresh" content="0; url={newest}/">\n')


if __name__ == "__main__":
    write(Path(sys.argv[1]), os.environ.get("PLACEWRIGHT_REPOSITORY", "").rstrip("/"))
    write_versions(Path(sys.argv[2]), __version__)
