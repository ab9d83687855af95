"""Terms of existing pods, indexed by the labels that they select: a newcomer is compared with terms that name one of its labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from placewright.cluster.pairwisecounts import PairwiseCounts
from placewright.cluster.podselections import AffinityCarrier
from placewright.cluster.selectorindex import SelectorIndex
from placewright.plugins.interpodaffinity.terms import PodTerms, Term

#: How to compile what a carrier's pods say.
Compiler = Callable[[AffinityCarrier, PairwiseCounts], PodTerms]


@dataclass(frozen=True, slots=True, eq=False)
class CarriedTerm:
    """One term of existing pods.

    Attributes:
        weight: what it adds to the score of its domain; None for required anti-affinity, which keeps newcomers out.
    """

    carrier: AffinityCarrier
    term: Term
    weight: int | None


class CarriedTerms:
    """Required anti-affinity and all terms that score, of all carriers of one cluster.

    Invariant: after `follow` the index has the terms of the carriers that there are, each once. A term that looks for nothing is left
    out; one with a namespace selector is in the index's place for all namespaces, because which it selects changes with their labels.
    """

    def __init__(self, counts: PairwiseCounts, compiler: Compiler, hard_weight: int) -> None:
        self._counts = counts
        self._compiler = compiler
        self._hard_weight = hard_weight
        self._index: SelectorIndex[CarriedTerm] = SelectorIndex()
        self._of: dict[AffinityCarrier, list[CarriedTerm]] = {}
        self._mentioned: Counter[str] = Counter()
        self._position = counts.carrier_changes.position
        for carrier in counts.carriers:
            self._take_up(carrier)

    @property
    def version(self) -> int:
        """Grows with every term that comes or goes."""
        return self._index.version

    def follow(self) -> bool:
        """Add terms that appeared since, and drop terms that vanished; False when that is longer ago than the cluster remembers."""
        changed = self._counts.carrier_changes
        if changed.position == self._position:
            return True
        carriers = changed.since(self._position)
        if carriers is None:
            return False
        for carrier in carriers:
            if carrier in self._counts.carriers:
                if carrier not in self._of:
                    self._take_up(carrier)
            elif carrier in self._of:
                self._lay_down(carrier)
        self._position = changed.position
        return True

    def mentioned(self, labels: Iterable[tuple[str, str]]) -> frozenset[tuple[str, str]]:
        """The labels that some term selects; the others cannot make a difference."""
        return frozenset([pair for pair in labels if pair[0] in self._mentioned])

    def meeting(self, namespace: str, labels: Iterable[tuple[str, str]]) -> Iterator[CarriedTerm]:
        """All terms that may mean a pod with these labels, each once."""
        return self._index.meeting(namespace, labels)

    def stamps(self, namespace: str, labels: Iterable[tuple[str, str]]) -> tuple[int, ...]:
        """For the same labels in the same order: equal as long as the same terms meet them."""
        return self._index.stamps(namespace, labels)

    def _take_up(self, carrier: AffinityCarrier) -> None:
        terms = self._of[carrier] = list(self._told(carrier, self._compiler(carrier, self._counts)))
        for each in terms:
            term = each.term
            assert term.selector is not None
            self._mentioned.update(expression.key for expression in term.selector.expressions)
            self._index.add(each, None if term.namespace_selector is not None else term.namespaces, term.selector)

    def _lay_down(self, carrier: AffinityCarrier) -> None:
        for each in self._of.pop(carrier):
            self._index.discard(each)
            assert each.term.selector is not None
            for expression in each.term.selector.expressions:
                self._mentioned[expression.key] -= 1
                if not self._mentioned[expression.key]:
                    del self._mentioned[expression.key]

    def _told(self, carrier: AffinityCarrier, terms: PodTerms) -> Iterator[CarriedTerm]:
        """Preferred terms, and required affinity at the profile's weight for it."""
        for term in terms.anti_affinity:
            if term.selector is not None:
                yield CarriedTerm(carrier, term, None)
        wanted = [(self._hard_weight, term) for term in terms.affinity] if self._hard_weight else []
        for weight, term in (*terms.preferred, *wanted):
            if term.selector is not None:
                yield CarriedTerm(carrier, term, weight)
