"""The table "A field of another sort" of docs/contributing.md: fields of all sorts are added, and tests ask for each place."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from typing import Final

import pytest
import yaml

from packaging.checkout import Checkout
from programs import needs

PROFILE: Final = "operator/placewright/api/profile.py"
RESOLVE: Final = "operator/placewright/profiles/resolve.py"
EFFECTIVE: Final = "operator/placewright/profiles/effective.py"
DIFFERENCE: Final = "operator/placewright/profiles/effective.py"
PROMOTE: Final = "operator/placewright/cli/profiles/promote.py"
CHECK: Final = "operator/placewright/profiles/check.py"
RULES: Final = "operator/placewright/profiles/rules.py"
CONFIG: Final = "operator/placewright/profiles/config.py"
WRITER: Final = "operator/placewright/profiles/kubescheduler/writer.py"
COLUMNS: Final = "tools/generated/definition.py"
ALL_FIELDS: Final = "tests/profiles/test_all_fields.py"
SCHEMA: Final = "tests/profiles/test_schema.py"
BREAKS: Final = "tests/profiles/test_rules.py"
#: By name in Python, the type of a field of each sort, and the facet that bounds it.
SORTS: Final = {
    "sample_text": ("str", "maxLength=9"),
    "sample_number": ("int", ""),
    "sample_word": ("str", ""),
    "sample_list": ("list[bool]", "maxItems=9, **ATOMIC"),
    "sample_map": ("dict[str, int]", "maxProperties=9"),
    "sample_struct": ("Sample", ""),
}
#: The field that is merged with the defaults, and the one that decides where a pod goes; all others go into effect as they are written.
MERGED: Final = "sampleNumber"
DECIDING: Final = "sampleMap"
FIELDS: Final = frozenset({"sampleText", "sampleNumber", "sampleWord", "sampleList", "sampleMap", "sampleStruct"})
STRUCT: Final = '''class Sample(KubeObject, frozen=True):
    """A field with a field of its own."""

    part: Annotated[bool, means("A part.")] = False


'''
SPEC: Final = "class ProfileSpec(KubeObject, frozen=True):\n"
LAST: Final = '    paused: Annotated[bool, means("Take no new pods'
#: A profile with the field that kube-scheduler has, and with the one that has a form of its own.
PROFILE_TEXT: Final = (
    "{apiVersion: placewright.dev/v1alpha1, kind: SchedulingProfile, metadata: {name: field}, "
    "spec: {schedulerName: field, sampleWord: Two, sampleStruct: {part: true}}}"
)
ASKED: Final = re.compile(r"^E +(?:AssertionError: )?(.+?): (?:add|run) (.*)$", re.MULTILINE)


class Places:
    """A copy of the tree, in which fields are added place by place."""

    def __init__(self, checkout: Checkout) -> None:
        self._checkout = checkout

    def change(self, file: str, before: str, after: str) -> None:
        """Replace the one occurrence of `before`."""
        path = self._checkout.root / file
        text = path.read_text(encoding="utf-8")
        assert text.count(before) == 1, f"{file} has this {text.count(before)} times: {before}"
        path.write_text(text.replace(before, after), encoding="utf-8")

    def asked(self, *files: str) -> set[tuple[str, str]]:
        """Run tests, and return the (field or file, place) that their failures ask for; each failure asks for one."""
        ran = self._checkout.run(f".venv/bin/pytest -q --tb=short {' '.join(files)}")
        assert ran.returncode in (0, 1), ran.stdout + ran.stderr
        found = set(ASKED.findall(ran.stdout))
        failed = re.findall(r"^FAILED ", ran.stdout, re.MULTILINE)
        assert len(ASKED.findall(ran.stdout)) == len(failed), ran.stdout
        return found

    def run(self, command: str) -> str:
        ran = self._checkout.run(command)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout

    def columns(self) -> dict[str, int]:
        """The columns of `kubectl get`; those that only `-o wide` shows have a priority above 0."""
        (version,) = yaml.safe_load((self._checkout.root / "crds/schedulingprofiles.yaml").read_text())["spec"]["versions"]
        return {column["name"]: column.get("priority", 0) for column in version["additionalPrinterColumns"]}


def of(asked: Collection[tuple[str, str]], *places: str) -> set[str]:
    """The fields for which one of the failures names all of `places`."""
    return {path.removeprefix("spec.") for path, text in asked if all(place in text for place in places)}


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Places:
    return Places(Checkout(tmp_path_factory.mktemp("fields") / "checkout"))


def declared(*, bounded: bool) -> str:
    """The lines of all fields, as an author writes them first, or with their bounds."""
    facets = {name: bound if bounded else "" for name, (_, bound) in SORTS.items()} | {"sample_word": 'enum=["One", "Two"]'}
    return "".join(
        f'    {name}: Annotated[{kind} | None, means("A sample."{", " if facets[name] else ""}{facets[name]})] = None\n'
        for name, (kind, _) in SORTS.items()
    )


def own_places(places: Places, fields: Collection[str]) -> None:
    """Fill the places of a field that kube-scheduler has, of one that is a wide column, and of one that has a form of its own."""
    own = '    if type(value).__name__ == "Sample":\n        return "a form of its own"\n'
    places.change(EFFECTIVE, 'rules that change nothing."""\n', 'rules that change nothing."""\n' + own)
    places.change(
        COLUMNS, "_DETAIL_COLUMNS: Final = (\n", '_DETAIL_COLUMNS: Final = (\n    ("Word", "string", ".spec.sampleWord", "A sample."),\n'
    )
    last = "    plugins: ConfigPlugins = ConfigPlugins()\n"
    places.change(CONFIG, last, "    sample_word: str | None = None\n" + last)
    line = "            plugin_config=profile.plugin_config,\n"
    places.change(CONFIG, line, line + "            sample_word=profile.sample_word,\n")
    places.change(WRITER, '    "shadows", "shadow",\n', '    "shadows", "shadow", "sampleWord",\n')
    asked = places.asked(*fields)
    assert of(asked, f"_profile in {WRITER}") == of(asked, f"HELD in {ALL_FIELDS}") == {"sampleWord"}

    line = '    document: Document = {"schedulerName": spec.scheduler_name}\n'
    places.change(WRITER, line, line + '    if spec.sample_word:\n        document["sampleWord"] = spec.sample_word\n')
    places.change(ALL_FIELDS, '| {"percentageOfNodesToScore", "paused"}', '| {"percentageOfNodesToScore", "paused", "sampleWord"}')
    places.run("make generate")
    assert places.asked(*fields) == set()

    assert places.columns()["Word"] == 1
    shown = places.run(f"echo '{PROFILE_TEXT}' > field.yaml && .venv/bin/placewright profiles show field.yaml -o json")
    assert json.loads(shown)["sampleStruct"] == "a form of its own"
    configuration = places.run(".venv/bin/placewright convert --to kubeschedulerconfiguration field.yaml")
    assert yaml.safe_load(configuration)["profiles"][0]["sampleWord"] == "Two"
    assert "sampleWord: Two" in places.run(f"echo '{configuration}' > scheduler.yaml && .venv/bin/placewright convert scheduler.yaml")


@needs("bash")
@pytest.mark.timeout(900)
def test_each_place_of_a_new_field_is_asked_for_until_it_is_filled(places: Places) -> None:
    fields = ("tests/profiles/test_all_fields.py", "tests/profiles/test_schema.py", "tests/profiles/test_config.py")
    places.change(PROFILE, SPEC, STRUCT + SPEC)
    places.change(PROFILE, LAST, declared(bounded=False) + LAST)
    asked = places.asked(*fields)
    assert of(asked, f"SETTINGS in {PROFILE}", RESOLVE, "ResolvedProfile", f"as_document in {EFFECTIVE}") == FIELDS
    assert of(asked, f"SETTINGS in {PROFILE}", RESOLVE, "ResolvedProfile", f"_settings in {DIFFERENCE}") == FIELDS
    assert of(asked, f"DECIDING in {PROFILE}", f"STAYS in {PROMOTE}") == FIELDS
    for facet, field in (("maxLength", "sampleText"), ("maxItems", "sampleList"), ("maxProperties", "sampleMap")):
        assert field in of(asked, facet, PROFILE)
    assert of(asked, "**ATOMIC or **keyed_by(…)") == {".spec.sampleList"}
    assert of(asked, f"the default to the list in {SCHEMA}") == {".spec.sampleStruct.part"}
    assert of(asked, "`make generate`") == {"crds/schedulingprofiles.yaml"}

    places.change(PROFILE, declared(bounded=False), declared(bounded=True))
    settings = ", ".join(f'"{name}"' for name in SORTS if name != "sample_number")
    places.change(PROFILE, '"compatibility", "feature_gates",', f'"compatibility", "feature_gates", {settings},')
    places.change(SCHEMA, '        ".spec.paused": False,\n', '        ".spec.paused": False,\n        ".spec.sampleStruct.part": False,\n')
    asked = places.asked(*fields)
    assert of(asked, f"as_document in {EFFECTIVE}") == of(asked, f"_settings in {DIFFERENCE}") == {MERGED}
    assert of(asked, "means(…)") == of(asked, SCHEMA) == set()

    places.change(RESOLVE, "        settings=spec.settings,\n", "        settings=spec.settings, sample_number=spec.sample_number,\n")
    places.change(
        "operator/placewright/framework/runtime/resolvedprofile.py",
        "    shadow_budget: float = 0.05\n", "    shadow_budget: float = 0.05\n    sample_number: int | None = None\n",
    )  # fmt: skip
    line = '        "sampleNumber": profile.sample_number,\n'
    places.change(EFFECTIVE, '        "preset": profile.preset,\n', '        "preset": profile.preset,\n' + line)
    places.change(DIFFERENCE, '        "shadows": profile.shadows,\n', '        "shadows": profile.shadows,\n' + line)
    asked = places.asked(*fields)
    assert of(asked, f"SETTINGS in {PROFILE}") == set()
    assert of(asked, f"STAYS in {PROMOTE}") == FIELDS

    stays = "".join(f'    "{field}": "a shadow does not try it",\n' for field in sorted(FIELDS - {DECIDING}))
    places.change(PROMOTE, "Final[Mapping[str, str]] = {\n", "Final[Mapping[str, str]] = {\n" + stays)
    places.change(PROFILE, '"compatibility", "featureGates")', f'"compatibility", "featureGates", "{DECIDING}")')
    asked = places.asked(*fields)
    assert {field for field, _ in asked} == {"crds/schedulingprofiles.yaml"}

    own_places(places, fields)


@needs("bash")
@pytest.mark.timeout(900)
def test_each_place_of_a_new_rule_is_asked_for_until_it_is_filled(places: Places) -> None:
    rule = '        ValidationRule("!has(self.preset) || self.preset != \'spread\'", "preset is a sample"),\n'
    places.change(RULES, '    ("ProfileSpec", ""): (\n', '    ("ProfileSpec", ""): (\n' + rule)
    assert ("preset is a sample", f"an object that breaks it to BREAKS in {BREAKS}") in places.asked(BREAKS)

    case = '    "preset is a sample": ({"preset": "spread"}, None),\n'
    places.change(BREAKS, "tuple[Spec, Spec | None]] = {\n", "tuple[Spec, Spec | None]] = {\n" + case)
    assert places.asked(BREAKS) == {("preset is a sample", f"it to check_spec in {CHECK}")}

    check = '    if spec.preset == "spread":\n        yield Problem("spec.preset", "spread", "a sample")\n'
    places.change(CHECK, "    told: list[str] = []\n", check + "    told: list[str] = []\n")
    assert places.asked(BREAKS) == set()
