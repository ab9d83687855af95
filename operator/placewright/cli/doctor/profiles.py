"""Checks the profiles, the pods that no profile takes, and whether a second scheduler takes the same pods."""

from __future__ import annotations

import contextlib
from typing import Final

from placewright.api.objects import Pod
from placewright.api.profile import SHADOW
from placewright.cli.doctor.patient import CheckResult, Object, Patient, fail, moment, ok, warn
from placewright.cli.livecluster import PODS
from placewright.cli.profiles.connection import if_found
from placewright.cli.profiles.namedprofiles import catalogue, took
from placewright.cli.profiles.profilelist import UNKNOWN, state
from placewright.cli.profiles.unclaimedpods import unclaimed_pods
from placewright.kube.errors import RequestError
from placewright.kube.history import HistoryStore
from placewright.kube.listwatch import Wire
from placewright.kube.profileapi import list_profiles
from placewright.profiles.unclaimed import Why, placed_by_others

_DEFAULT: Final = "default-scheduler"
_LEASE: Final = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler"
_GUIDE: Final = "docs/beside-default-scheduler.md"
_SAMPLE: Final = "500"
#: Conditions about a profile's standing. Every other condition that is True is a warning.
_STANDING: Final = frozenset({"Ready", "Stalled", "Reconciling"})


async def profiles(patient: Patient) -> list[CheckResult]:
    """Check that each profile is in effect as written.

    Args:
        patient: the cluster; its `profiles` are set.
    """
    listed = await if_found(list_profiles(patient.client))
    if listed is None:
        do = "apply the definitions: kubectl apply --server-side -k crds"
        return [fail("profiles", "the API server does not know SchedulingProfiles", do)]
    found = patient.profiles = listed
    if not found:
        do = "kubectl apply -f manifests/base/profile.yaml, or one of manifests/samples"
        return [warn("profiles", "there is none: no pod is placed", do)]
    histories = HistoryStore(patient.client, patient.namespace)
    problems = [problem for profile in found for problem in await _problems(profile, histories)]
    return problems or [ok("profiles", f"{len(found)} in effect: {', '.join(each['metadata']['name'] for each in found)}")]


async def _problems(profile: Object, histories: HistoryStore) -> list[CheckResult]:
    name, (reason, ready, message) = profile["metadata"]["name"], state(profile)
    found: list[CheckResult] = []
    if ready == UNKNOWN:
        found.append(warn("profiles", f"{name}: {message}", "see the result of the check leader"))
    elif ready != "True" and reason != "Paused":
        shown = f"placewright profiles history {name} shows the last good one; " if await _was_good(name, histories) else ""
        found.append(fail("profiles", f"{name}: {reason}: {message}", f"{shown}placewright validate checks a file before it is applied"))
    conditions = (profile.get("status") or {}).get("conditions") or ()
    more = (each for each in conditions if each.get("type") not in _STANDING and each.get("status") == "True")
    found += (warn("profiles", f"{name}: {each['type']}: {each.get('message')}", f"kubectl describe schedprof {name}") for each in more)
    return found


async def _was_good(name: str, histories: HistoryStore) -> bool:
    """Whether the history has a generation of the profile that took effect; False also if it cannot be read."""
    with contextlib.suppress(RequestError):
        return any(took(each) for each in await histories.revisions(name))
    return False


async def unclaimed(patient: Patient) -> list[CheckResult]:
    """Check for waiting pods that no profile takes."""
    found = await unclaimed_pods(patient.client, patient.profiles, HistoryStore(patient.client, patient.namespace))
    return [
        # A similar name may be another scheduler's own; a name that a profile had is not.
        (warn if each.why is Why.MISSPELT else fail)(
            "unclaimed-pods", f"{number} {'pod waits' if number == 1 else 'pods wait'}: {each}", "docs/reload.md#pods-that-no-profile-takes"
        )
        for each, number in found
    ] or [ok("unclaimed-pods", "no pod waits that was likely meant for a profile and that none takes")]


async def packages(_: Patient) -> list[CheckResult]:
    """Check that the plugins of packages installed here can be used. They should be the same as where the operator runs."""
    broken = catalogue().broken
    do = "mend or remove the package, here and in the operator's image; only profiles that name the plugin are refused"
    return [warn("packages", f"plugin {name} {problem}", do) for name, problem in broken.items()] or [
        ok("packages", "every plugin of an installed package loads")
    ]


async def second_scheduler(patient: Patient) -> list[CheckResult]:
    """Check that kube-scheduler does not run while a profile takes pods of its schedulerName."""
    takers = [each for each in patient.profiles if _takes_default(each)]
    lease = await patient.read(_LEASE)
    spec = (lease or {}).get("spec") or {}
    renewed = moment(spec.get("renewTime"))
    # Twice the duration, because one late renewal is not the end of kube-scheduler.
    latest = 2 * float(spec.get("leaseDurationSeconds") or 15)
    alive = bool(spec.get("holderIdentity")) and renewed is not None and patient.seconds_since(renewed) <= latest
    if not takers:
        beside = "kube-scheduler is alive, and" if alive else "kube-scheduler is not seen, and"
        return [ok("second-scheduler", f"{beside} no profile takes {_DEFAULT}")]
    name = takers[0]["metadata"]["name"]
    theirs = await _placed_since(patient, takers[0])
    if theirs:
        said = f"profile {name} takes {_DEFAULT}, and another scheduler places such pods too, {theirs} for one: nodes can be filled twice"
        return [fail("second-scheduler", said, f"give kube-scheduler another name, or the profile: {_GUIDE}")]
    if alive:
        said = f"profile {name} takes {_DEFAULT} while kube-scheduler is alive ({spec['holderIdentity']})"
        do = f"nothing, if kube-scheduler has only another name by now (manifests/overlays/as-default-scheduler); otherwise {_GUIDE}"
        return [warn("second-scheduler", said, do)]
    return [ok("second-scheduler", f"profile {name} takes {_DEFAULT}, and no kube-scheduler is seen beside it")]


def _takes_default(profile: Object) -> bool:
    spec = profile.get("spec") or {}
    return spec.get("schedulerName", _DEFAULT) == _DEFAULT and spec.get("mode") != SHADOW and not spec.get("paused")


async def _placed_since(patient: Patient, profile: Object) -> str:
    """Find a pod of the profile's schedulerName that another scheduler placed after the profile was created; empty for none."""
    since = moment(profile["metadata"].get("creationTimestamp"))
    params = {"fieldSelector": f"spec.schedulerName={_DEFAULT},spec.nodeName!=", "limit": _SAMPLE}
    page = Wire(Pod).page(await patient.client.get(PODS, params))
    for pod in page.items:
        if isinstance(pod, Pod) and placed_by_others(pod):
            created = moment(pod.metadata.creation_timestamp)
            if since is not None and created is not None and created > since:
                return f"{pod.metadata.namespace}/{pod.metadata.name}"
    return ""
