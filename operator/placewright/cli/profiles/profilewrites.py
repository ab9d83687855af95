"""Writes for `set`, `promote` and `rollback`: by server-side apply, as a person with kubectl would, whose command line is printed.

Apply cannot remove a field of another manager. Where the wanted spec lacks such a field, a merge patch is written instead. The API server's
dry runs tell which of the two is needed. Fields that a person wrote with kubectl are taken over, as `kubectl edit` and `kubectl patch` do.
Fields of a controller are not, because the controller would put them back.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import shlex
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from placewright.api.bad_input import InputError, printable
from placewright.api.profile import PLURAL
from placewright.cli.options import whole_number
from placewright.cli.profiles.namedprofiles import catalogue, profile_of
from placewright.cli.profiles.profilelist import UNKNOWN, state
from placewright.cli.terminal import compact, console, say
from placewright.kube.client import ApiClient
from placewright.kube.errors import CONFLICT, ApiError
from placewright.kube.history import without_keys
from placewright.kube.profileapi import (
    FIELD_MANAGER,
    Object,
    apply_profile,
    manifest_of,
    merge_profile,
    owned_spec,
    read_profile,
)
from placewright.profiles.effective import HIDDEN, between, differences
from placewright.profiles.problem import ProfileError
from placewright.profiles.profilestate import Reason
from placewright.profiles.resolve import resolve
from placewright.profiles.validation import check_object

_LOOK_SECONDS: Final = 0.2
_PATIENCE: Final = 5
_MOST_PATIENCE: Final = 3600
#: Times that a change is sent while only the profile's status changes in between.
_TRIES: Final = 10
_SAME: Final = ("uid", "generation")
#: Managers of fields that a person wrote with kubectl; `before-first-apply` stands for older writes.
_PERSON: Final = re.compile(r"kubectl(-.*)?|before-first-apply")
_CONFLICT: Final = re.compile(r'conflicts? with "([^"]*)"')
#: Managers that restore the state of a Git repository.
_GIT: Final = ("argocd", "argo-cd", "flux", "kustomize-controller", "helm-controller")


@dataclass(frozen=True, slots=True)
class ProfileChange:
    """A change of one profile.

    Attributes:
        current: the profile as the API server shows it.
        wanted: its whole `spec` afterwards.
        applied: the part of it that we apply: all fields that are ours.
        checked: it was in effect once, so the operator will take it, even if this placewright finds a problem.
    """

    current: Object
    wanted: Object
    applied: Object
    checked: bool = False

    @property
    def name(self) -> str:
        """Name of the profile."""
        return str(self.current["metadata"]["name"])


@dataclass(frozen=True, slots=True)
class ProfileWrite:
    """A request, and the kubectl line that does the same."""

    body: Object
    merge: bool
    force: bool

    async def send(self, client: ApiClient, change: ProfileChange, *, dry_run: bool) -> Object:
        """Write to the object that was read, and to no other one of its name.

        Args:
            client: client of the API server.
            change: the change.
            dry_run: have the server check everything and store nothing.

        Returns:
            The profile as it is afterwards.

        Raises:
            RequestError: the server refused or did not answer.
        """
        metadata = change.current["metadata"]
        if not self.merge:
            body = manifest_of(change.name, self.body["spec"], metadata["uid"])
            return await apply_profile(client, body, force=self.force, dry_run=dry_run)
        for _ in range(_TRIES):
            same = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
            try:
                return await merge_profile(client, change.name, {**self.body, "metadata": same}, dry_run=dry_run)
            except ApiError as error:
                # The operator may have written the status meanwhile. Only another generation means that the spec has changed.
                metadata = (await read_profile(client, change.name))["metadata"] if error.status == CONFLICT else {}
                if [metadata.get(key) for key in _SAME] != [change.current["metadata"].get(key) for key in _SAME]:
                    raise
                refused = error
        raise refused

    def command(self, change: ProfileChange, args: argparse.Namespace) -> str:
        """Write the kubectl line, for a shell. Private keys are left out: they belong on no terminal, and a person fills them in."""
        cluster = [f"--{option}={value}" for option in ("kubeconfig", "context") if (value := getattr(args, option))]
        manager, body = f"--field-manager={FIELD_MANAGER}", json.dumps(self._shown(), ensure_ascii=False)
        if self.merge:
            return shlex.join(["kubectl", *cluster, "patch", PLURAL, change.name, "--type=merge", manager, "-p", body])
        forced = ["--force-conflicts"] if self.force else []
        return f"echo {shlex.quote(body)} | {shlex.join(['kubectl', *cluster, 'apply', '--server-side', manager, *forced, '-f', '-'])}"

    def _shown(self) -> Object:
        return {**self.body, "spec": without_keys(self.body["spec"], HIDDEN)}


def add_change_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of commands that change a profile."""
    parser.add_argument(
        "--dry-run", choices=("none", "client", "server"), default="none", help="write nothing; server: have the API server try it"
    )
    parser.add_argument("--force-conflicts", action="store_true", help="take over fields that controllers hold, too, as kubectl apply does")
    parser.add_argument(
        "--wait",
        type=whole_number(0, _MOST_PATIENCE),
        default=_PATIENCE,
        metavar="SECONDS",
        help="how long to wait until the operator has judged the change; 0: not at all (default: %(default)s)",
    )


