"""Finds the admission that gives profiles to pods, for the operator's advice, `placewright doctor` and `placewright profiles who`."""

from __future__ import annotations

from typing import Final

from placewright.kube.client import ApiClient
from placewright.kube.errors import FORBIDDEN, NOT_FOUND, ApiError

ADMISSION_GROUP: Final = "admissionregistration.k8s.io"
#: Names of the objects in manifests/components/profile-assignment and profile-assignment-webhook.
POLICY_NAME: Final = "profile-assignment.placewright.dev"
WEBHOOK_NAME: Final = "placewright-profile-assignment"
_PATHS: Final = (
    f"/apis/{ADMISSION_GROUP}/v1/mutatingadmissionpolicies/{POLICY_NAME}",
    f"/apis/{ADMISSION_GROUP}/v1beta1/mutatingadmissionpolicies/{POLICY_NAME}",
    f"/apis/{ADMISSION_GROUP}/v1/mutatingwebhookconfigurations/{WEBHOOK_NAME}",
)


async def assigns_profiles(client: ApiClient) -> bool | None:
    """Look whether an admission gives profiles to pods in a cluster.

    Returns:
        None if the client may not read that.

    Raises:
        RequestError: the server refused for another reason, or did not answer.
    """
    unknown = False
    for path in _PATHS:
        try:
            await client.get(path)
        except ApiError as problem:
            if problem.status not in (NOT_FOUND, FORBIDDEN):
                raise
            unknown |= problem.status == FORBIDDEN
            continue
        return True
    return None if unknown else False
