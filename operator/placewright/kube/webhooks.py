"""Tells the API server whom to ask about SchedulingProfiles: a ValidatingWebhookConfiguration, by server-side apply."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from placewright.api.profile import GROUP, PLURAL, VERSION
from placewright.kube.client import ApiClient
from placewright.kube.discovery import collection_path

FIELD_MANAGER: Final = "placewright"
#: How messages name the webhook.
WEBHOOK_NAME: Final = f"profiles.{GROUP}"
_API_GROUP: Final = "admissionregistration.k8s.io"
_PATH: Final = collection_path(_API_GROUP, "v1", "validatingwebhookconfigurations")
_APPLY_PATCH: Final = "application/apply-patch+yaml"
#: Seconds that the API server waits for an answer: whoever applies a profile waits with it.
_PATIENCE: Final = 5


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
        "timeoutSeconds": _PATIENCE,
        "admissionReviewVersions": ["v1"],
    }
    body = {
        "apiVersion": f"{_API_GROUP}/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": name, "labels": {"app.kubernetes.io/name": "placewright"}},
        "webhooks": [webhook],
    }
    await client.patch(f"{_PATH}/{name}", body, {"fieldManager": FIELD_MANAGER, "force": "true"}, _APPLY_PATCH)
