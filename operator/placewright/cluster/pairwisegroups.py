"""Groups of pods that pairwise plugins cannot tell apart, and indexes that find the groups a selection picks (decision 31).

`CarriedTerms` indexes the terms of existing pods by the labels that they select. A newcomer is compared with terms that name its labels.

Terms are compiled when the first pod that carries them is shown or assumed, for all profiles at once. So each decision finds
them compiled, also the first one of a new leader.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, KeysView, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Final

from placewright.api.boundedcache import forgets_unasked
from placewright.api.bytecount import bytes_of, object_bytes
from placewright.api.counts import add_count, take_out
from placewright.api.labeltests import LabelTest, label_tests
from placewright.api.objects import Affinity
from placewright.api.pods import PairwiseKey, PodInfo
from placewright.api.selectors import CompiledRequirement
from placewright.cluster.affinityterms import Term, compile_terms
from placewright.cluster.podselections import AffinityCarrier, PodSelection
from placewright.cluster.selectorindex import SelectorIndex
from placewright.cluster.tally import CountedIn


@dataclass(frozen=True, slots=True, eq=False)
class CarriedTerm:
    """One term of existing pods.

    Attributes:
        carrier: pods that have it.
        term: compiled.
        required: true for required affinity and anti-affinity.
        weight: points that it adds to its domain. None for required anti-affinity, which keeps newcomers out. Required affinity has 1,
            and the profile says how much that counts.
    """

    carrier: AffinityCarrier
    term: Term
    required: bool
    weight: int | None


class CarriedTerms:
    """Required anti-affinity and all terms that score, of all carriers of one cluster.

    Invariant: the index has the terms of the carriers that there are, each once. A term that looks for nothing is left
    out. A term with a namespace selector is in the index's place for all namespaces, because their labels change.

    Attributes:
        changes: number of carriers that came or went.
    """

    def __init__(self) -> None:
        self.changes = 0
        self._index: SelectorIndex[CarriedTerm] = SelectorIndex()
        self._of: dict[AffinityCarrier, list[CarriedTerm]] = {}
        self._mentioned: Counter[str] = Counter()

    @property
    def carriers(self) -> KeysView[AffinityCarrier]:
        """The carriers that there are; a view."""
        return self._of.keys()

    @property
    def version(self) -> int:
        """Grows with every term that comes or goes."""
        return self._index.version

    def mentioned(self, labels: Iterable[tuple[str, str]]) -> frozenset[tuple[str, str]]:
        """Keep the labels that some term selects; the others cannot make a difference."""
        return frozenset([pair for pair in labels if pair[0] in self._mentioned])

    def meeting(self, namespace: str, labels: Collection[tuple[str, str]]) -> Iterator[CarriedTerm]:
        """Find the terms that may mean a pod.

        Returns:
            Terms, each once; the caller tests them.
        """
        return self._index.meeting(namespace, labels)

    def stamps(self, namespace: str, labels: Collection[tuple[str, str]]) -> tuple[int, ...]:
        """Return a value that stays equal as long as the same terms meet a pod.

        Args:
            namespace: namespace of the pod.
            labels: labels of the pod, in the same order each time.
        """
        return self._index.stamps(namespace, labels)

    def take_up(self, carrier: AffinityCarrier, affinity: Affinity) -> None:
        """Compile and add the terms of a carrier."""
        self.changes += 1
        terms = self._of[carrier] = list(_terms(carrier, affinity))
        for each in terms:
            term = each.term
            assert term.selector is not None
            self._mentioned.update([expression.key for expression in term.selector.expressions])
            self._index.add(each, None if term.namespace_selector is not None else term.namespaces, term.selector)

    def lay_down(self, carrier: AffinityCarrier) -> None:
        """Remove the terms of a carrier; harmless for an unknown one."""
        terms = self._of.pop(carrier, None)
        if terms is None:
            return
        self.changes += 1
        for each in terms:
            self._index.discard(each)
            assert each.term.selector is not None
            for expression in each.term.selector.expressions:
                add_count(self._mentioned, expression.key, -1)


def _terms(carrier: AffinityCarrier, affinity: Affinity) -> Iterator[CarriedTerm]:
    """Return the terms that look for something."""
    compiled = compile_terms(affinity, carrier.namespace).terms
    avoided = [(True, None, term) for term in compiled.anti_affinity]
    wanted = [(True, 1, term) for term in compiled.affinity]
    liked = [(False, weight, term) for weight, term in compiled.preferred]
    for required, weight, term in (*avoided, *wanted, *liked):
        if term.selector is not None:
            yield CarriedTerm(carrier, term, required, weight)


#: Groups without pods that are kept, at most, in number and in bytes: a dry run removes the last pod of a group and adds it again.
_MAX_EMPTY_GROUPS: Final = 16_384
_MAX_EMPTY_BYTES: Final = 32 * 2**20
#: Bytes of a group and its places in the indexes; and copies of each byte of its key: pairs, labels by name, and each indexed label.
_GROUP_BYTES: Final = 1024
_INDEXED: Final = 3
#: Copies of an affinity: the decoded one, and the compiled one.
_COMPILED: Final = 2
#: Number of groups up to which testing each one is cheaper than combining the selector's expressions.
_FEW_GROUPS: Final = 16


@dataclass(slots=True, eq=False)
class PairwiseGroup:
    """One group: its pods by row, and the tallies that count them.

    Attributes:
        key: the part that the group's pods have in common.
        labels: the key's labels, by name.
        rows: number of pods, by row; never 0.
        tallies: the tallies whose selection picks this group.
        affinity_bytes: bytes of the affinity that the pods carry.
    """

    key: PairwiseKey
    labels: Mapping[str, str]
    rows: dict[int, int] = field(default_factory=dict)
    tallies: list[CountedIn] = field(default_factory=list)
    affinity_bytes: int = 0

    @property
    def nbytes(self) -> int:
        """Bytes that the group needs without pods, estimated."""
        return _GROUP_BYTES + _INDEXED * bytes_of(self.key) + self.affinity_bytes


_Groups = dict[PairwiseGroup, None]


class PairwiseGroups:
    """All groups that have pods, and groups that had some lately.

    Invariant: every group is in `_by_namespace` and in `_by_carrier` once. For each of its labels whose key is in `_by_label`,
    it is under that key, its value and its namespace. A key enters `_by_label` when a selection first asks for it, and
    leaves with the last group that has it.

    Attributes:
        carried: terms of the groups' affinities, compiled.
    """

    def __init__(self) -> None:
        self.carried = CarriedTerms()
        self._by_namespace: dict[str, dict[PairwiseKey, PairwiseGroup]] = {}
        self._by_carrier: dict[AffinityCarrier, _Groups] = {}
        self._by_label: dict[str, dict[str, dict[str, _Groups]]] = {}
        self._groups_with: Counter[str] = Counter()
        self._empty: dict[PairwiseGroup, int] = {}
        self._empty_bytes = 0
        #: Bytes of groups with pods; their labels count with the pods.
        self._affinity_bytes = 0
        #: Groups that were empty at the last beat. They may have pods again, or be gone.
        self._long_empty: Sequence[PairwiseGroup] = ()
        forgets_unasked(self)

    @property
    def nbytes(self) -> int:
        """Bytes of compiled affinity, and of groups without pods."""
        return self._empty_bytes + self._affinity_bytes

    def __iter__(self) -> Iterator[PairwiseGroup]:
        """Iterate over all groups, those without pods included."""
        return (group for groups in self._by_namespace.values() for group in groups.values())

    def get(self, key: PairwiseKey) -> PairwiseGroup | None:
        """Find a group.

        Returns:
            The group; None when no pod has had this key lately.
        """
        groups = self._by_namespace.get(key.namespace)
        return None if groups is None else groups.get(key)

    # --- coming and going ----------------------------------------------------------------------------------------------------

    def open(self, pod: PodInfo) -> PairwiseGroup:
        """Add a group; the caller knows that there is none."""
        key = pod.pairwise_key
        # Other schedulers may have placed a pod that is beyond a limit. Its terms would cost each later decision what the limit
        # forbids.
        affinity = None if pod.extent.excess else pod.pod.spec.affinity
        group = PairwiseGroup(key, dict(key.labels), affinity_bytes=_COMPILED * object_bytes(affinity) if key.affinity and affinity else 0)
        self._by_namespace.setdefault(key.namespace, {})[key] = group
        self._carry(group, affinity)
        for label, value in key.labels:
            self._groups_with[label] += 1
            by_value = self._by_label.get(label)
            if by_value is not None:
                _put(by_value, value, group)
        return group

    def _carry(self, group: PairwiseGroup, affinity: Affinity | None) -> None:
        carrier = AffinityCarrier(group.key.namespace, group.key.affinity)
        groups = self._by_carrier.get(carrier)
        if groups is None:
            groups = self._by_carrier[carrier] = {}
            if carrier.affinity and affinity is not None:
                self.carried.take_up(carrier, affinity)
        groups[group] = None

    def filled(self, group: PairwiseGroup) -> None:
        """Note that a group without pods got its first pod."""
        self._empty_bytes -= self._empty.pop(group, 0)
        self._affinity_bytes += group.affinity_bytes

    def emptied(self, group: PairwiseGroup) -> None:
        """Note that a group lost its last pod. Groups that have been empty longest are dropped when too many are."""
        self._empty[group] = nbytes = group.nbytes
        self._empty_bytes += nbytes
        self._affinity_bytes -= group.affinity_bytes
        while len(self._empty) > _MAX_EMPTY_GROUPS or self._empty_bytes > _MAX_EMPTY_BYTES:
            # Dictionaries keep insertion order: the first group has been empty longest.
            self._close(next(iter(self._empty)))

    def forget_unasked(self) -> None:
        """Drop the groups that have been without pods since the last call."""
        for group in self._long_empty:
            if group in self._empty:
                self._close(group)
        self._long_empty = tuple(self._empty)

    def _close(self, group: PairwiseGroup) -> None:
        self._empty_bytes -= self._empty.pop(group)
        key = group.key
        take_out(self._by_namespace, key.namespace, key)
        for label, value in key.labels:
            if not add_count(self._groups_with, label, -1):
                self._by_label.pop(label, None)
            elif (by_value := self._by_label.get(label)) and take_out(by_value[value], key.namespace, group) and not by_value[value]:
                del by_value[value]
        self._lay_down(group)

    def _lay_down(self, group: PairwiseGroup) -> None:
        carrier = AffinityCarrier(group.key.namespace, group.key.affinity)
        if take_out(self._by_carrier, carrier, group):
            self.carried.lay_down(carrier)

    # --- finding -------------------------------------------------------------------------------------------------------------

    def selected(self, selection: PodSelection) -> list[PairwiseGroup]:
        """Find the groups whose pods a selection picks."""
        near = list(self._near(selection))
        if len(near) <= _FEW_GROUPS:
            return [group for group in near if selection.selects(group.key, group.labels)]
        if selection.carriers is not None:
            near = [group for group in near if selection.covers(group.key)]
        elif not selection.terminating:  # `_near` has chosen by namespace
            near = [group for group in near if not group.key.terminating]
        return self._passing(label_tests(selection.selector.expressions), near)

    def _passing(self, tests: Sequence[LabelTest], groups: list[PairwiseGroup]) -> list[PairwiseGroup]:
        """Return the groups that pass all tests. A test over a label that no pod has is answered without looking at any group."""
        if any(test.key not in self._groups_with and not test.passes(None) for test in tests):
            return []
        for key, values, inside in tests:
            if key in self._groups_with:
                groups = [group for group in groups if (group.labels.get(key) in values) is inside]
        return groups

    def _near(self, selection: PodSelection) -> Iterator[PairwiseGroup]:
        """Return all groups that the selection picks, and as few others as one label can leave out."""
        if selection.carriers is not None:
            return (group for carrier in selection.carriers for group in self._by_carrier.get(carrier, ()))
        fewest: list[_Groups] | None = None
        # The requirement with the fewest groups is followed, because charts give all of their pods some label in common.
        for requirement in selection.selector.expressions:
            if requirement.operator == "In":
                found = self._with_label(requirement, selection.namespaces)
                if fewest is None or _size(found) < _size(fewest):
                    fewest = found
        if fewest is None:
            return self._in(selection.namespaces)
        return chain.from_iterable(fewest)

    def _with_label(self, requirement: CompiledRequirement, namespaces: Collection[str] | None) -> list[_Groups]:
        by_value = self._indexed(requirement.key)
        found: list[_Groups] = []
        for value in requirement.values:
            by_namespace = by_value.get(value, {})
            if namespaces is None:
                found.extend(by_namespace.values())
            else:
                fewer, more = sorted((namespaces, by_namespace.keys()), key=len)
                found.extend(by_namespace[name] for name in fewer if name in more)
        return found

    def _indexed(self, label: str) -> Mapping[str, dict[str, _Groups]]:
        by_value = self._by_label.get(label)
        if by_value is None:
            # A label that no group has gets no index: every label that a tenant's selector names would otherwise cost memory.
            if label not in self._groups_with:
                return {}
            # Built when first asked for: each pod of a StatefulSet has a label value of its own, which no selection names.
            by_value = self._by_label[label] = {}
            for group in self:
                value = group.labels.get(label)
                if value is not None:
                    _put(by_value, value, group)
        return by_value

    def _in(self, namespaces: Iterable[str] | None) -> Iterator[PairwiseGroup]:
        places = self._by_namespace if namespaces is None else namespaces
        return chain.from_iterable([self._by_namespace[place].values() for place in places if place in self._by_namespace])


def _size(found: list[_Groups]) -> int:
    return sum(map(len, found))


def _put(by_value: dict[str, dict[str, _Groups]], value: str, group: PairwiseGroup) -> None:
    by_value.setdefault(value, {}).setdefault(group.key.namespace, {})[group] = None
