"""Checks a profile's text: names, places, duplicates and ranges.

All problems are reported at once, each with the path of its field. They are yielded one by one, so that the caller may stop early
(`problem.MOST_PROBLEMS`). Facts about the merged profile (one queueSort, a bind plugin, the sum of weights) are checked by
`check_resolved`.

The API server holds most of the rules by the definition. API servers before 1.25 know no rules across fields, and files meet no API
server.

The rules of extenders are kube-scheduler's: one binds, extended resources are named once, scores have a weight. Other rules prevent
surprises: a valid URL, a valid duration, TLS settings that fit together. No file is opened here: files are read where they are used.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final

import msgspec

from placewright.api.bad_input import in_json
from placewright.api.compatibility import CHOICES, Rule
from placewright.api.durations import seconds
from placewright.api.extenders import DEFAULT_TIMEOUT, ExtenderSettings, ExtenderSpec, ExtenderTLS
from placewright.api.fairness import LABEL, LABEL_KEY, SHARES, TENANTS_BY, Fairness
from placewright.api.objects import LabelSelector
from placewright.api.preemption import BEST_EFFORT, LOWER_PRIORITY, NEVER, PREEMPT, STRICT, WAIT, PreemptionSpec
from placewright.api.profile import DEFAULT_SCHEDULER_NAME, LIVE, SHADOW, Backoff, PluginRef, PluginSet, ProfileSpec
from placewright.api.profilelimits import (
    MAX_BACKOFF_SECONDS,
    MAX_EXTENDER_TIMEOUT,
    MAX_ITEMS,
    MAX_LABEL_KEY_LENGTH,
    MAX_NAME_LENGTH,
    MAX_TENANT_WEIGHT,
    MAX_TENANT_WEIGHTS,
    MAX_TOTAL_SCORE,
    MAX_URL_LENGTH,
    MAX_VALUES,
    MAX_WEIGHT,
)
from placewright.api.profilepods import MAX_NAMESPACES, NAMESPACE_PATTERN, ProfileLabelSelector
from placewright.api.requests import is_extended_resource
from placewright.api.selectors import SelectorError, compile_label_selector
from placewright.framework.interface import MAX_NODE_SCORE
from placewright.framework.registry import InstalledPlugins
from placewright.framework.runtime.resolvedprofile import ExtensionPoint
from placewright.profiles.arguments import broken_constraints, too_long_texts
from placewright.profiles.defaults import DEFAULT_PLUGINS, PACKAGES, Catalogue, known_plugin
from placewright.profiles.merge import ALL, MULTI_POINT, plugin_set
from placewright.profiles.problem import Problem, check_word

_NAME_MISSING: Final = (
    f"the schedulerName of the pods that the profile places; until now one without it took the pods of {DEFAULT_SCHEDULER_NAME}, so write "
    f"'schedulerName: {DEFAULT_SCHEDULER_NAME}' to go on with them, where no kube-scheduler places them"
)


def check_spec(spec: ProfileSpec, catalogue: Catalogue) -> Iterator[Problem]:
    """Find the problems that can be seen without merging.

    Yields:
        Problems, in the order of the document.
    """
    on_disk = InstalledPlugins()  # reads the disk when it is first asked, once for all names
    told: list[str] = []
    for problem in chain(
        _check_scheduler_name(spec),
        _check_plugins(spec, catalogue, on_disk),
        (problem.inside("spec") for problem in broken_constraints(spec, worded=True)),
        _check_weights(spec.weights or {}, catalogue, on_disk),
        _check_backoff(spec.backoff),
        check_fairness(spec.fairness),
        check_extenders(spec.extenders),
        check_pods(spec),
        check_preemption(spec.preemption),
        _check_mode(spec),
        _check_compatibility(spec),
    ):
        told.append(problem.path)
        yield problem
    # Last, because the checks above say more about a text than that it is too long.
    too_long = (problem.inside("spec") for problem in too_long_texts(spec))
    yield from (problem for problem in too_long if not problem.path.startswith(tuple(told)))


def check_size(spec: ProfileSpec) -> Iterator[Problem]:
    """Bound the arguments: the one part of a profile whose size the API server's schema does not bound, and which every plugin reads.

    Yields:
        The problem, if the arguments are too large.
    """
    values = 0
    # Counting ends above the limit, because a count of everything would itself be the cost that the limit prevents.
    for index, config in enumerate(spec.plugin_config or ()):
        values += count_values(config.args or {}, MAX_VALUES - values)
        if values > MAX_VALUES:
            found = f"more than {MAX_VALUES} values in all arguments"
            yield Problem(f"spec.pluginConfig[{index}].args", found, f"at most {MAX_VALUES} values")
            return


def count_values(value: object, most: int) -> int:
    """Count the values inside lists and mappings, up to just above `most`. An alias counts as if it were written out."""
    # A stack of our own instead of recursion: the count ends as soon as the limit is passed, at any depth.
    inside, count = [value], 0
    while inside and count <= most:
        one = inside.pop()
        if isinstance(one, (Mapping, list)):
            count += len(one)
            if count <= most:
                inside.extend(one.values() if isinstance(one, Mapping) else one)
    return count


def check_resolved(
    points: Mapping[ExtensionPoint, Sequence[str]], weights: Mapping[str, int], overrides: Mapping[str, int]
) -> list[Problem]:
    """Check the merged profile."""
    return [
        *_check_counts(points),
        *(
            Problem(f"spec.weights.{name}", str(weight), "0: the plugin does not run at score in this profile")
            for name, weight in overrides.items()
            # A weight without effect is refused, and 0 is not: it asks for what is the case (decision 0001).
            if weight and name not in weights
        ),
        *_check_total(weights),
    ]


def check_same_name(name: str, former: str) -> Iterator[Problem]:
    """Keep a profile's schedulerName: another one would leave its pods behind, and other profiles may rely on the name being taken."""
    if name != former:
        allowed = f"{in_json(former)}: it is immutable; for another name, make another profile and delete this one"
        yield Problem("spec.schedulerName", in_json(name), allowed)


