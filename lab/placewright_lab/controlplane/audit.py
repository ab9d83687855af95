"""A reader of the API server's audit log: users, their requests, and the denied ones.

The log has one JSON line a request, written after the answer. A killed server may leave half a line, after which the next server writes its
first one.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec

from placewright.kube.errors import FORBIDDEN, UNAUTHORIZED

_DECISION: Final = "authorization.k8s.io/decision"
#: Field of a token that is bound to a pod, with the pod's name.
_POD: Final = "authentication.kubernetes.io/pod-name"
#: The beginning of every line. Quotes are escaped inside a line, so nothing else looks like it.
_BEGINNING: Final = b'{"kind":"Event","apiVersion":"audit.k8s.io/'


class _Reference(msgspec.Struct, frozen=True, rename="camel"):
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    api_group: str = ""


class _User(msgspec.Struct, frozen=True):
    username: str = ""
    extra: dict[str, list[str]] = {}


class _Answer(msgspec.Struct, frozen=True):
    code: int = 0


class Record(msgspec.Struct, frozen=True, rename="camel"):
    """One request and its answer, with the fields that we read.

    Attributes:
        verb: RBAC's verb: get, list, watch, create, patch, update or delete.
        request_uri: path and query.
        request_received_timestamp: RFC 3339 time with microseconds, which is also the order of arrival.
        stage_timestamp: time of the answer in the same form.
    """

    verb: str = ""
    request_uri: str = msgspec.field(default="", name="requestURI")
    user_agent: str = ""
    request_received_timestamp: str = ""
    stage_timestamp: str = ""
    user_info: _User = msgspec.field(default=_User(), name="user")
    object_ref: _Reference = _Reference()
    response_status: _Answer = _Answer()
    annotations: dict[str, str] = {}
    request_object: msgspec.Raw = msgspec.Raw()

    @property
    def user(self) -> str:
        """The user; empty for unknown credentials."""
        return self.user_info.username

    @property
    def pod(self) -> str:
        """Name of the pod of the bearer's token, which kubelets ask for; empty for other credentials."""
        return next(iter(self.user_info.extra.get(_POD, ())), "")

    @property
    def code(self) -> int:
        """HTTP status of the answer; 0 if the log has none."""
        return self.response_status.code

    @property
    def resource(self) -> str:
        """`pods`, or with a subresource `pods/binding`; empty for a path of no resource."""
        return "/".join(filter(None, (self.object_ref.resource, self.object_ref.subresource)))

    @property
    def denied(self) -> bool:
        """True if authentication or RBAC refused it. A 403 of admission, for instance in a namespace that ends, does not count."""
        return self.code == UNAUTHORIZED or (self.code == FORBIDDEN and self.annotations.get(_DECISION, "forbid") == "forbid")

    def __str__(self) -> str:
        return f"{self.user or 'somebody'}: {self.verb} {self.request_uri}: {self.code}"


_DECODER: Final = msgspec.json.Decoder(Record)


def read_records(log: Path, offset: int = 0) -> list[Record]:
    """Return the answered requests from a byte offset on, in the order of their answers, without half-written lines."""
    with log.open("rb") as file:
        file.seek(offset)
        return records_of(file)


def records_of(lines: Iterable[bytes]) -> list[Record]:
    """Return the records of lines."""
    found = (_record(line) for line in lines)
    return [record for record in found if record is not None]


def _record(line: bytes) -> Record | None:
    """Decode the record of a line, or the record after the rest that a killed server left in it."""
    try:
        return _DECODER.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        following = line.find(_BEGINNING, 1)
        return None if following < 0 else _record(line[following:])


def denied(records: Iterable[Record], user: str) -> list[Record]:
    """Return denied requests of this user, and denied requests with unknown credentials, which have no user."""
    return [record for record in records if record.denied and record.user in (user, "", "system:anonymous")]
