"""The operator's writes about SchedulingProfiles: status, events, and the admission webhook. It never writes a `spec`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from placewright.api.objects import ObjectMeta
from placewright.api.profile import GROUP, KIND, PLURAL, VERSION
from placewright.kube.client import ApiClient
from placewright.kube.discovery import collection_path
from placewright.kube.writers.events import Regarding, core_event

FIELD_MANAGER: Final = "placewright"
PROFILES_PATH: Final = collection_path(GROUP, VERSION, PLURAL)

#: Server-side apply; JSON is YAML.
APPLY_PATCH: Final = "application/apply-patch+yaml"


async def apply_status(client: ApiClient, name: str, status: Mapping[str, Any]) -> None:
    """Apply the status of a profile server-side.

    Fields and conditions of an earlier status that are missing in this one are removed; those of other managers stay. If another manager
    wrote one of our fields, our value counts.

    No API server compares a uid here (seen: 1.20). So a status for a profile that was just deleted may reach a new profile of its name;
    that profile's own status then replaces it.

    Args:
        client: the API server's client.
        name: name of the profile.
        status: the whole status that the operator has to say.

    Raises:
        RequestError: the server refused, or did not answer; 404 when the profile is gone.
    """
    body = {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": KIND,
        "metadata": {"name": name},
        "status": status,
    }
    params = {"fieldManager": FIELD_MANAGER, "force": "true"}
    await client.patch(f"{profile_path(name)}/status", body, params, APPLY_PATCH)


def profile_path(name: str) -> str:
    """Build the path of a SchedulingProfile."""
    return f"{PROFILES_PATH}/{name}"


class ProfileEvents:
    """Writes core/v1 events about profiles, which every API server serves.

    Profiles change rarely, so each event is one request, without a queue.
    """

    def __init__(self, client: ApiClient, instance: str, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        """Write nothing yet.

        Args:
            client: the API server's client.
            instance: the reporter, such as the replica's identity.
            now: the time of day.
        """
        self._client = client
        self._instance = instance
        self._now = now

    async def record(self, profile: ObjectMeta, kind: str, reason: str, note: str) -> None:
        """Write one event. Events about cluster-scoped objects live in the namespace `default`.

        Args:
            profile: metadata of the profile.
            kind: `Normal` or `Warning`.
            reason: one word in CamelCase.
            note: the message; cut to 1,024 bytes.

        Raises:
            RequestError: the server refused, or did not answer.
        """
        about = Regarding(f"{GROUP}/{VERSION}", KIND, "", profile.name, profile.uid, profile.resource_version, FIELD_MANAGER)
        body = core_event("default", about, (kind, reason, note), self._instance, self._now())
        body["action"] = "Reload"
        await self._client.post("/api/v1/namespaces/default/events", body)


#: The webhook's name in the API server's messages.
WEBHOOK_NAME: Final = f"profiles.{GROUP}"
_WEBHOOKS_GROUP: Final = "admissionregistration.k8s.io"
_WEBHOOKS_PATH: Final = collection_path(_WEBHOOKS_GROUP, "v1", "validatingwebhookconfigurations")
#: Seconds that the API server waits for the webhook's answer, and with it the person who applies a profile.
_WEBHOOK_SECONDS: Final = 5


async def apply_webhook(client: ApiClient, name: str, client_config: Mapping[str, Any], failure_policy: str) -> None:
    """Create or change the configuration of our admission webhook.

    Args:
        client: the API server's client.
        name: name of the ValidatingWebhookConfiguration.
        client_config: its field `clientConfig`: address and CA of the webhook.
        failure_policy: `Fail` or `Ignore`: the API server's decision when the webhook does not answer.

    Raises:
        RequestError: the server refused, or did not answer.
    """
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
    await client.patch(f"{_WEBHOOKS_PATH}/{name}", body, {"fieldManager": FIELD_MANAGER, "force": "true"}, APPLY_PATCH)
