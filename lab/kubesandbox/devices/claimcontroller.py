"""Creates and releases claims with their pods, like kube-controller-manager's `resourceclaim` controller.

A pod that names a template gets a claim of its own. A finished or deleted pod no longer holds its claims. A claim without consumers frees
its devices. A claim that was made for a pod is deleted if the pod will not run.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Final

from kubesandbox.controllers.volumecontroller import Backlog
from kubesandbox.devices.podclaims import (
    FINALIZER,
    POD_CLAIM_NAME,
    PodClaim,
    allocation,
    consumer,
    consumers,
    generated_claim,
    is_done,
    is_reserved_for,
    may_be_reserved,
    owner,
    pod_claims,
)
from kubesandbox.devices.podevents import PodEvents
from kubesandbox.resources import PODS, RESOURCE_CLAIMS, GroupResource
from kubesandbox.status import ApiError, Object
from kubesandbox.storage.store import Change, Index
from kubesandbox.storage.writes import Writes

TEMPLATES: Final[GroupResource] = ("resource.k8s.io", "resourceclaimtemplates")


class ClaimController:
    """Listens to pods, claims and templates, and acts a moment later, after the answer to the write.

    Its only state is the store, which it reads at the start. So it may start again at any time.
    """

    def __init__(self, writes: Writes) -> None:
        self._writes = writes
        self._store = writes.store
        self._pods, self._claims = writes.registry.served(PODS), writes.registry.served(RESOURCE_CLAIMS)
        self._events = PodEvents(writes, "resource_claim")
        self._users = Index(self._store, PODS, _named)
        self._owned = Index(self._store, RESOURCE_CLAIMS, lambda claim: [owner(claim)[1]])
        self._backlog = Backlog(self._store, {PODS: self._sync_pod, RESOURCE_CLAIMS: self._sync_claim})
        for key, listener in ((PODS, self._on_pod), (RESOURCE_CLAIMS, self._on_claim), (TEMPLATES, self._on_template)):
            self._store.collection(key).listeners.append(listener)
        for key, listener in ((RESOURCE_CLAIMS, self._on_claim), (PODS, self._on_pod)):
            for stored in self._store.listed(key):
                listener(Change(stored.version, None, stored))

    # --- objects to process ---

    def _on_pod(self, change: Change) -> None:
        stored = change.current or change.departed
        pod, claims = stored.object, list(pod_claims(stored.object))
        if change.current is None or is_done(pod):
            self._backlog.add(RESOURCE_CLAIMS, [(stored.namespace, each.claim) for each in claims if each.claim])
        elif claims and "deletionTimestamp" not in pod["metadata"]:
            self._backlog.add(PODS, [(stored.namespace, stored.name)])

    def _on_claim(self, change: Change) -> None:
        stored = change.current or change.departed
        pod = owner(stored.object)[0]
        self._backlog.add(PODS, sorted({*self._users[stored.namespace, stored.name], *([(stored.namespace, pod)] if pod else ())}))
        self._backlog.add(RESOURCE_CLAIMS, [] if change.current is None else [(stored.namespace, stored.name)])

    def _on_template(self, change: Change) -> None:
        if change.current is not None:
            self._backlog.add(PODS, sorted(self._users[change.current.namespace, change.current.name, TEMPLATES]))

    # --- pods ---

    def _sync_pod(self, pod: Object) -> None:
        if "deletionTimestamp" in pod["metadata"] or is_done(pod):
            return
        made: dict[str, str] = {}
        for each in pod_claims(pod):
            if each.template and not self._is_made(pod, each):
                try:
                    made[each.name] = self._find_or_make(pod, each)
                except ApiError as refused:
                    message = f"PodResourceClaim {each.name}: {refused.message}"
                    self._events.warn(pod, "FailedResourceClaimCreation", message)
                    return
        if made:
            self._tell(pod, made)
        elif (pod.get("spec") or {}).get("nodeName"):
            self._reserve_all(pod)

    def _is_made(self, pod: Object, wanted: PodClaim) -> bool:
        stored = self._store.get(RESOURCE_CLAIMS, pod["metadata"]["namespace"], wanted.claim)
        return stored is not None and owner(stored.object)[1] == pod["metadata"]["uid"]

    def _find_or_make(self, pod: Object, wanted: PodClaim) -> str:
        """Return the claim's name. The claim may exist already, if only the pod's status could not be written."""
        for place in sorted(self._owned[pod["metadata"]["uid"]]):
            stored = self._store.get(RESOURCE_CLAIMS, *place)
            if stored is not None and (stored.object["metadata"].get("annotations") or {}).get(POD_CLAIM_NAME) == wanted.name:
                return stored.name
        namespace = pod["metadata"]["namespace"]
        template = self._store.get(TEMPLATES, namespace, wanted.template)
        if template is None:
            missing = f'resourceclaimtemplate.resource.k8s.io "{wanted.template}" not found'
            raise ApiError(404, "NotFound", f'resource claim template "{wanted.template}": {missing}')
        return self._writes.create(self._claims, namespace, generated_claim(pod, wanted, template.object)).name

    def _tell(self, pod: Object, made: dict[str, str]) -> None:
        def tell(content: Object) -> None:
            status = content.setdefault("status", {})
            others = [each for each in status.get("resourceClaimStatuses") or () if each.get("name") not in made]
            new = [{"name": name, "resourceClaimName": claim} for name, claim in made.items()]
            status["resourceClaimStatuses"] = others + new

        self._writes.modify(self._pods, pod["metadata"]["namespace"], pod["metadata"]["name"], tell)

    def _reserve_all(self, pod: Object) -> None:
        """Reserve claims for a pod that did not get its node from a scheduler, because schedulers reserve claims themselves."""
        for each in pod_claims(pod):
            stored = self._store.get(RESOURCE_CLAIMS, pod["metadata"]["namespace"], each.claim)
            if stored is None or (each.owned and owner(stored.object)[1] != pod["metadata"]["uid"]):
                return
            claim = stored.object
            if allocation(claim) is not None and not is_reserved_for(claim, pod) and may_be_reserved(claim):
                self._edit(claim, lambda content: content["status"].update(reservedFor=[*consumers(content), consumer(pod)]))

    # --- claims ---

    def _sync_claim(self, claim: Object) -> None:
        held = consumers(claim)
        if any(each.get("apiGroup") or each.get("resource") != "pods" for each in held):
            return  # a consumer of an unknown kind has it
        kept = [each for each in held if self._still_holds(claim["metadata"]["namespace"], each)]
        protected = FINALIZER in (claim["metadata"].get("finalizers") or ())
        ending = "deletionTimestamp" in claim["metadata"]
        if len(kept) < len(held):
            self._edit(claim, lambda content: _release(content, kept, deallocate=protected and not kept))
        elif protected and ending and not kept and allocation(claim) is not None:
            self._edit(claim, lambda content: _release(content, kept, deallocate=True))
        if protected and not kept and (len(kept) < len(held) or ending):
            self._edit(claim, _unprotect)
        if not kept:
            self._delete_if_needless(claim)

    def _still_holds(self, namespace: str, held: Object) -> bool:
        stored = self._store.get(PODS, namespace, str(held.get("name")))
        return stored is not None and stored.uid == held.get("uid") and not is_done(stored.object)

    def _delete_if_needless(self, claim: Object) -> None:
        """Delete the claim if its pod is done or replaced. If the pod is gone, owner references delete the claim."""
        name, uid = owner(claim)
        pod = self._store.get(PODS, claim["metadata"]["namespace"], name) if name else None
        found = self._store.get(RESOURCE_CLAIMS, claim["metadata"]["namespace"], claim["metadata"]["name"])
        if pod is not None and found is not None and (pod.uid != uid or is_done(pod.object)):
            self._writes.delete(self._claims, found.namespace, found.name)

    def _edit(self, claim: Object, change: Callable[[Object], None]) -> None:
        self._writes.modify(self._claims, claim["metadata"]["namespace"], claim["metadata"]["name"], change)


def _named(pod: Object) -> Iterator[Hashable]:
    """Yield the claims and the templates that a pod names."""
    for each in pod_claims(pod):
        yield (pod["metadata"]["namespace"], each.claim)
        yield (pod["metadata"]["namespace"], each.template, TEMPLATES)


def _release(claim: Object, kept: list[Object], *, deallocate: bool) -> None:
    status = claim["status"]
    status["reservedFor"] = kept
    if not kept:
        del status["reservedFor"]
    if deallocate:
        status.pop("allocation", None)
        status.pop("devices", None)


def _unprotect(claim: Object) -> None:
    kept = [each for each in claim["metadata"].get("finalizers") or () if each != FINALIZER]
    claim["metadata"]["finalizers"] = kept
    if not kept:
        del claim["metadata"]["finalizers"]
