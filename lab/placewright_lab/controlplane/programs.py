"""The control plane's programs, from KUBEBUILDER_ASSETS, or built by tools/kubernetes of the checkout."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from placewright.api.bad_input import InputError
from placewright_lab.controlplane.assets import INSTEAD, Assets, Unavailable, from_environment, from_folder

_CHECKOUT: Final = Path(__file__).resolve().parents[3]
_TOOL: Final = "tools.kubernetes"


def provide(environ: Mapping[str, str]) -> Assets:
    """Find the programs. If there are none, build them in a checkout, in minutes, with progress on stderr.

    Args:
        environ: environment with KUBEBUILDER_ASSETS, and with the variables of the tool.

    Raises:
        Unavailable: this is no checkout; the message says which variable to set.
        InputError: KUBEBUILDER_ASSETS names no such folder, or the tool found no programs and said why.
    """
    named = from_environment(environ)
    if named is not None:
        return named
    if not _has_tool():
        raise Unavailable("an installed lab has no tools/kubernetes, which builds one in a checkout")
    folder = _run(environ)
    if not folder:
        raise InputError(f"tools/kubernetes built nothing: {INSTEAD}")
    return from_folder(Path(folder), _TOOL)


def at_hand(environ: Mapping[str, str]) -> Assets | None:
    """Find the programs without building any. Return None if there are none."""
    named = from_environment(environ)
    if named is not None or not _has_tool():
        return named
    folder = _run(environ, "--built")
    return from_folder(Path(folder), _TOOL) if folder else None


def _has_tool() -> bool:
    return (_CHECKOUT / _TOOL.replace(".", "/")).is_dir()


def _run(environ: Mapping[str, str], *words: str) -> str:
    """Run the tool, and return the folder that it prints, empty if it fails."""
    command = [sys.executable, "-m", _TOOL, *words]
    with subprocess.Popen(command, cwd=_CHECKOUT, env=dict(environ), stdout=subprocess.PIPE, text=True) as tool:  # noqa: S603 - our own
        try:
            printed, _ = tool.communicate()
        except BaseException:
            tool.terminate()  # it ends its compilers, and we wait for it
            raise
    return printed.strip()
