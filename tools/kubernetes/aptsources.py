"""Debian's own archive among apt's sources, with source packages switched on, without touching the machine's files.

A machine's sources come as one-line entries (`sources.list`, `*.list`) and as deb822 paragraphs (`*.sources`); a plain installation has no
`deb-src` in either. What is Debian's own is copied, with its options, into a folder that a private apt call reads. Third parties are left
out: their sources are not wanted, and one that is broken must not stand in the way. What apt could not read either is passed over.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final
from urllib.parse import urlsplit

_BOTH: Final = ("deb", "deb-src")
_ONE_LINE: Final = re.compile(r"(deb|deb-src)\s+(\[[^\]]*\]\s+)?([^\s\[\]]+)\s+([^\s\[\]]+)((?:\s+[^\s\[\]]+)*)\s*")
_FIELD: Final = re.compile(r"([A-Za-z0-9-]+):(.*)")
_SIGNED_BY: Final = re.compile(r"signed-by\+?=(\S+)", re.IGNORECASE)
_SWITCHED_OFF: Final = frozenset({"no", "false", "without", "off", "disable", "0"})
_DEBIANS_KEYS: Final = "debian-archive-"
_DEBIANS_FOLDERS: Final = frozenset({"debian", "debian-security", "security"})


@dataclass(frozen=True, slots=True)
class Archive:
    """One entry: the origin of packages.

    Attributes:
        uris: of the archive's root, at least one.
        components: such as `main`.
        signed_by: keyring files, fingerprints or a whole key; empty where any trusted key will do.
    """

    uris: Sequence[str]
    components: Sequence[str]
    signed_by: str = ""

    @property
    def is_debians_own(self) -> bool:
        """Whether this is Debian's archive or a mirror of it.

        The key decides where one is named. Otherwise the address has to: a host of debian.org, or a mirror's usual folder.
        """
        if "main" not in self.components or not self.uris:
            return False
        if self.signed_by:
            return any(PurePosixPath(key).name.startswith(_DEBIANS_KEYS) for key in re.split(r"[\s,]+", self.signed_by))
        return all(_looks_like_debian(uri) for uri in self.uris)


def with_source_packages(apt: Path, parts: Path) -> bool:
    """Copy Debian's own entries of apt's folder to `parts`, each for binary and source packages.

    Returns whether there were any.
    """
    lines = [line for file in _files(apt, "list") for entry in _content(file).splitlines() for line in _one_line(entry)]
    stanzas = [stanza for file in _files(apt, "sources") for stanza in _deb822(_content(file))]
    # An entry of its own for deb-src is no second one.
    (parts / "debian.list").write_text("".join(f"{line}\n" for line in dict.fromkeys(lines)), encoding="utf-8")
    (parts / "debian.sources").write_text("\n".join(dict.fromkeys(stanzas)), encoding="utf-8")
    return bool(lines or stanzas)


def _files(apt: Path, kind: str) -> list[Path]:
    plain = [apt / "sources.list"] if kind == "list" else []
    return [file for file in (*plain, *sorted((apt / "sources.list.d").glob(f"*.{kind}"))) if file.is_file()]


def _content(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace")


def _one_line(entry: str) -> Iterator[str]:
    """The entry of a line, the same for `deb` and `deb-src`; None for a comment, another archive, and any other line."""
    found = _ONE_LINE.fullmatch(entry.partition("#")[0].strip())
    if found is None:
        return
    _, options, uri, suite, components = found.groups(default="")
    key = _SIGNED_BY.search(options.strip("[] \t"))
    if Archive([uri], components.split(), key[1] if key else "").is_debians_own:
        yield from (f"{kind} {options}{uri} {suite}{components}" for kind in _BOTH)


def _deb822(text: str) -> Iterator[str]:
    """The paragraphs of Debian's own archives, for both types."""
    plain = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    for paragraph in re.split(r"\n[ \t]*\n", plain):
        fields = _fields(paragraph)
        if fields is None or fields.get("enabled", "").strip().lower() in _SWITCHED_OFF:
            continue
        archive = Archive(fields.get("uris", "").split(), fields.get("components", "").split(), fields.get("signed-by", ""))
        if archive.is_debians_own and fields.get("suites", "").split():
            kept = "".join(f"{name}:{value}\n" for name, value in fields.items() if name not in {"types", "enabled"})
            yield f"types: {' '.join(_BOTH)}\n{kept}"


def _fields(paragraph: str) -> dict[str, str] | None:
    """Field names in lower case, values as they stand, continuation lines included; None where a line is neither."""
    fields: dict[str, str] = {}
    name = ""
    for line in filter(str.strip, paragraph.splitlines()):
        field = _FIELD.fullmatch(line)
        if line[0] in " \t" and name:
            fields[name] += f"\n{line}"
        elif field is not None:
            name = field[1].lower()
            fields[name] = field[2]
        else:
            return None
    return fields


def _looks_like_debian(uri: str) -> bool:
    """`mirror+file:/etc/apt/mirrors/debian.list`, as cloud images have it, too."""
    if uri.startswith("cdrom:"):
        return False
    try:
        parts = urlsplit(uri)
        host = parts.hostname or ""
    except ValueError:
        return False
    return host == "debian.org" or host.endswith(".debian.org") or PurePosixPath(parts.path).stem in _DEBIANS_FOLDERS
