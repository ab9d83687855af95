"""Reads the API server's audit log: users, their requests, and the denied ones.

The log has one JSON line a request, written when the answer has been given. A killed server may leave a half-written line, onto which the
next server writes its first one.
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
#: How every line begins; inside a line quotes are escaped, so that it is found nowhere else.
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
    """One request and its answer, with the fields that are read here.

    Attributes:
        verb: as RBAC has it: get, list, watch, create, patch, update or delete.
        request_uri: path and query.
        request_received_timestamp: RFC 3339 with microseconds; also the order of arrival.
        stage_timestamp: the same, of the answer.
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
        """Name of the pod that the bearer's token is bound to, as kubelets ask for them; empty for other credentials."""
        return next(iter(self.user_info.extra.get(_POD, ())), "")

    @property
    def code(self) -> int:
        """HTTP status of the answer; 0 when the log has none."""
        return self.response_status.code

    @property
    def resource(self) -> str:
        """`pods`, or with a subresource `pods/binding`; empty for a path of no resource."""
        return "/".join(filter(None, (self.object_ref.resource, self.object_ref.subresource)))

    @property
    def denied(self) -> bool:
        """Whether credentials or RBAC stood against it. Admission says 403 as well, in a namespace that ends, say; that is not meant."""
        return self.code == UNAUTHORIZED or (self.code == FORBIDDEN and self.annotations.get(_DECISION, "forbid") == "forbid")

    def __str__(self) -> str:
        return f"{self.user or 'somebody'}: {self.verb} {self.request_uri}: {self.code}"


_DECODER: Final = msgspec.json.Decoder(Record)


def read_records(log: Path, offset: int = 0) -> list[Record]:
    """Return the requests that were answered, from a byte offset on, in the order of their answers. Half-written lines are left out."""
    with log.open("rb") as file:
        file.seek(offset)
        return records_of(file)


def records_of(lines: Iterable[bytes]) -> list[Record]:
    """Return the entries of lines that were read already."""
    found = (_record(line) for line in lines)
    return [record for record in found if record is not None]


def _record(line: bytes) -> Record | None:
    """Decode the record of a line, or the record after a remnant that a killed server left in it."""
    try:
        return _DECODER.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        following = line.find(_BEGINNING, 1)
        return None if following < 0 else _record(line[following:])


def denied(records: Iterable[Record], user: str) -> list[Record]:
    """Return denied requests of this user, and denied requests with unknown credentials, which have no user."""
    return [record for record in records if record.denied and record.user in (user, "", "system:anonymous")]
