"""Which of a machine's package sources are Debian's own, and how they are written down for a private apt."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.kubernetes.aptsources import Archive, with_source_packages


def copied(folder: Path, **files: str) -> tuple[bool, str]:
    """What comes of sources files; `list_x` and `sources_x` name them by kind."""
    apt, parts = folder / "apt", folder / "parts"
    (apt / "sources.list.d").mkdir(parents=True)
    parts.mkdir()
    for name, content in files.items():
        kind, _, stem = name.partition("_")
        (apt / "sources.list.d" / f"{stem}.{kind}").write_bytes(content.encode("latin-1"))
    found = with_source_packages(apt, parts)
    return found, (parts / "debian.list").read_text() + (parts / "debian.sources").read_text()


def test_a_deb822_paragraph_gets_source_packages_and_keeps_its_other_fields(tmp_path: Path) -> None:
    found, text = copied(
        tmp_path,
        sources_debian=(
            "# Debian\nTypes: deb\n# a snapshot\nURIs: http://deb.debian.org/debian\nSuites: bookworm bookworm-updates\n"
            "Components: main\nCheck-Valid-Until: no\nSigned-By: /usr/share/keyrings/debian-archive-keyring.gpg\n"
        ),
    )
    assert found
    assert text == (
        "types: deb deb-src\nuris: http://deb.debian.org/debian\nsuites: bookworm bookworm-updates\n"
        "components: main\ncheck-valid-until: no\nsigned-by: /usr/share/keyrings/debian-archive-keyring.gpg\n"
    )


def test_each_paragraph_is_judged_alone(tmp_path: Path) -> None:
    _, text = copied(
        tmp_path,
        sources_mixed=(
            "Types: deb\nURIs: http://deb.debian.org/debian\nSuites: bookworm\nComponents: main\n \t\n"
            "Types: deb\nURIs: https://packages.example.test/tool\nSuites: bookworm\nComponents: main\n\n\n"
            "types: deb deb-src\nuris: http://deb.debian.org/debian-security\nsuites: bookworm-security\ncomponents: main contrib\n"
        ),
    )
    assert text.count("types: deb deb-src") == 2
    assert "example.test" not in text
    assert "debian-security" in text


def test_a_one_line_entry_gets_a_twin_for_source_packages_and_keeps_its_options(tmp_path: Path) -> None:
    found, text = copied(tmp_path, list_main="deb [arch=amd64 trusted=no]  http://ftp.de.debian.org/debian bookworm main  # near\n")
    assert found
    assert text == "".join(
        f"{kind} [arch=amd64 trusted=no]  http://ftp.de.debian.org/debian bookworm main\n" for kind in ("deb", "deb-src")
    )


def test_the_old_sources_list_is_read_too(tmp_path: Path) -> None:
    (tmp_path / "apt").mkdir()
    (tmp_path / "apt" / "sources.list").write_text("deb http://deb.debian.org/debian bookworm main\n")
    (tmp_path / "parts").mkdir()
    assert with_source_packages(tmp_path / "apt", tmp_path / "parts")
    assert "deb-src http://deb.debian.org/debian bookworm main" in (tmp_path / "parts" / "debian.list").read_text()


def test_source_packages_that_were_on_already_are_written_once(tmp_path: Path) -> None:
    entry = "http://deb.debian.org/debian bookworm main\n"
    _, text = copied(tmp_path, list_main=f"deb {entry}deb-src {entry}")
    assert text == f"deb {entry}deb-src {entry}"


def test_a_paragraph_that_is_switched_off_stays_off(tmp_path: Path) -> None:
    paragraph = "Enabled: No\nTypes: deb\nURIs: http://deb.debian.org/debian\nSuites: bookworm\nComponents: main\n"
    found, _ = copied(tmp_path, sources_off=paragraph)
    assert not found


def test_an_archive_with_a_key_written_out_is_somebody_elses(tmp_path: Path) -> None:
    paragraph = "Types: deb\nURIs: http://example.test/debian\nSuites: bookworm\nComponents: main\nSigned-By:\n -----B\n .\n abc\n"
    found, _ = copied(tmp_path, sources_key=paragraph)
    assert not found


@pytest.mark.parametrize(
    ("uri", "signed_by", "own"),
    [
        ("http://deb.debian.org/debian", "", True),
        ("https://deb.debian.org/debian/", "", True),
        ("http://security.debian.org/debian-security", "", True),
        ("http://snapshot.debian.org/archive/debian/20250520T000000Z", "", True),
        ("http://mirror.example.test/pub/debian", "", True),
        ("mirror+file:///etc/apt/mirrors/debian.list", "", True),
        ("http://cache.example.test/x", "/usr/share/keyrings/debian-archive-keyring.gpg", True),
        ("http://cache.example.test/debian", "/usr/share/keyrings/example.gpg", False),
        ("https://download.example.test/linux/debian-tools", "", False),
        ("https://debian.org.example.test/apt", "", False),
        ("https://notdebian.org/apt", "", False),
        ("cdrom:[Debian", "", False),
        ("http://[::1/debian", "", False),
    ],
)
def test_the_key_tells_whose_an_archive_is_and_without_one_its_address(uri: str, signed_by: str, own: bool) -> None:
    assert Archive([uri], ["main"], signed_by).is_debians_own is own


def test_an_archive_without_main_is_not_debians() -> None:
    assert not Archive(["http://mirror.example.test/linux/debian"], ["stable"]).is_debians_own


@pytest.mark.parametrize(
    "text",
    [
        "",
        "deb\n",
        "deb http://deb.debian.org/debian\n",
        "deb [signed-by=/x http://deb.debian.org/debian bookworm main\n",
        "deb cdrom:[Debian GNU/Linux 12 _Bookworm_]/ bookworm main\n",
        "rpm http://deb.debian.org/debian bookworm main\n",
        "# deb http://deb.debian.org/debian bookworm main\n",
        "\x00\xff\xfe deb http://deb.debian.org/debian\n",
    ],
)
def test_an_entry_that_apt_could_not_read_is_passed_over(tmp_path: Path, text: str) -> None:
    assert copied(tmp_path, list_odd=text) == (False, "")


@pytest.mark.parametrize(
    "text",
    [
        "URIs: http://deb.debian.org/debian\nSuites: bookworm\n",
        "URIs: http://deb.debian.org/debian\nComponents: main\n",
        " lost\nURIs: http://deb.debian.org/debian\nSuites: bookworm\nComponents: main\n",
        "URIs: http://deb.debian.org/debian\nno field\nSuites: bookworm\nComponents: main\n",
        "\xff\xfe\x00",
    ],
)
def test_a_paragraph_that_lacks_something_or_is_broken_is_passed_over(tmp_path: Path, text: str) -> None:
    assert copied(tmp_path, sources_odd=text) == (False, "")
