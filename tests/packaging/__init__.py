"""Tests of what is shipped beside the package.

Optuna imports a library that has this room's name; with its folder in the path, both are found.
"""

from pkgutil import extend_path

__path__ = extend_path(__path__, __name__)
