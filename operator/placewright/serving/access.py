"""Who may ask for what: the API server is asked who holds a token and whether they may."""

from __future__ import annotations

from typing import Protocol

from placewright.serving.routes import Audience, Endpoint, Question, Refused

FORBIDDEN = 403


class Gate(Protocol):
    """Lets questions in, or not."""

    async def admit(self, endpoint: Endpoint, question: Question) -> None:
        """Return when the endpoint may answer this question; raises `Refused`."""


class OnlyEverybody:
    """Lets in what is open to everybody, and nothing else."""

    async def admit(self, endpoint: Endpoint, question: Question) -> None:
        """Raises `Refused` for everything that is not open."""
        if endpoint.audience is not Audience.EVERYBODY:
            raise Refused(FORBIDDEN, f'forbidden: cannot get path "{question.path}"')
