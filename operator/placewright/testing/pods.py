"""Pods in a few words: `pod("web").requests(cpu="500m").spread("zone").build()`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from placewright.api.objects import Pod
from placewright.api.podgroups import GROUP_LABEL
from placewright.api.pods import PodInfo
from placewright.testing.objectmaker import Body, ObjectMaker, requirement

_REQUIRED, _PREFERRED = "requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"


class PodMaker(ObjectMaker[Pod]):
    """Builds a pod step by step; see `pod`."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._main: Body = {"name": "main", "image": "main"}
        #: Further containers; spread constraints, each with its labels, or None for the pod's own.
        self._containers: tuple[Body, ...] = ()
        self._spreads: tuple[tuple[Body, Body | None], ...] = ()

    # --- containers ----------------------------------------------------------------------------------------------------------------

    def requests(self, amounts: Mapping[str, str] | None = None, /, **more: str) -> Self:
        """Let the main container request these amounts: `requests(cpu="500m")`, `requests({"example.com/gpu": "1"})`."""
        return self._resources("requests", {**(amounts or {}), **more})

    def limits(self, amounts: Mapping[str, str] | None = None, /, **more: str) -> Self:
        """Limit the main container to these amounts."""
        return self._resources("limits", {**(amounts or {}), **more})

    def _resources(self, field: str, amounts: Body) -> Self:
        kept = self._main.get("resources", {})
        return self._with_main(resources={**kept, field: {**kept.get(field, {}), **amounts}})

    def image(self, image: str) -> Self:
        """Let the main container run this image."""
        return self._with_main(image=image)

    def host_port(self, port: int, *, ip: str = "", protocol: str = "TCP") -> Self:
        """Let the main container take a port of its node.

        Args:
            port: number of the port on the node, and in the container.
            ip: the node's address; empty: all its addresses.
            protocol: `TCP`, `UDP` or `SCTP`.

        Returns:
            A new maker; this one stays as it is.
        """
        taken = {"containerPort": port, "hostPort": port, "hostIP": ip, "protocol": protocol}
        return self._with_main(ports=[*self._main.get("ports", ()), taken])

    def _with_main(self, **fields: Any) -> Self:
        return self._changed(_main={**self._main, **fields})

    def container(self, name: str, /, *, image: str = "", **requests: str) -> Self:
        """Add a container beside the main one.

        Args:
            name: unique in the pod.
            image: that it runs; empty: one of the container's name.
            requests: amounts, such as `cpu="500m"`, which add to the main container's.

        Returns:
            A new maker; this one stays as it is.
        """
        return self._changed(_containers=(*self._containers, _container(name, image, requests)))

    def init_container(self, name: str, /, *, image: str = "", **requests: str) -> Self:
        """Add an init container, which ends before the main container starts.

        Args:
            name: unique in the pod.
            image: that it runs; empty: one of the container's name.
            requests: amounts, such as `cpu="500m"`. The pod requests the larger of these and of its containers' sum.

        Returns:
            A new maker; this one stays as it is.
        """
        return self._append("spec", "initContainers", _container(name, image, requests))

    def sidecar(self, name: str, /, *, image: str = "", **requests: str) -> Self:
        """Add a sidecar: an init container that goes on running.

        Args:
            name: unique in the pod.
            image: that it runs; empty: one of the container's name.
            requests: amounts, such as `cpu="500m"`, which add to the containers' and to those of later init containers.

        Returns:
            A new maker; this one stays as it is.
        """
        return self._append("spec", "initContainers", _container(name, image, requests) | {"restartPolicy": "Always"})

    def overhead(self, **amounts: str) -> Self:
        """Set what the pod takes beside its containers."""
        return self.spec(overhead=amounts)

    # --- who decides it, and when --------------------------------------------------------------------------------------------------

    def scheduler(self, name: str) -> Self:
        """Set the schedulerName; `default-scheduler` without this."""
        return self.spec(schedulerName=name)

    def priority(self, priority: int) -> Self:
        """Set the priority."""
        return self.spec(priority=priority)

    def never_preempts(self) -> Self:
        """Set the preemption policy `Never`."""
        return self.spec(preemptionPolicy="Never")

    def gates(self, *names: str) -> Self:
        """Set the scheduling gates; none removes them."""
        return self.spec(schedulingGates=[{"name": name} for name in names] or None)

    def in_group(self, name: str) -> Self:
        """Make the pod a member of Kubernetes' own PodGroup of this name, in its namespace."""
        return self.spec(schedulingGroup={"podGroupName": name})

    def in_coscheduling_group(self, name: str) -> Self:
        """Make the pod a member of the PodGroup of scheduler-plugins of this name, in its namespace."""
        return self.labels({GROUP_LABEL: name})

    # --- where it is -------------------------------------------------------------------------------------------------------------

    def on(self, node: str) -> Self:
        """Put the pod on a node; empty: on none."""
        return self.spec(nodeName=node)

    def phase(self, phase: str) -> Self:
        """Set the phase, such as `Running` or `Succeeded`."""
        return self.status(phase=phase)

    def nominated(self, node: str) -> Self:
        """Nominate a node for the pod, as preemption does."""
        return self.status(nominatedNodeName=node)

    # --- where it may go -----------------------------------------------------------------------------------------------------------

    def node_selector(self, labels: Mapping[str, str] | None = None, /, **more: str) -> Self:
        """Require nodes with these labels."""
        return self.spec(nodeSelector={**self._body.get("spec", {}).get("nodeSelector", {}), **(labels or {}), **more})

    def node_affinity(self, key: str, *values: str, operator: str = "", weight: int = 0) -> Self:
        """Require nodes whose label has one of these values; without values: nodes that have the label.

        Several calls without a weight must all hold: they are expressions of one term.

        Args:
            key: the node label's.
            values: the label has one of them.
            operator: `NotIn`, `DoesNotExist`, `Gt` or `Lt`, if it is neither `In` nor `Exists`.
            weight: 1 to 100: such nodes are preferred instead of required; 0: required.

        Returns:
            A new maker; this one stays as it is.

        Example:
            pod("web").node_affinity("disk", "ssd").node_affinity("cores", "8", operator="Gt", weight=50)
        """
        expression = requirement(key, values, operator)
        affinity = self._affinity("nodeAffinity")
        if weight:
            affinity[_PREFERRED] = [*affinity.get(_PREFERRED, ()), {"weight": weight, "preference": {"matchExpressions": [expression]}}]
        else:
            # Terms are alternatives; the expressions of one term must all hold.
            terms = affinity.get(_REQUIRED, {}).get("nodeSelectorTerms", [{}])
            expressions = [*terms[0].get("matchExpressions", ()), expression]
            affinity[_REQUIRED] = {"nodeSelectorTerms": [{"matchExpressions": expressions}]}
        return self._with_affinity("nodeAffinity", affinity)

    def pod_affinity(self, topology_key: str, labels: Mapping[str, str] | None = None, /, *, weight: int = 0, **more: str) -> Self:
        """Require, or with a weight prefer, domains that hold a pod with these labels in the pod's namespace.

        Args:
            topology_key: the node label whose values are the domains.
            labels: the other pod's labels; a mapping takes keys that are no Python names.
            weight: 1 to 100: such domains are preferred; 0: required.
            more: further labels: `pod_affinity("zone", app="db")`.

        Returns:
            A new maker; this one stays as it is.
        """
        return self._between_pods("podAffinity", topology_key, {**(labels or {}), **more}, weight)

    def pod_anti_affinity(self, topology_key: str, labels: Mapping[str, str] | None = None, /, *, weight: int = 0, **more: str) -> Self:
        """Avoid domains that hold a pod with these labels in the pod's namespace.

        Args:
            topology_key: the node label whose values are the domains.
            labels: the other pod's labels; a mapping takes keys that are no Python names.
            weight: 1 to 100: other domains are preferred; 0: such domains are rejected.
            more: further labels: `pod_anti_affinity("zone", app="web")`.

        Returns:
            A new maker; this one stays as it is.
        """
        return self._between_pods("podAntiAffinity", topology_key, {**(labels or {}), **more}, weight)

    def _between_pods(self, kind: str, topology_key: str, labels: Body, weight: int) -> Self:
        term = {"topologyKey": topology_key, "labelSelector": {"matchLabels": labels}}
        field, entry = (_PREFERRED, {"weight": weight, "podAffinityTerm": term}) if weight else (_REQUIRED, term)
        affinity = self._affinity(kind)
        affinity[field] = [*affinity.get(field, ()), entry]
        return self._with_affinity(kind, affinity)

    def _affinity(self, kind: str) -> Body:
        return dict((self._body.get("spec", {}).get("affinity") or {}).get(kind, {}))

    def _with_affinity(self, kind: str, affinity: Body) -> Self:
        return self.spec(affinity={**(self._body.get("spec", {}).get("affinity") or {}), kind: affinity})

    def spread(
        self, topology_key: str, labels: Mapping[str, str] | None = None, /, *, max_skew: int = 1, hard: bool = True, **fields: Any
    ) -> Self:
        """Spread the pod and pods like it over the domains of a node label.

        Args:
            topology_key: the node label's key.
            labels: labels of the pods that count; None: the pod's own labels. Without any, all pods of its namespace count, from 1.38 on.
            max_skew: number of pods by which domains may differ.
            hard: whether a node that breaks this is rejected (`DoNotSchedule`) or only scores less (`ScheduleAnyway`).
            fields: other fields of the constraint, as in a manifest: `minDomains=3`.

        Returns:
            A new maker; this one stays as it is.

        Example:
            pod("web").labels(app="web").spread("zone", max_skew=2).spread("kubernetes.io/hostname", hard=False)
        """
        when = "DoNotSchedule" if hard else "ScheduleAnyway"
        constraint = {"topologyKey": topology_key, "maxSkew": max_skew, "whenUnsatisfiable": when, **fields}
        return self._changed(_spreads=(*self._spreads, (constraint, None if labels is None else dict(labels))))

    def tolerates(self, key: str = "", value: str = "", *, effect: str = "") -> Self:
        """Tolerate taints.

        Args:
            key: the taints'; empty: any key.
            value: the taints'; empty: any value.
            effect: the taints'; empty: all effects.

        Returns:
            A new maker; this one stays as it is.
        """
        toleration = {"key": key, "effect": effect} | ({"operator": "Equal", "value": value} if value else {"operator": "Exists"})
        return self._append("spec", "tolerations", toleration)

    # --- volumes and devices ---------------------------------------------------------------------------------------------------------

    def volume(self, **source: Any) -> Self:
        """Add a volume from this source, as in a manifest: `volume(awsElasticBlockStore={"volumeID": "vol-1"})`."""
        number = len(self._body.get("spec", {}).get("volumes", ()))
        return self._append("spec", "volumes", {"name": f"volume-{number}", **source})

    def volumes(self, *sources: Mapping[str, Any]) -> Self:
        """Add a volume from each of these sources, as `volume` does."""
        made = self
        for source in sources:
            made = made.volume(**source)
        return made

    def volume_claims(self, *claims: str) -> Self:
        """Add a volume for each of these PersistentVolumeClaims."""
        return self.volumes(*({"persistentVolumeClaim": {"claimName": claim}} for claim in claims))

    def resource_claims(self, *claims: str) -> Self:
        """Let the pod use these ResourceClaims; each stands in the pod under its own name."""
        return self._append("spec", "resourceClaims", *({"name": claim, "resourceClaimName": claim} for claim in claims))

    # --- the pod -------------------------------------------------------------------------------------------------------------------

    @property
    def manifest(self) -> Body:
        """The pod as JSON; see `ObjectMaker.manifest`."""
        found = super().manifest
        spec: Body = {"containers": [self._main, *self._containers], **found.get("spec", {})}
        # Decided here and not in `spread`, because a later step may still set the pod's own labels.
        if self._spreads:
            own = self._metadata.get("labels", {})
            spread = [
                {**constraint, "labelSelector": constraint.get("labelSelector", {"matchLabels": own if labels is None else labels})}
                for constraint, labels in self._spreads
            ]
            spec["topologySpreadConstraints"] = [*spec.get("topologySpreadConstraints", ()), *spread]
        return found | {"spec": spec}

    def build(self) -> PodInfo:
        """Decode the pod and derive what the scheduler derives from it.

        Raises:
            DecodeError: a field does not have the shape of a pod's; the message names the field.
            QuantityError: an amount is no quantity.
        """
        return PodInfo(self.decoded())


