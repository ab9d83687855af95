"""`python -m tools.generated.site FOLDER`: the pages of the documentation as a site needs them; `make docs` builds it from there.

The pages in docs/ link files of the repository. On a site such a link leads to the address in `PLACEWRIGHT_REPOSITORY`. If none is set,
the file's name stands there. The changelog and the policy of security become pages.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
#: Pages beside the folder docs.
_BESIDE: Final = ("CHANGELOG.md", "SECURITY.md")
#: A word behind the language of a block, which only tests read: the site's builder sees no block there.
_KIND: Final = re.compile(r"^(```\w+) [\w-]+$", re.MULTILINE)
_LINK: Final = re.compile(r"\[([^\]]*)\]\(((?:\.\./)+)([^)]+)\)")


def page(text: str, depth: int, repository: str) -> str:
    """Return a page with links and blocks that a site can show.

    `depth` is the number of folders between the page and the root of the repository.
    """

    def followed(link: re.Match[str]) -> str:
        words, up, target = link.groups()
        if up.count("../") < depth:  # a page of docs
            return link[0]
        if target in _BESIDE:
            return f"[{words}]({'../' * (depth - 1)}{target})"
        return f"[{words}]({repository}/{target})" if repository else f"{words} (`{target}`)"

    return _LINK.sub(followed, _KIND.sub(r"\1", text))


def write(folder: Path, repository: str) -> None:
    """Write all pages into an empty folder."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "docs", folder, ignore=shutil.ignore_patterns("*.json", "*.py", "*.patch"))
    for file in folder.rglob("*.md"):
        file.write_text(page(file.read_text(), len(file.relative_to(folder).parts), repository))
    for name in _BESIDE:
        (folder / name).write_text((ROOT / name).read_text().replace("](docs/", "]("))


if __name__ == "__main__":
    write(Path(sys.argv[1]), os.environ.get("PLACEWRIGHT_REPOSITORY", "").rstrip("/"))