async def write(client: ApiClient, change: ProfileChange, args: argparse.Namespace) -> int:
    """Check a change, write it, print its effect, and wait until the operator has judged it.

    Raises:
        InputError: the change has a problem, or would take fields of other managers.
        RequestError: the server refused or did not answer.
    """
    if not change.checked:
        _refuse_new_problems(change)
    to = console()
    if change.wanted == change.current.get("spec"):
        say(to, f"profile {change.name}: nothing to change")
        return 0
    plain = ProfileWrite(manifest_of(change.name, change.applied), merge=False, force=args.force_conflicts)
    chosen = plain if args.dry_run == "client" else await _choose(client, change, plain)
    say(to, *_told(change), "with kubectl:", f"  {chosen.command(change, args)}")
    _warn_of_git(change)  # such a controller may undo the write within seconds, as if it had failed
    if args.dry_run != "none":
        say(to, f"nothing was written: dry run by the {args.dry_run}")
        return 0
    written = await chosen.send(client, change, dry_run=False)
    return await _outcome(client, written, args.wait)


def _refuse_new_problems(change: ProfileChange) -> None:
    """Refuse problems that the change brings. Earlier problems stay allowed, and so does a plugin that only the operator has."""
    plugins = catalogue()
    new = {**change.current, "spec": change.wanted}
    known = check_object(change.current, None, plugins)
    # Problems in a profile that the operator has in effect: it has plugins that are missing here.
    if known and state(change.current)[1] == "True":
        sys.stderr.write("placewright: the operator has plugins that are not installed here: only it can check the change\n")
        return
    problems = [problem for problem in check_object(new, None, plugins) if problem not in known]
    if problems:
        raise ProfileError(problems, f"profile {change.name}")


async def _choose(client: ApiClient, change: ProfileChange, apply: ProfileWrite) -> ProfileWrite:
    """Choose apply, unless that leaves a field in place that has to go."""
    try:
        applied = await apply.send(client, change, dry_run=True)
    except ApiError as error:
        if not _with_people(error):
            raise _refused(error, change) from None
        apply = replace(apply, force=True)
        applied = await apply.send(client, change, dry_run=True)
    merge = ProfileWrite({"spec": merge_patch(change.current.get("spec") or {}, change.wanted)}, merge=True, force=True)
    merged = await merge.send(client, change, dry_run=True)
    left = list(between({"spec": applied.get("spec")}, {"spec": merged.get("spec")}))
    # Apply is preferred, because it takes over no field of another manager.
    if not left:
        return apply
    if not (apply.force or _of_people(change.current)):
        held = "held by other managers, and would have to go; --force-conflicts takes them away"
        raise InputError(f"profile {change.name}: {', '.join(what for what, _, _ in left[:5])}: {held}")
    return merge


def _with_people(error: ApiError) -> bool:
    """Whether all conflicts are with fields that persons wrote with kubectl."""
    managers = _CONFLICT.findall(error.message) if error.status == CONFLICT else []
    return bool(managers) and all(_PERSON.fullmatch(manager) for manager in managers)


def _of_people(current: Object) -> bool:
    """Whether all fields of `spec` were written by persons, with kubectl or with this command."""
    entries = current["metadata"].get("managedFields") or ()
    managers = [str(entry.get("manager")) for entry in entries if "f:spec" in (entry.get("fieldsV1") or {})]
    return all(manager == FIELD_MANAGER or _PERSON.fullmatch(manager) for manager in managers)