def check_same_mode(mode: str, former: str) -> Iterator[Problem]:
    """Keep a profile's mode: a shadow would leave its pods behind, and a live profile would take pods of another scheduler."""
    if mode != former:
        yield Problem("spec.mode", in_json(mode), f"{in_json(former)}: it is immutable; for the other mode, make another profile")


def _check_scheduler_name(spec: ProfileSpec) -> Iterator[Problem]:
    name = spec.scheduler_name
    if not name:
        if not spec.is_shadow:
            yield Problem("spec.schedulerName", "nothing", _NAME_MISSING)
    elif name != name.strip() or len(name) > MAX_NAME_LENGTH:
        yield Problem("spec.schedulerName", in_json(name), f"a name of 1 to {MAX_NAME_LENGTH} characters without spaces around it")


def _check_backoff(backoff: Backoff) -> Iterator[Problem]:
    initial, maximum = backoff.initial_seconds, backoff.max_seconds
    if not (maximum == 0 or initial <= maximum <= MAX_BACKOFF_SECONDS):
        allowed = f"0 (no backoff), or initialSeconds ({in_json(initial)}) to {MAX_BACKOFF_SECONDS}"
        yield Problem("spec.backoff.maxSeconds", in_json(maximum), allowed)


def check_not_itself(name: str, spec: ProfileSpec) -> Iterator[Problem]:
    """Refuse a shadow of itself.

    Yields:
        The problem, if it shadows itself.
    """
    if spec.is_shadow and spec.shadows == name:
        yield Problem("spec.shadows", in_json(name), "the name of another profile, not its own")


def _check_mode(spec: ProfileSpec) -> Iterator[Problem]:
    """Check the fields of a shadow, and the mode."""
    if spec.mode not in (LIVE, SHADOW):
        yield from check_word("spec.mode", spec.mode, (LIVE, SHADOW))
        return
    if spec.is_shadow and not spec.shadows:
        yield Problem("spec.shadows", "nothing", f"the name of a live profile, as spec.mode is {SHADOW}")
    if not spec.is_shadow and spec.shadows:
        yield Problem("spec.shadows", in_json(spec.shadows), f"nothing, as spec.mode is {LIVE} ({SHADOW} would decide beside that profile)")
    if not spec.is_shadow and spec.shadow is not None:
        yield Problem("spec.shadow", "settings", f"nothing, as spec.mode is {LIVE}")


def _check_compatibility(spec: ProfileSpec) -> Iterator[Problem]:
    """Check the version of kube-scheduler, and the names of feature gates."""
    yield from check_word("spec.compatibility", spec.compatibility, CHOICES)
    for name in spec.feature_gates or {}:
        yield from check_word(f"spec.featureGates.{name}", name, tuple(map(str, Rule)))


