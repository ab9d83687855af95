"""The profiles of manifests/samples/policy, applied to a stage as kubectl applies them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import yaml

from handlers.stage import Object, Stage
from placewright.api.profile import GROUP, KIND, PLURAL, VERSION

SAMPLES: Final = Path(__file__).parents[2] / "manifests" / "samples" / "policy"


def sample(file: str) -> Object:
    """The profile in a sample: `sample("give-up.yaml")`."""
    (found,) = (each for each in yaml.safe_load_all((SAMPLES / file).read_text()) if each["kind"] == KIND)
    return dict(found)


def apply_sample(stage: Stage, file: str, **changes: Any) -> str:
    """Create a sample's profile on a stage, through the API server's schema and rules.

    Args:
        stage: where it is created.
        file: name of the file.
        changes: fields of `spec` that a story has otherwise, such as seconds in place of minutes.

    Returns:
        The schedulerName that the profile's pods name.
    """
    profile = sample(file)
    profile["spec"] |= changes
    stage.sandbox.writes.create(stage.sandbox.resource(GROUP, VERSION, PLURAL), "", profile)
    return str(profile["spec"]["schedulerName"])
