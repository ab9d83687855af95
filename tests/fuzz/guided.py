"""Fuzzing that is guided by coverage, for those who have hours.

With `pip install atheris`, any test of this room that draws its inputs:

    PYTHONPATH=tests python -m fuzz.guided test_objects.test_torn_text_is_an_object_or_an_error -max_total_time=3600

What follows the test is libFuzzer's. No part of `make test`: atheris is there for few versions of Python.
"""

from __future__ import annotations

import importlib
import sys

import atheris  # type: ignore[import-not-found]

if __name__ == "__main__":
    module, _, name = sys.argv.pop(1).partition(".")
    with atheris.instrument_imports(include=["placewright", "yaml"]):
        test = getattr(importlib.import_module(f"fuzz.{module}"), name)
    atheris.Setup(sys.argv, test.hypothesis.fuzz_one_input)
    atheris.Fuzz()