def _check_weights(weights: Mapping[str, int], catalogue: Catalogue, on_disk: InstalledPlugins) -> Iterator[Problem]:
    for name, weight in weights.items():
        path = f"spec.weights.{name}"
        if not 0 <= weight <= MAX_WEIGHT:
            yield Problem(path, str(weight), f"0 to {MAX_WEIGHT} (0: off)")
        if name in catalogue and not ExtensionPoint.SCORE.implemented_by(catalogue[name]):
            yield Problem(path, in_json(name), "a plugin that scores")
        elif name not in catalogue and not (weight == 0 and _known_by_name(name)):
            yield Problem(path, in_json(name), known_plugin(name, catalogue, on_disk))


def _check_plugins(spec: ProfileSpec, catalogue: Catalogue, on_disk: InstalledPlugins) -> Iterable[Problem]:
    multi_point = _check_set(f"spec.plugins.{MULTI_POINT}", spec.plugins.multi_point, None, catalogue, on_disk)
    own = (_check_set(f"spec.plugins.{point}", plugin_set(spec.plugins, point), point, catalogue, on_disk) for point in ExtensionPoint)
    return chain(multi_point, *own)


def _check_set(
    path: str, plugins: PluginSet, point: ExtensionPoint | None, catalogue: Catalogue, on_disk: InstalledPlugins
) -> Iterator[Problem]:
    """Check one `enabled` and `disabled`. `point` is None for multiPoint, which skips a plugin at points that it does not implement."""
    seen: set[str] = set()
    for index, ref in enumerate(plugins.enabled or ()):
        where = f"{path}.enabled[{index}]"
        yield from _check_enabled(where, ref, point, catalogue, on_disk)
        if ref.name in seen:
            yield Problem(f"{where}.name", in_json(ref.name), "each plugin once")
        seen.add(ref.name)
    for index, ref in enumerate(plugins.disabled or ()):
        if ref.name != ALL and ref.name not in catalogue and not _known_by_name(ref.name):
            yield Problem(f"{path}.disabled[{index}].name", in_json(ref.name), f"'*' or {known_plugin(ref.name, catalogue, on_disk)}")


def _check_enabled(
    where: str, ref: PluginRef, point: ExtensionPoint | None, catalogue: Catalogue, on_disk: InstalledPlugins
) -> Iterator[Problem]:
    plugin = catalogue.get(ref.name)
    if plugin is None:
        yield Problem(f"{where}.name", in_json(ref.name), known_plugin(ref.name, catalogue, on_disk))
    elif point is not None and not point.implemented_by(plugin):
        points = ", ".join(other for other in ExtensionPoint if other.implemented_by(plugin))
        yield Problem(f"{where}.name", in_json(ref.name), f"a plugin with a {point} (this one has {points})")


def _known_by_name(name: str) -> bool:
    """Return whether a plugin that is not installed may be switched off: nothing changes by that."""
    return name in DEFAULT_PLUGINS or name in PACKAGES


def _check_counts(points: Mapping[ExtensionPoint, Sequence[str]]) -> Iterator[Problem]:
    sorts = points[ExtensionPoint.QUEUE_SORT]
    if len(sorts) != 1:
        yield Problem(f"spec.plugins.{ExtensionPoint.QUEUE_SORT}", ", ".join(sorts) or "no plugin", "exactly one plugin in effect")
    if not points[ExtensionPoint.BIND]:
        yield Problem(f"spec.plugins.{ExtensionPoint.BIND}", "no plugin", "at least one plugin in effect")


def _check_total(weights: Mapping[str, int]) -> Iterator[Problem]:
    total = sum(weights.values()) * MAX_NODE_SCORE
    if total > MAX_TOTAL_SCORE:
        yield Problem("spec.weights", f"a highest total score of {total}", f"at most {MAX_TOTAL_SCORE}: the total could overflow")


# --- which pods may use it, whose turn it is, and which pods it displaces ------------------------------------------------------

_NAMESPACE: Final = re.compile(NAMESPACE_PATTERN)
_KEY: Final = re.compile(LABEL_KEY)


