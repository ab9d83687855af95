"""Prints the CustomResourceDefinition of SchedulingProfile: `python -m tools.generated.definition > crds/schedulingprofiles.yaml`."""

from __future__ import annotations

import sys
from typing import Final

import yaml

from placewright.api.profile import GROUP, KIND, PLURAL, VERSION
from placewright.profiles.schema import Schema, openapi_schema

_HEADER: Final = "# Made by `make generate`; do not edit.\n"
_COLUMNS: Final = (
    ("Scheduler", "string", ".spec.schedulerName", "The schedulerName whose pods this profile places."),
    ("Ready", "string", '.status.conditions[?(@.type=="Ready")].status', "Whether the newest generation is in effect."),
    ("Reason", "string", '.status.conditions[?(@.type=="Ready")].reason', "Why it is ready or not, and whether it is paused."),
    ("Active", "integer", ".status.activeGeneration", "The generation that decisions use."),
    ("Pending", "integer", ".status.pending.total", "Pods waiting in the queue."),
    ("Plugins", "string", '.status.conditions[?(@.type=="PluginFailing")].reason', "Whether plugins fail, and for every pod."),
    ("Age", "date", ".metadata.creationTimestamp", "Time since creation."),
)
_DETAIL_COLUMNS: Final = (
    ("Generation", "integer", ".metadata.generation", "The newest generation."),
    ("Shadows", "string", ".spec.shadows", "Of a shadow: the profile beside which it decides without binding."),
    ("Agreement", "number", ".status.shadow.agreementPercent", "Of a shadow: percent of the pods that both put on the same node."),
)


def custom_resource_definition() -> Schema:
    """Build the CustomResourceDefinition.

    Returns:
        Plain data, ready for the API server.
    """
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{PLURAL}.{GROUP}",
            "labels": {"app.kubernetes.io/name": "placewright", "app.kubernetes.io/part-of": "placewright"},
        },
        "spec": {
            "group": GROUP,
            "scope": "Cluster",
            "names": {
                "kind": KIND,
                "listKind": f"{KIND}List",
                "plural": PLURAL,
                "singular": KIND.lower(),
                "shortNames": ["schedprof"],
                "categories": ["placewright"],
            },
            "versions": [
                {
                    "name": VERSION,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": _printer_columns(),
                    "schema": {"openAPIV3Schema": openapi_schema()},
                }
            ],
        },
    }


def _printer_columns() -> list[Schema]:
    first = [_column(*column) for column in _COLUMNS]
    detail = [{**_column(*column), "priority": 1} for column in _DETAIL_COLUMNS]
    return [*first[:-1], *detail, first[-1]]


def _column(name: str, kind: str, path: str, description: str) -> Schema:
    return {"name": name, "type": kind, "jsonPath": path, "description": description}


class _Dumper(yaml.SafeDumper):
    """Writes values out in full: people read the file, and `kubectl explain` does not show aliases."""

    def ignore_aliases(self, _data: object) -> bool:
        """Write no anchors."""
        return True


def crd_yaml() -> str:
    """Write the CustomResourceDefinition.

    Returns:
        The text of crds/schedulingprofiles.yaml.
    """
    text: str = yaml.dump(custom_resource_definition(), Dumper=_Dumper, sort_keys=False, width=120)
    return _HEADER + text


if __name__ == "__main__":
    sys.stdout.write(crd_yaml())
