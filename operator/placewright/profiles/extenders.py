"""The extenders of a profile: what may be wrong with them, and what they come to.

The rules are kube-scheduler's (one that binds, extended resources named once, a weight for scores), and a few that spare surprises: a URL
that is one, a duration that is one, TLS settings that go together. Nothing is opened here: files are looked at where they are used.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from placewright.api.bad_input import in_json
from placewright.api.durations import seconds
from placewright.api.extenders import DEFAULT_TIMEOUT, ExtenderSettings, ExtenderSpec, ExtenderTLS
from placewright.api.requests import is_extended_resource
from placewright.profiles.bounds import MAX_EXTENDER_TIMEOUT, MAX_ITEMS, MAX_URL_LENGTH, MAX_WEIGHT
from placewright.profiles.problem import Problem

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
    """Everything that is wrong with the list, in its order."""
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
    """The extenders in the order of their calls: as written, those that may fail last. Only for what `check_extenders` has let pass."""
    settings = [_settings(extender, f"{_PATH}[{index}]") for index, extender in enumerate(extenders or ())]
    return tuple(sorted(settings, key=lambda one: one.ignorable))


def leave_to_extenders(args: dict[str, object], extenders: Iterable[ExtenderSettings]) -> None:
    """Resources that extenders count take the place of NodeResourcesFit's `ignoredResources`, if there are any and the plugin runs."""
    ignored = tuple(resource.name for one in extenders for resource in one.managed_resources if resource.ignored_by_scheduler)
    fit = args.get(_FIT)
    if ignored and isinstance(fit, msgspec.Struct):
        args[_FIT] = msgspec.structs.replace(fit, ignored_resources=ignored)


def _settings(extender: ExtenderSpec, field: str) -> ExtenderSettings:
    return ExtenderSettings(
        url_prefix=extender.url_prefix,
        filter_verb=extender.filter_verb,
        preempt_verb=extender.preempt_verb,
        prioritize_verb=extender.prioritize_verb,
        weight=extender.weight,
        bind_verb=extender.bind_verb,
        enable_https=extender.enable_https,
        tls_config=extender.tls_config or ExtenderTLS(),
        http_timeout=seconds(extender.http_timeout) or DEFAULT_TIMEOUT,
        node_cache_capable=extender.node_cache_capable,
        managed_resources=tuple(extender.managed_resources or ()),
        ignorable=extender.ignorable,
        field=field,
    )


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