def pod(
    name: str,
    *,
    on: str = "",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    cpu: str = "",
    memory: str = "",
    **spec: Any,
) -> PodMaker:
    """Begin a pod of the default scheduler in the namespace `default`, with one container, which requests nothing.

    Args:
        name: its name; its uid is `uid-NAME`.
        on: the node that it stands on; empty for one that waits.
        labels: its labels.
        annotations: its annotations.
        cpu: requested, such as `500m`.
        memory: requested, such as `1Gi`.
        spec: other fields of the spec, as in a manifest: `pod("web", nodeSelector={"disk": "ssd"})`.

    Returns:
        The pod's maker.

    Example:
        pod("web").labels(app="web").requests(cpu="500m").spread("zone").tolerates("gpu").build()
    """
    made = PodMaker(name)
    if labels:
        made = made.labels(labels)
    if annotations:
        made = made.annotations(annotations)
    requests = {resource: amount for resource, amount in (("cpu", cpu), ("memory", memory)) if amount}
    if requests:
        made = made.requests(requests)
    return made.spec(**({"nodeName": on} if on else {}), **spec) if on or spec else made


def _container(name: str, image: str, requests: Mapping[str, str]) -> Body:
    return {"name": name, "image": image or name, "resources": {"requests": dict(requests)}}