def check_pods(spec: ProfileSpec) -> Iterator[Problem]:
    """Check `spec.pods`.

    Yields:
        Problems, in the order of the document.
    """
    pods = spec.pods
    if pods is None:
        return
    if spec.is_shadow:
        yield Problem("spec.pods", "settings", f"nothing, as spec.mode is {SHADOW}: a shadow is given to no pod")
    yield from check_label_selector("spec.pods.namespaceSelector", pods.namespace_selector)
    yield from check_label_selector("spec.pods.podSelector", pods.pod_selector)
    yield from _check_namespaces(pods.allowed_namespaces)
    yield from check_label_selector("spec.pods.allowedNamespaceSelector", pods.allowed_namespace_selector)
    if pods.priority is not None and not pods.assigns:
        allowed = "nothing without podSelector or namespaceSelector: it ranks the profiles that select a pod"
        yield Problem("spec.pods.priority", str(pods.priority), allowed)


def check_label_selector(path: str, selector: ProfileLabelSelector | None) -> Iterator[Problem]:
    """Check a label selector of a profile, in the words of an API server.

    Yields:
        A problem for each label and each expression that an API server would refuse.
    """
    if selector is None:
        return
    for key, value in (selector.match_labels or {}).items():
        if said := _refused(LabelSelector(match_labels={key: value})):
            yield Problem(f"{path}.matchLabels", in_json({key: value}), f"a label; {said}")
    whole = selector.as_label_selector()
    for index, expression in enumerate(whole.match_expressions or ()):
        if said := _refused(LabelSelector(match_expressions=(expression,))):
            yield Problem(f"{path}.matchExpressions[{index}]", in_json(msgspec.to_builtins(expression)), f"an expression; {said}")


def _refused(selector: LabelSelector) -> str:
    """Return the reason why a selector does not compile; empty when it does."""
    try:
        compile_label_selector(selector)
    except SelectorError as problem:
        return str(problem)
    return ""


def _check_namespaces(names: list[str] | None) -> Iterator[Problem]:
    if names is None:
        return
    path = "spec.pods.allowedNamespaces"
    if not 1 <= len(names) <= MAX_NAMESPACES:
        yield Problem(path, f"{len(names)} of them", f"1 to {MAX_NAMESPACES} names of namespaces, or no such field: then all may")
        return
    seen: set[str] = set()
    for index, name in enumerate(names):
        if not _NAMESPACE.fullmatch(name):
            yield Problem(f"{path}[{index}]", in_json(name), "the name of a namespace: at most 63 lower case letters, digits and '-'")
        elif name in seen:
            yield Problem(f"{path}[{index}]", in_json(name), "each namespace once")
        seen.add(name)


def check_fairness(fairness: Fairness | None) -> Iterator[Problem]:
    """Find the problems of `spec.fairness`.

    Yields:
        Problems, in the order of the fields.
    """
    if fairness is None:
        return
    yield from check_word("spec.fairness.by", fairness.by, TENANTS_BY)
    yield from _check_label(fairness)
    yield from check_word("spec.fairness.share", fairness.share, SHARES)
    yield from _check_tenant_weights(fairness.weights or {})


def _check_label(fairness: Fairness) -> Iterator[Problem]:
    path, key = "spec.fairness.label", fairness.label
    if fairness.by != LABEL:
        if key is not None:
            yield Problem(path, in_json(key), f"nothing, as spec.fairness.by is {fairness.by}")
    elif not key:
        yield Problem(path, "nothing", f"the key of a label of the pods, as spec.fairness.by is {LABEL}")
    elif len(key) > MAX_LABEL_KEY_LENGTH or not _KEY.fullmatch(key):
        yield Problem(path, in_json(key), "the key of a label, such as team or example.com/team")


def _check_tenant_weights(weights: Mapping[str, int]) -> Iterator[Problem]:
    if len(weights) > MAX_TENANT_WEIGHTS:
        yield Problem("spec.fairness.weights", f"{len(weights)} of them", f"at most {MAX_TENANT_WEIGHTS}")
        return
    for tenant, weight in weights.items():
        if not 1 <= weight <= MAX_TENANT_WEIGHT:
            yield Problem(f"spec.fairness.weights.{tenant}", str(weight), f"1 to {MAX_TENANT_WEIGHT}")


