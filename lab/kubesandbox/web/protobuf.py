"""Bodies in Kubernetes' protobuf form, as typed Go clients (kubectl since 1.32) send them for built-in kinds.

It knows the messages that kubectl itself sends: evictions, deletions, access reviews, requests for tokens, and the kinds of
`kubectl create`. An unknown field with content is refused, because the stored object would differ from the sent one. Answers are JSON,
which the same clients accept. Field numbers are those of the published `generated.proto` files.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
_MAGIC: Final = b"k8s\x00"
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


class ProtobufError(ValueError):
    """The body does not have this form, or has an unknown kind."""


@dataclass(frozen=True, slots=True)
class _Field:
    """One field: `type` is text, int, bool, map, time, bytes, ignored, or the name of a message."""

    name: str
    type: str = "text"
    many: bool = False


_Message = Mapping[int, _Field]


def decode_protobuf(body: bytes) -> dict[str, Any]:
    """Return the object in an encoded body, as its JSON would give it. Raises `ProtobufError`."""
    if not body.startswith(_MAGIC):
        raise ProtobufError("the body does not begin as protobuf of Kubernetes does")
    try:
        return _decode_envelope(_decode(body[len(_MAGIC) :], _ENVELOPE))
    except ProtobufError:
        raise
    except (IndexError, OverflowError, OSError, ValueError) as error:  # too short, or a time outside of the calendar
        raise ProtobufError(f"the protobuf ends in the middle or is not sound: {error}") from error


def _decode_envelope(envelope: dict[str, Any]) -> dict[str, Any]:
    kind = envelope.get("typeMeta", {})
    name = str(kind.get("kind", ""))
    if name not in _MESSAGES or not name[0].isupper():
        raise ProtobufError(f"kind {name!r} is not read as protobuf here: send JSON")
    return {**kind, **_decode(base64.b64decode(envelope.get("raw", "")), _MESSAGES[name])}


def _decode(data: bytes, message: _Message) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for number, value in _fields(data):
        field = message.get(number)
        if field is None and value:  # unset fields are written, too, as zero or empty
            raise ProtobufError(f"field {number} beside {', '.join(f.name for f in message.values())} is not read here")
        if field is None or field.type == "ignored":
            continue
        decoded = _value(value, field.type)
        if field.type.lower().endswith("map"):
            result.setdefault(field.name, {}).update(decoded)
        elif field.many:
            result.setdefault(field.name, []).append(decoded)
        elif decoded not in ("", None) or field.type != "text":
            result[field.name] = decoded
    return result


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        wire = tag & 7
        if wire == _VARINT:
            number, at = _varint(data, at)
            yield tag >> 3, number
            continue
        if wire not in (_BYTES, _FIXED64, _FIXED32):
            raise ProtobufError(f"wire type {wire} is not known")
        size = {_FIXED64: 8, _FIXED32: 4}.get(wire, 0)
        if wire == _BYTES:
            size, at = _varint(data, at)
        if at + size > len(data):
            raise IndexError(f"{size} bytes are announced, {len(data) - at} are there")
        yield tag >> 3, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            return value, at
        if shift > 63:
            raise IndexError("a number has too many bytes")


def _value(value: int | bytes, kind: str) -> Any:
    if (kind in ("int", "bool")) != isinstance(value, int):
        raise IndexError(f"a field of type {kind} is written as another")
    if isinstance(value, int):
        return bool(value) if kind == "bool" else value - (1 << 64) if value >= 1 << 63 else value
    return _SCALARS[kind](value) if kind in _SCALARS else _decode(value, _MESSAGES[kind])


def _entry(message: _Message) -> Callable[[bytes], dict[str, str]]:
    """Return the decoder of an entry of a map, whose message has a key and a value."""

    def decode(value: bytes) -> dict[str, str]:
        entry = _decode(value, message)
        return {entry.get("key", ""): entry.get("value", "")}

    return decode


def _moment(value: bytes) -> str | None:
    seconds = _decode(value, _TIME).get("seconds")
    return None if seconds is None else time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def _int_or_string(value: bytes) -> int | str:
    found = _decode(value, _INT_OR_STRING)
    either: int | str = found.get("text", "") if found.get("type") else found.get("number", 0)
    return either


def _message(fields: str) -> _Message:
    """Parse the fields of a message: `name=number` for text, `name=number:type` for other types, `type[]` for repeated fields."""
    result = {}
    for each in fields.split():
        name, _, described = each.partition("=")
        number, _, kind = described.partition(":")
        result[int(number)] = _Field(name, kind.removesuffix("[]") or "text", kind.endswith("[]"))
    return MappingProxyType(result)


_TIME: Final = _message("seconds=1:int nanos=2:int")
_INT_OR_STRING: Final = _message("type=1:int number=2:int text=3")
_QUANTITY: Final = _message("text=1")
_SCALARS: Final[Mapping[str, Callable[[bytes], Any]]] = MappingProxyType(
    {
        "text": bytes.decode,
        "bytes": lambda value: base64.b64encode(value).decode(),
        "quantity": lambda value: _decode(value, _QUANTITY).get("text", "0"),
        "map": _entry(_message("key=1 value=2")),
        "bytesMap": _entry(_message("key=1 value=2:bytes")),
        "quantityMap": _entry(_message("key=1 value=2:quantity")),
        "time": _moment,
        "intOrString": _int_or_string,
    }
)
_ENVELOPE: Final = _message("typeMeta=1:typeMeta raw=2:bytes contentEncoding=3 contentType=4")
#: Messages by name; the names of kinds begin with a capital. The server ignores the status of a new object.
_MESSAGES: Final[Mapping[str, _Message]] = MappingProxyType(
    {
        "typeMeta": _message("apiVersion=1 kind=2"),
        "objectMeta": _message(
            "name=1 generateName=2 namespace=3 uid=5 resourceVersion=6 generation=7:int creationTimestamp=8:time "
            "deletionTimestamp=9:time deletionGracePeriodSeconds=10:int labels=11:map annotations=12:map "
            "ownerReferences=13:ownerReference[] finalizers=14:text[] managedFields=17:ignored"
        ),
        "ownerReference": _message("kind=1 name=3 uid=4 apiVersion=5 controller=6:bool blockOwnerDeletion=7:bool"),
        "Namespace": _message("metadata=1:objectMeta spec=2:namespaceSpec status=3:ignored"),
        "namespaceSpec": _message("finalizers=1:text[]"),
        "Eviction": _message("metadata=1:objectMeta deleteOptions=2:DeleteOptions"),
        "DeleteOptions": _message(
            "gracePeriodSeconds=1:int preconditions=2:preconditions orphanDependents=3:bool propagationPolicy=4 dryRun=5:text[]"
        ),
        "preconditions": _message("uid=1 resourceVersion=2"),
        "Binding": _message("metadata=1:objectMeta target=2:objectReference"),
        "objectReference": _message("kind=1 namespace=2 name=3 uid=4 apiVersion=5 resourceVersion=6 fieldPath=7"),
        "SelfSubjectAccessReview": _message("metadata=1:objectMeta spec=2:accessReviewSpec status=3:ignored"),
        "accessReviewSpec": _message("resourceAttributes=1:resourceAttributes nonResourceAttributes=2:nonResourceAttributes"),
        "resourceAttributes": _message("namespace=1 verb=2 group=3 version=4 resource=5 subresource=6 name=7"),
        "nonResourceAttributes": _message("path=1 verb=2"),
        "TokenRequest": _message("metadata=1:objectMeta spec=2:tokenSpec status=3:ignored"),
        "tokenSpec": _message("audiences=1:text[] boundObjectRef=3:boundObject expirationSeconds=4:int"),
        "boundObject": _message("kind=1 apiVersion=2 name=3 uid=4"),
        "ConfigMap": _message("metadata=1:objectMeta data=2:map immutable=4:bool"),
        "ServiceAccount": _message("metadata=1:objectMeta automountServiceAccountToken=4:bool"),
        "PriorityClass": _message("metadata=1:objectMeta value=2:int globalDefault=3:bool description=4 preemptionPolicy=5"),
        "PodDisruptionBudget": _message("metadata=1:objectMeta spec=2:budgetSpec status=3:ignored"),
        "budgetSpec": _message("minAvailable=1:intOrString selector=2:labelSelector maxUnavailable=3:intOrString"),
        "labelSelector": _message("matchLabels=1:map matchExpressions=2:requirement[]"),
        "requirement": _message("key=1 operator=2 values=3:text[]"),
        "Deployment": _message("metadata=1:objectMeta spec=2:deploymentSpec status=3:ignored"),
        "deploymentSpec": _message(
            "replicas=1:int selector=2:labelSelector template=3:template strategy=4:strategy "
            "minReadySeconds=5:int revisionHistoryLimit=6:int paused=7:bool progressDeadlineSeconds=9:int"
        ),
        "strategy": _message("type=1"),
        "Job": _message("metadata=1:objectMeta spec=2:jobSpec status=3:ignored"),
        "jobSpec": _message(
            "parallelism=1:int completions=2:int activeDeadlineSeconds=3:int selector=4:labelSelector "
            "manualSelector=5:bool template=6:template backoffLimit=7:int ttlSecondsAfterFinished=8:int"
        ),
        "template": _message("metadata=1:objectMeta spec=2:podSpec"),
        "podSpec": _message(
            "containers=2:container[] restartPolicy=3 terminationGracePeriodSeconds=4:int dnsPolicy=6 "
            "nodeSelector=7:map serviceAccountName=8 nodeName=10 schedulerName=19 priorityClassName=24"
        ),
        "container": _message(
            "name=1 image=2 command=3:text[] args=4:text[] ports=6:containerPort[] resources=8:quantities imagePullPolicy=14"
        ),
        "containerPort": _message("name=1 hostPort=2:int containerPort=3:int protocol=4"),
        "quantities": _message("limits=1:quantityMap requests=2:quantityMap"),
        "Secret": _message("metadata=1:objectMeta data=2:bytesMap type=3 stringData=4:map immutable=5:bool"),
    }
)
