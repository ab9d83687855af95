"""The webhook that gives new pods the profile that selects them, for API servers without MutatingAdmissionPolicy.

The API server sends every new pod to it. Kopf would look up a handler and keep a record for each review, so it is answered without Kopf.
Every replica answers, active or not: Kopf shows no profile to a replica that stands by, so the profiles come from a reflector of their own.
An administrator installs the configuration (`manifests/components/profile-assignment-webhook`); the operator has no right to write it.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Final

import msgspec

from placewright.api.decode import decode
from placewright.api.objects import Pod
from placewright.api.profile import SchedulingProfile
from placewright.api.profileaccess import facts_of
from placewright.api.workloads import Namespace
from placewright.engine.discovery import CallingSink
from placewright.kube.client import ApiClient
from placewright.kube.profiles import PROFILES_PATH
from placewright.kube.reflector import Reflector, Source
from placewright.profiles.assignment import NEVER_IN, assigned_profile, new_pod, patch_of, placing_profile, refusal

#: The last part of the path to which the configuration sends reviews.
HANDLER: Final = "pods"
_CREATE: Final = "CREATE"


class _Request(msgspec.Struct, frozen=True, rename="camel"):
    uid: str
    object: Pod
    operation: str = ""
    namespace: str = ""
    sub_resource: str = ""


class _Review(msgspec.Struct, frozen=True):
    request: _Request


class PodAssignment:
    """Answers reviews of new pods.

    Args:
        client: lists and watches profiles.
        namespaces: namespaces by name, as the scheduler's cache has them.
        own_namespace: own namespace of the operator, whose pods are never given a profile.
    """

    def __init__(self, client: ApiClient, namespaces: Mapping[str, Namespace], own_namespace: str) -> None:
        self._reflector = Reflector(client, Source(PROFILES_PATH, SchedulingProfile), CallingSink[SchedulingProfile]())
        self._namespaces = namespaces
        self._never_in = NEVER_IN | {own_namespace}

    async def run(self) -> None:
        """Keep the profiles up to date until cancelled."""
        await self._reflector.run()

    def answer(self, body: bytes) -> bytes:
        """Answer a review. A pod is always allowed; one that a profile selects is patched.

        The answer warns the pod's creator if the pod will wait because its namespace may not use its profile.

        Args:
            body: an AdmissionReview about a pod.

        Returns:
            An AdmissionReview with the response.

        Raises:
            DecodeError: the body is no such review.
        """
        request = decode(body, _Review).request
        if request.operation != _CREATE or request.sub_resource:
            return answer_of(request.uid, [])
        profiles = list(self._reflector.store.values())
        pod = new_pod(request.object, facts_of(request.namespace, self._namespaces))
        found = assigned_profile(pod, profiles, self._never_in)
        if found is not None:  # its namespace may use it, else it would not be given
            return answer_of(request.uid, patch_of(pod, found))
        mine = None if pod.node_name else placing_profile(pod.scheduler_name, profiles)
        return answer_of(request.uid, [], "" if mine is None else refusal(pod.namespace, mine))


def answer_of(uid: str, patch: list[dict[str, object]], warning: str = "") -> bytes:
    """Write an AdmissionReview that allows an object.

    Args:
        uid: uid of the request.
        patch: operations of a JSON patch; none if the object stays as it is.
        warning: shown to the creator; empty for none.

    Returns:
        The JSON.
    """
    response: dict[str, object] = {"uid": uid, "allowed": True}
    if patch:
        response |= {"patchType": "JSONPatch", "patch": base64.b64encode(msgspec.json.encode(patch)).decode()}
    if warning:
        response["warnings"] = [warning]
    return msgspec.json.encode({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