def check_preemption(preemption: PreemptionSpec | None) -> Iterator[Problem]:
    """Check the rules of preemption; their bounds are checked with those of all numbers.

    Yields:
        Problems, in the order of the document.
    """
    if preemption is None:
        return
    yield from check_word("spec.preemption.policy", preemption.policy, (LOWER_PRIORITY, NEVER))
    yield from check_word("spec.preemption.deferredResizes", preemption.deferred_resizes, (WAIT, PREEMPT))
    yield from check_word("spec.preemption.disruptionBudgets", preemption.disruption_budgets, (BEST_EFFORT, STRICT))
    most, in_a_minute = preemption.max_victims, preemption.max_evictions_per_minute
    if most is not None and in_a_minute is not None and most > in_a_minute:
        allowed = f"at most maxEvictionsPerMinute ({in_a_minute}): no minute has room for more"
        yield Problem("spec.preemption.maxVictims", str(most), allowed)
    yield from check_label_selector("spec.preemption.protect", preemption.protect)


# --- extenders -----------------------------------------------------------------------------------------------------------------

_PATH: Final = "spec.extenders"
_FIT: Final = "NodeResourcesFit"
_URL: Final = re.compile(
    r"https?://(?P<user>[^/@]*@)?(?:[A-Za-z0-9](?:[-._A-Za-z0-9]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])(?::(?P<port>[0-9]{1,5}))?"
    r"(?:/[!$-;=@-~]*)?"
)
_HIGHEST_PORT: Final = 65535
_VERBS: Final = ("filterVerb", "preemptVerb", "prioritizeVerb", "bindVerb")
_VERB: Final = re.compile(r"[!$-;=?-~]+", re.ASCII)  # what a URL's path and query may have: no space, no control character, no #
_PEM: Final = re.compile(rb"-----BEGIN [A-Z0-9 ]+-----")
_LABEL: Final = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_DOMAIN: Final = rf"(?=.{{1,253}}/){_LABEL}(?:\.{_LABEL})*"
_QUALIFIED: Final = re.compile(rf"{_DOMAIN}/(?=.{{1,63}}$)[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?")


def check_extenders(extenders: Sequence[ExtenderSpec] | None) -> Iterator[Problem]:
    """Check the list of extenders.

    Yields:
        Problems, in the order of the list.
    """
    extenders = extenders or ()
    if len(extenders) > MAX_ITEMS:
        yield Problem(_PATH, f"{len(extenders)} of them", f"at most {MAX_ITEMS}")
        return
    for index, extender in enumerate(extenders):
        for problem in _check_one(extender):
            yield problem.inside(f"{_PATH}[{index}]")
    yield from _check_binders(extenders)
    yield from _check_repeated_resources(extenders)


def resolve_extenders(extenders: Iterable[ExtenderSpec] | None) -> tuple[ExtenderSettings, ...]:
    """Convert the extenders. Only for a list that passed `check_extenders`.

    Returns:
        The extenders in the order of their calls: as written, ignorable ones last.
    """
    settings = [_settings(extender, f"{_PATH}[{index}]") for index, extender in enumerate(extenders or ())]
    # The ignorable ones last, as in kube-scheduler.
    return tuple(sorted(settings, key=lambda one: one.ignorable))


def leave_to_extenders(args: dict[str, object], extenders: Iterable[ExtenderSettings]) -> None:
    """Write the resources that extenders count into NodeResourcesFit's `ignoredResources`, if there are any and the plugin runs."""
    ignored = tuple(resource.name for one in extenders for resource in one.managed_resources if resource.ignored_by_scheduler)
    fit = args.get(_FIT)
    if ignored and isinstance(fit, msgspec.Struct):
        args[_FIT] = msgspec.structs.replace(fit, ignored_resources=ignored)


def _settings(extender: ExtenderSpec, field: str) -> ExtenderSettings:
    stated = msgspec.structs.asdict(extender)
    stated["tls_config"] = extender.tls_config or ExtenderTLS()
    stated["http_timeout"] = seconds(extender.http_timeout) or DEFAULT_TIMEOUT
    stated["managed_resources"] = tuple(extender.managed_resources or ())
    return ExtenderSettings(**stated, field=field)


# --- one extender ------------------------------------------------------------------------------------------------------------


