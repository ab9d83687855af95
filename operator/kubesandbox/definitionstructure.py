"""The shape of a CustomResourceDefinition's body, schemas included; `structure` holds bodies against it."""

from __future__ import annotations

from typing import Any

import msgspec


class _Shape(msgspec.Struct, rename="camel"):
    """Field names as Kubernetes writes them."""


class _Schema(_Shape):
    type: str | None = None
    format: str | None = None
    description: str | None = None
    pattern: str | None = None
    properties: dict[str, _Schema] | None = None
    additional_properties: _Schema | bool | None = None
    items: _Schema | None = None
    required: list[str] | None = None
    enum: list[Any] | None = None
    nullable: bool | None = None
    all_of: list[_Schema] | None = None
    any_of: list[_Schema] | None = None
    one_of: list[_Schema] | None = None
    not_: _Schema | None = msgspec.field(default=None, name="not")
    minimum: float | None = None
    maximum: float | None = None
    exclusive_minimum: bool | None = None
    exclusive_maximum: bool | None = None
    multiple_of: float | None = None
    min_length: int | None = None
    max_length: int | None = None
    min_items: int | None = None
    max_items: int | None = None
    min_properties: int | None = None
    max_properties: int | None = None
    unique_items: bool | None = None
    preserve: bool | None = msgspec.field(default=None, name="x-kubernetes-preserve-unknown-fields")
    embedded: bool | None = msgspec.field(default=None, name="x-kubernetes-embedded-resource")
    int_or_string: bool | None = msgspec.field(default=None, name="x-kubernetes-int-or-string")
    list_type: str | None = msgspec.field(default=None, name="x-kubernetes-list-type")
    list_keys: list[str] | None = msgspec.field(default=None, name="x-kubernetes-list-map-keys")
    map_type: str | None = msgspec.field(default=None, name="x-kubernetes-map-type")
    rules: list[dict[str, Any]] | None = msgspec.field(default=None, name="x-kubernetes-validations")


class _Validation(_Shape):
    open_api_v3_schema: _Schema | None = msgspec.field(default=None, name="openAPIV3Schema")


class _Column(_Shape):
    name: str = ""
    type: str = ""
    json_path: str = ""
    format: str | None = None
    description: str | None = None
    priority: int | None = None


class _Selectable(_Shape):
    json_path: str = ""


class _Subresources(_Shape):
    status: dict[str, Any] | None = None
    scale: dict[str, Any] | None = None


class _Version(_Shape):
    name: str = ""
    served: bool = False
    storage: bool = False
    deprecated: bool | None = None
    schema: _Validation | None = None
    subresources: _Subresources | None = None
    additional_printer_columns: list[_Column] | None = None
    selectable_fields: list[_Selectable] | None = None


class _Names(_Shape):
    plural: str = ""
    kind: str = ""
    singular: str | None = None
    list_kind: str | None = None
    short_names: list[str] | None = None
    categories: list[str] | None = None


class _Condition(_Shape):
    type: str = ""
    status: str = ""


class DefinitionStatus(_Shape):
    """`status` of a definition."""

    conditions: list[_Condition] | None = None
    accepted_names: _Names | None = None
    stored_versions: list[str] | None = None


class DefinitionSpec(_Shape):
    """`spec` of a definition."""

    group: str = ""
    scope: str = ""
    names: _Names | None = None
    versions: list[_Version] | None = None
    conversion: dict[str, Any] | None = None
    preserve_unknown_fields: bool | None = None
