"""Label selectors with `matchLabelKeys`: the pod's own values complete the selector, and pods that agree in the labels read share it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from placewright.api.objects import LabelSelector
from placewright.api.selectors import Selector, compile_label_selector, selector_from_pairs


def keys_read(selector: LabelSelector | None, match_label_keys: Iterable[str] | None) -> Iterator[str]:
    """Return the keys of pod labels that a selector and its `matchLabelKeys` read, some of them twice.

    Args:
        selector: as decoded; None reads nothing.
        match_label_keys: keys whose values are the pod's own.

    Yields:
        Keys. Pods that differ in other labels alone have the same completed selector.
    """
    yield from match_label_keys or ()
    if selector is not None:
        yield from selector.match_labels or ()
        yield from (expression.key for expression in selector.match_expressions or ())


def completed(selector: LabelSelector | None, match_label_keys: Iterable[str] | None, labels: Mapping[str, str]) -> Selector | None:
    """Compile a selector, and add the pod's own values for those of `matchLabelKeys` that the pod has.

    Args:
        selector: as decoded; None picks nothing by itself.
        match_label_keys: keys whose values are the pod's own.
        labels: of the pod.

    Returns:
        The selector; None picks nothing.

    Raises:
        SelectorError: the selector does not parse.
    """
    written = None if selector is None else compile_label_selector(selector)
    own = {key: labels[key] for key in match_label_keys or () if key in labels}
    if not own:
        return written
    return Selector((*selector_from_pairs(own).expressions, *(written.expressions if written else ())))