def _refused(error: ApiError, change: ProfileChange) -> Exception:
    if error.status == CONFLICT and "conflict" in error.message:
        message = " ".join(error.message.split())
        return InputError(f"profile {change.name}: {message}; --force-conflicts takes these fields over")
    return error


def merge_patch(before: Mapping[str, Any], after: Mapping[str, Any]) -> Object:
    """Compute the JSON merge patch (RFC 7386) between two values.

    Args:
        before: the value now.
        after: the value to be.
    """
    patch: Object = {key: None for key in before if key not in after}
    for key, value in after.items():
        old = before.get(key)
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            if inner := merge_patch(old, value):
                patch[key] = inner
        elif old != value:
            patch[key] = value
    return patch


def to_apply(current: Object, wanted: Mapping[str, Any]) -> Object:
    """Compute the part of a `spec` to apply: the fields that differ, and our own fields that stay.

    A manager owns the fields that it applies. So fields that stay and are not ours, such as defaults of the API server, are left out.

    Args:
        current: the profile as the API server shows it.
        wanted: the whole `spec` afterwards.
    """
    part: Object = _part(current.get("spec") or {}, owned_spec(current), wanted)
    return part


def _part(before: Any, ours: Any, wanted: Any) -> Any:
    """Return what of `wanted` differs from `before` or is named by `ours`; of a list of named items, these items."""
    if isinstance(before, Mapping) and isinstance(wanted, Mapping):
        own = ours if isinstance(ours, Mapping) else {}
        kept = {key: value for key, value in wanted.items() if key in own or before.get(key) != value}
        parts = {key: _part(before.get(key), own.get(key), value) for key, value in kept.items()}
        return {key: part for key, part in parts.items() if part != {} or {} in (wanted[key], own.get(key))}  # only losses: no part
    known, items, own = _by_name(before), _by_name(wanted), _by_name(ours) or {}
    if known is None or items is None:
        return wanted
    changed = {name: item for name, item in items.items() if known.get(name) != item}
    stays = {name: _part(items[name], item, items[name]) for name, item in own.items() if name in items}
    return list((stays | changed).values())


def _by_name(items: Any) -> dict[str, Any] | None:
    """Return the items of a list that server-side apply merges by name; None for any other value."""
    if isinstance(items, list) and all(isinstance(item, Mapping) and isinstance(item.get("name"), str) for item in items):
        return {item["name"]: item for item in items}
    return None


# --- output ------------------------------------------------------------------------------------------------------------------------


def _told(change: ProfileChange) -> list[str]:
    """Return the differences in effect. If this placewright cannot resolve one side, return the differences in text."""
    plugins, specs = catalogue(), (change.current.get("spec") or {}, change.wanted)
    try:
        before, after = (resolve(profile_of({**change.current, "spec": spec}), plugins) for spec in specs)
    except InputError:  # the operator may have plugins that are missing here
        found = tuple(between(*({"spec": without_keys(spec, HIDDEN)} for spec in specs)))
    else:
        found = differences(before, after)
    return [f"profile {change.name}: {each.what}: {compact(each.before)} → {compact(each.after)}" for each in found] or [
        f"profile {change.name}: nothing changes in effect"
    ]


def _warn_of_git(change: ProfileChange) -> None:
    managers = [str(entry.get("manager")) for entry in change.current["metadata"].get("managedFields") or ()]
    for manager in dict.fromkeys(managers):
        if manager.startswith(_GIT):
            sys.stderr.write(f"placewright: {printable(manager)} manages this profile, too: it may put back what Git has\n")


async def _outcome(client: ApiClient, written: Object, patience: int) -> int:
    """Print whether the change took effect. 1 when it did not, or when the operator has not judged it in time."""
    to, generation = console(), written["metadata"]["generation"]
    if patience == 0:
        say(to, f"generation {generation} is written")
        return 0
    # The API server's consent is not enough: the operator may still refuse the profile, and says so in the status.
    began = time.monotonic()
    body = written
    while (reason := state(body)[0]) == UNKNOWN or reason == Reason.APPLYING:
        if time.monotonic() - began > patience:
            say(to, f"generation {generation} is written; no operator has said within {patience} s whether it took")
            return 1
        await asyncio.sleep(_LOOK_SECONDS)
        body = await read_profile(client, str(written["metadata"]["name"]))
    reason, _, message = state(body)
    say(to, f"generation {body['metadata']['generation']} is judged: {reason}: {message}")
    return 0 if reason in (Reason.ACTIVE, Reason.PAUSED) else 1
