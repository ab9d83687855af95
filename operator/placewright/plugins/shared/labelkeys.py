"""Label selectors with `matchLabelKeys`: the pod's own values complete the selector. Pods with equal values share it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from placewright.api.objects import LabelSelector
from placewright.api.selectors import Selector, compile_label_selector, selector_from_pairs


def keys_read(selector: LabelSelector | None, match_label_keys: Iterable[str] | None) -> Iterator[str]:
    """Yield the keys of pod labels that a selector and its `matchLabelKeys` read, some of them twice."""
    yield from match_label_keys or ()
    if selector is not None:
        yield from selector.match_labels or ()
        yield from (expression.key for expression in selector.match_expressions or ())


def completed(selector: LabelSelector | None, match_label_keys: Iterable[str] | None, labels: Mapping[str, str]) -> Selector | None:
    """Compile a selector, and add the pod's own values of `matchLabelKeys`; None selects nothing. Raise `SelectorError`."""
    written = None if selector is None else compile_label_selector(selector)
    own = {key: labels[key] for key in match_label_keys or () if key in labels}
    if not own:
        return written
    return Selector((*selector_from_pairs(own).expressions, *(written.expressions if written else ())))
