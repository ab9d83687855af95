"""The files of the pages: small, whole, of our own hand, and in the wheel."""

from __future__ import annotations

import gzip
import re
import tomllib
from pathlib import Path

from placewright_console.pages.staticpages import MOST_PACKED_BYTES, static_pages

ROOT = Path(__file__).parents[2]
STATIC = ROOT / "console" / "placewright_console" / "pages" / "static"
STYLES = {path.name: path.read_text() for path in sorted(STATIC.glob("*.css")) if path.name != "tokens.css"}
SCRIPTS = {path.name: path.read_text() for path in sorted(STATIC.glob("*.js"))}


def test_every_file_is_served_and_together_they_are_small() -> None:
    files = {path.name: path for path in STATIC.iterdir()}
    assert {*files, ""} == set(static_pages())
    assert sum(len(gzip.compress(path.read_bytes())) for path in files.values()) < MOST_PACKED_BYTES
    assert static_pages()[""].body == files["index.html"].read_bytes()


def test_the_wheel_has_them() -> None:
    built = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert "operator/placewright" in built["packages"], "hatch packs all files of a package that git does not ignore"
    assert not {"exclude", "only-include", "include"} & built.keys()
    ignored = [line.strip("/*") for line in (ROOT / ".gitignore").read_text().splitlines() if line and not line.startswith("#")]
    assert not [name for name in static_pages() for pattern in ignored if pattern and name.endswith(pattern)]


def test_no_script_makes_markup_or_code_out_of_text() -> None:
    forbidden = re.compile(r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|new Function|setTimeout\(['\"]|srcdoc|DOMParser")
    assert {name: forbidden.findall(text) for name, text in SCRIPTS.items() if forbidden.search(text)} == {}


def test_nothing_is_asked_of_another_place() -> None:
    texts = {path.name: path.read_text() for path in STATIC.iterdir()}
    code = {name: re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE) for name, text in texts.items()}
    outside = {name: re.findall(r"(?:https?:)?//[a-z][\w.-]+\.[a-z]+", text) for name, text in code.items()}
    assert {name: found for name, found in outside.items() if found and found != ["http://www.w3.org"]} == {}
    assert not re.search(r"<script(?![^>]*src=)|<style|\son\w+=|\sstyle=", texts["index.html"]), "the policy would refuse it"


def test_one_module_sends_requests_so_that_each_has_the_token() -> None:
    sends = re.compile(r"\bfetch\(|XMLHttpRequest|sendBeacon|WebSocket|EventSource")
    assert [name for name, text in SCRIPTS.items() if sends.search(text)] == ["request.js"]


def test_nothing_is_kept_beyond_the_page_but_the_token_of_a_console_on_this_machine() -> None:
    storage = re.compile(r"localStorage|sessionStorage\.|indexedDB|document\.cookie|caches\.")
    assert [name for name, text in SCRIPTS.items() for _ in storage.findall(text)] == ["request.js"]


def test_no_server_of_ours_uses_a_cookie() -> None:
    """A browser sends a cookie of a host to every port of it, so to servers of other users."""
    uses = re.compile(r"set_cookie|Set-Cookie|\.cookies\b|SimpleCookie")
    rooms = ["operator/placewright/serving", "operator/placewright/engine", "operator/placewright/handlers"]
    rooms += ["console/placewright_console"]
    servers = [path for room in rooms for path in (ROOT / room).rglob("*.py")]
    assert len(servers) > 100
    assert [str(path) for path in servers if uses.search(path.read_text())] == []


def test_only_the_tokens_name_colours() -> None:
    colour = re.compile(r"#[0-9a-f]{3,8}\b|(?:rgb|hsl|hwb|lab|lch|oklab|oklch|color)a?\(", re.IGNORECASE)
    names = "white|black|red|green|blue|gr[ae]y|orange|yellow"
    by_name = re.compile(rf"(?:color|background|border[\w-]*|fill|stroke|outline|shadow):[^;]*\b({names})\b")
    found = {name: colour.findall(text) for name, text in {**SCRIPTS, **STYLES}.items()}
    found |= {name: [*found[name], *by_name.findall(text)] for name, text in STYLES.items()}
    assert {name: each for name, each in found.items() if each} == {}


def test_every_token_that_is_used_is_defined_and_every_colour_has_its_dark_one() -> None:
    tokens = (STATIC / "tokens.css").read_text()
    light, _, dark = tokens.partition("@media")
    defined, in_the_dark = (set(re.findall(r"(--[\w-]+):", part)) for part in (light, dark))
    used = {name for text in SCRIPTS.values() for name in re.findall(r"--[a-z]+(?:-\w+)*", text)}
    used |= {name for text in STYLES.values() for name in re.findall(r"var\((--[\w-]+)", text)}
    assert used <= defined
    assert {name for name in defined if re.search(rf"{name}: #", light)} == in_the_dark


def channel(value: int) -> float:
    share = value / 255
    return share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4


def luminance(colour: str) -> float:
    """WCAG 2.2, "relative luminance"."""
    red, green, blue = (channel(int(colour[at : at + 2], 16)) for at in (1, 3, 5))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    bright, dim = sorted((luminance(one), luminance(other)), reverse=True)
    return (bright + 0.05) / (dim + 0.05)


def test_text_has_enough_contrast_in_the_light_and_in_the_dark() -> None:
    light, _, dark = (STATIC / "tokens.css").read_text().partition("@media")
    for part in (light, dark):
        colours = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", part))
        for ink in ("ink", "muted", "accent", "bad", "good"):
            for ground in ("ground", "surface", "sunken"):
                assert contrast(colours[ink], colours[ground]) >= 4.5, (ink, ground)
        steps = [luminance(colours[f"load-{i}"]) for i in range(5)]
        assert steps in (sorted(steps), sorted(steps, reverse=True)), "the order is seen without colours"
