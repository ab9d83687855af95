"""What the operator writes about SchedulingProfiles, never to their `spec`: status, events, and whom the API server asks about them."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from placewright.api.objects import ObjectMeta
from placewright.api.profile import GROUP, KIND, PLURAL, VERSION
from placewright.kube.client import ApiClient
from placewright.kube.discovery import collection_path
from placewright.kube.writers.events import cut_note, seconds_time

FIELD_MANAGER: Final = "placewright"
PROFILES_PATH: Final = collection_path(GROUP, VERSION, PLURAL)


#: Server-side apply; JSON is YAML.
_APPLY_PATCH: Final = "application/apply-patch+yaml"


async def apply_status(client: ApiClient, name: str, status: Mapping[str, Any]) -> None:
    """Server-side apply: `status` is all that we say of the profile of this name.

    Fields and conditions that we said before and do not say now go; those of others stay. Where others wrote what we say, ours counts.
    Raises `ApiError` (404 when the profile is gone) and `Unreachable`. No API server looks at a uid here (seen: 1.20): what is meant for a
    profile that was just deleted may reach its namesake, which then is written to anew.
    """
    body = {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": KIND,
        "metadata": {"name": name},
        "status": status,
    }
    params = {"fieldManager": FIELD_MANAGER, "force": "true"}
    await client.patch(f"{profile_path(name)}/status", body, params, _APPLY_PATCH)


def profile_path(name: str) -> str:
    """Path of the SchedulingProfile of that name."""
    return f"{PROFILES_PATH}/{name}"


class ProfileEvents:
    """Writes core/v1 events about profiles, which every API server serves; they are few, so each is one request."""

    def __init__(self, client: ApiClient, instance: str, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        """`instance`: who reports, such as the replica's identity."""
        self._client = client
        self._instance = instance[:128]
        self._now = now

    async def record(self, profile: ObjectMeta, kind: str, reason: str, note: str) -> None:
        """Write one event; events about cluster-scoped objects live in the namespace `default`. Raises `RequestError`."""
        now = self._now()
        # Without eventTime: with it, Kubernetes 1.20 refuses events about what has no namespace.
        body = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{profile.name}.{secrets.token_hex(8)}", "namespace": "default"},
            "involvedObject": {
                "apiVersion": f"{GROUP}/{VERSION}",
                "kind": KIND,
                "name": profile.name,
                "uid": profile.uid,
                "resourceVersion": profile.resource_version,
            },
            "type": kind,
            "reason": reason,
            "action": "Reload",
            "message": cut_note(note),
            "reportingComponent": FIELD_MANAGER,
            "reportingInstance": self._instance,
            "source": {"component": FIELD_MANAGER},
            "firstTimestamp": seconds_time(now),
            "lastTimestamp": seconds_time(now),
            "count": 1,
        }
        await self._client.post("/api/v1/namespaces/default/events", body)


#: How messages name the webhook.
WEBHOOK_NAME: Final = f"profiles.{GROUP}"
_WEBHOOKS_GROUP: Final = "admissionregistration.k8s.io"
_WEBHOOKS_PATH: Final = collection_path(_WEBHOOKS_GROUP, "v1", "validatingwebhookconfigurations")
#: Seconds that the API server waits for an answer: whoever applies a profile waits with it.
_WEBHOOK_SECONDS: Final = 5


async def apply_webhook(client: ApiClient, name: str, client_config: Mapping[str, Any], failure_policy: str) -> None:
    """Create or change the configuration `name`; `client_config` as its field of that name. Raises `ApiError`, `Unreachable`."""
    rule = {
        "apiGroups": [GROUP],
        "apiVersions": [VERSION],
        "resources": [PLURAL],
        "operations": ["CREATE", "UPDATE"],
        "scope": "Cluster",
    }
    webhook = {
        "name": WEBHOOK_NAME,
        "clientConfig": client_config,
        "rules": [rule],
        "failurePolicy": failure_policy,
        "sideEffects": "None",
        "timeoutSeconds": _WEBHOOK_SECONDS,
        "admissionReviewVersions": ["v1"],
    }
    body = {
        "apiVersion": f"{_WEBHOOKS_GROUP}/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": name, "labels": {"app.kubernetes.io/name": "placewright"}},
        "webhooks": [webhook],
    }
    await client.patch(f"{_WEBHOOKS_PATH}/{name}", body, {"fieldManager": FIELD_MANAGER, "force": "true"}, _APPLY_PATCH)