def _check_one(extender: ExtenderSpec) -> Iterator[Problem]:
    yield from _check_url(extender.url_prefix)
    yield from _check_verbs(extender)
    yield from _check_weight(extender)
    yield from _check_timeout(extender.http_timeout)
    for problem in _check_tls(extender.tls_config or ExtenderTLS()):
        yield problem.inside("tlsConfig")
    for index, resource in enumerate(extender.managed_resources or ()):
        if not (is_extended_resource(resource.name) and _QUALIFIED.fullmatch(resource.name)):
            allowed = "the name of an extended resource, such as example.com/gpu"
            yield Problem(f"managedResources[{index}].name", in_json(resource.name), allowed)


def _check_url(url: str) -> Iterator[Problem]:
    allowed = "an http or https URL with a host, such as https://extender.example:8443/scheduler"
    found = _URL.fullmatch(url)
    if found is None or len(url) > MAX_URL_LENGTH or int(found["port"] or 0) > _HIGHEST_PORT:
        yield Problem("urlPrefix", in_json(url), allowed)
    elif found["user"]:
        yield Problem("urlPrefix", "a user name in the URL", f"{allowed}; it is shown in messages and events")


def _check_verbs(extender: ExtenderSpec) -> Iterator[Problem]:
    verbs = dict(zip(_VERBS, (extender.filter_verb, extender.preempt_verb, extender.prioritize_verb, extender.bind_verb), strict=True))
    for name, verb in verbs.items():
        if verb and not (_VERB.fullmatch(verb) and len(verb) <= MAX_URL_LENGTH):
            yield Problem(name, in_json(verb), "the last part of a URL, such as filter")
    counts_resources = any(resource.ignored_by_scheduler for resource in extender.managed_resources or ())
    if not any(verbs.values()) and not counts_resources:
        yield Problem("", "nothing to call", f"at least one of {', '.join(_VERBS)}")


def _check_weight(extender: ExtenderSpec) -> Iterator[Problem]:
    if extender.prioritize_verb and not 1 <= extender.weight <= MAX_WEIGHT:
        yield Problem("weight", str(extender.weight), f"1 to {MAX_WEIGHT}, where there is a prioritizeVerb")
    elif not 0 <= extender.weight <= MAX_WEIGHT:
        yield Problem("weight", str(extender.weight), f"0 to {MAX_WEIGHT}")


def _check_timeout(text: str) -> Iterator[Problem]:
    found = seconds(text) if text else DEFAULT_TIMEOUT
    if found is None or not 0 < found <= MAX_EXTENDER_TIMEOUT:
        yield Problem("httpTimeout", in_json(text), f"a duration above 0 and up to {MAX_EXTENDER_TIMEOUT}s, such as 500ms or 5s")


def _check_tls(tls: ExtenderTLS) -> Iterator[Problem]:
    for name, data in (("certData", tls.cert_data), ("keyData", tls.key_data), ("caData", tls.ca_data)):
        if data and not _is_pem(data):
            yield Problem(name, f"{len(data)} characters of something else", "PEM, encoded in base64")
    certificate, key = tls.cert_file or tls.cert_data, tls.key_file or tls.key_data
    if certificate and not key:
        yield Problem("", "a certificate without its key", "certFile or certData together with keyFile or keyData")
    if key and not certificate:
        yield Problem("", "a key without its certificate", "certFile or certData together with keyFile or keyData")
    if tls.insecure and (tls.ca_file or tls.ca_data):
        yield Problem("insecure", "true beside a CA", "false, or no caFile and caData: nothing is verified with them")


def _is_pem(data: str) -> bool:
    try:
        return _PEM.search(base64.b64decode("".join(data.split()), validate=True)) is not None
    except (binascii.Error, ValueError):
        return False


# --- all extenders together --------------------------------------------------------------------------------------------------


def _check_binders(extenders: Sequence[ExtenderSpec]) -> Iterator[Problem]:
    first, *others = [index for index, extender in enumerate(extenders) if extender.bind_verb] or [0]
    for index in others:
        found = in_json(extenders[index].bind_verb)
        yield Problem(f"{_PATH}[{index}].bindVerb", found, f"nothing: {_PATH}[{first}] binds, and only one may")


def _check_repeated_resources(extenders: Sequence[ExtenderSpec]) -> Iterator[Problem]:
    seen: dict[str, str] = {}
    for index, extender in enumerate(extenders):
        for number, resource in enumerate(extender.managed_resources or ()):
            path = f"{_PATH}[{index}].managedResources[{number}].name"
            if resource.name in seen:
                yield Problem(path, in_json(resource.name), f"each resource once; {seen[resource.name]} has it")
            seen.setdefault(resource.name, path)
