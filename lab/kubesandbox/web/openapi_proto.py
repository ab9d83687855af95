"""The OpenAPI v2 document in protobuf, the only form for kubectl up to 1.26.

The message numbers are those of the `openapi.v2` protocol. Only the messages of our document are here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

#: The format's names in clients' `Accept`.
ASKED_AS: Final = (
    "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
    "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
)

#: The format's name in an answer. Old clients ask with an at sign in the name, but cannot parse it in an answer.
ANSWERED_AS: Final = ASKED_AS[1]

_VARINT, _BYTES = 0, 2
_Encoder = Callable[[Any], bytes]


def encode_document(document: Mapping[str, Any]) -> bytes:
    """Return the bytes of an `openapi.v2.Document`."""
    return b"".join(
        [
            _text(1, document["swagger"]),
            _message(2, _text(1, document["info"]["title"]) + _text(2, document["info"]["version"])),
            _message(8, _named(2, document["paths"], _path_item)),
            _message(9, _named(1, document["definitions"], _schema)),
        ]
    )


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _message(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | _BYTES) + _varint(len(content)) + content


def _text(number: int, value: Any) -> bytes:
    return _message(number, str(value).encode())


def _whole(number: int, value: Any) -> bytes:
    return _varint(number << 3 | _VARINT) + _varint(int(value))


def _named(number: int, items: Mapping[str, Any], encode: _Encoder) -> bytes:
    """Encode a map like the protocol, in repeated pairs of name and value."""
    return b"".join(_message(number, _text(1, name) + _message(2, encode(value))) for name, value in items.items())


def _any(value: Any) -> bytes:
    """Encode a value of any type in YAML, which includes JSON."""
    return _text(2, json.dumps(value))


def _extensions(number: int, source: Mapping[str, Any]) -> bytes:
    return _named(number, {key: value for key, value in source.items() if key.startswith("x-")}, _any)


def _path_item(item: Mapping[str, Any]) -> bytes:
    operation = item["patch"]
    responses = _named(1, operation["responses"], lambda response: _message(1, _text(1, response["description"])))
    content = [
        _text(5, operation["operationId"]),
        *(_message(8, _message(1, _message(2, _message(3, _query(p))))) for p in operation["parameters"]),
        _message(9, responses),
        _extensions(13, operation),
    ]
    return _message(8, b"".join(content))


def _query(parameter: Mapping[str, Any]) -> bytes:
    return b"".join(
        [
            _text(2, parameter["in"]),
            _text(3, parameter["description"]),
            _text(4, parameter["name"]),
            _text(6, parameter["type"]),
        ]
    )


_TEXTS: Final = {"$ref": 1, "format": 2, "title": 3, "description": 4, "pattern": 13}
_NUMBERS: Final = {
    "exclusiveMaximum": 8,
    "exclusiveMinimum": 10,
    "maxLength": 11,
    "minLength": 12,
    "maxItems": 14,
    "minItems": 15,
    "uniqueItems": 16,
    "maxProperties": 17,
    "minProperties": 18,
}


def _schema(schema: Mapping[str, Any]) -> bytes:
    return b"".join(_schema_parts(schema))


def _schema_parts(schema: Mapping[str, Any]) -> Iterator[bytes]:
    yield from (_text(_TEXTS[key], schema[key]) for key in _TEXTS if key in schema)
    yield from (_whole(_NUMBERS[key], schema[key]) for key in _NUMBERS if key in schema)
    yield from (_text(19, name) for name in schema.get("required", ()))
    yield from (_message(20, _any(value)) for value in schema.get("enum", ()))
    others = schema.get("additionalProperties")
    if isinstance(others, Mapping):
        yield _message(21, _message(1, _schema(others)))
    elif others is not None:
        yield _message(21, _whole(2, bool(others)))
    if "type" in schema:
        yield _message(22, _text(1, schema["type"]))
    if "items" in schema:
        yield _message(23, _message(1, _schema(schema["items"])))
    yield from (_message(24, _schema(part)) for part in schema.get("allOf", ()))
    if schema.get("properties"):
        yield _message(25, _named(1, schema["properties"], _schema))
    yield _extensions(31, schema)
