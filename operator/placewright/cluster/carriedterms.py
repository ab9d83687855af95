"""Terms of existing pods, indexed by the labels that they select: a newcomer is compared with terms that name one of its labels.

Terms are compiled when the first pod that carries them is shown or assumed, for all profiles at once. So each decision finds
them compiled, also the first one of a new leader.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, KeysView
from dataclasses import dataclass

from placewright.api.counts import add_count
from placewright.api.objects import Affinity
from placewright.cluster.affinityterms import Term, compile_terms
from placewright.cluster.podselections import AffinityCarrier
from placewright.cluster.selectorindex import SelectorIndex


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
