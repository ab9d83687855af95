"""Replaces names by made-up ones, so that users can give a snapshot away. It still places pods in the same way.

Each text becomes a hash under a key that belongs to the snapshot and is not stored. Equal texts become equal hashes. So selectors, owners,
claims and volumes still find the same objects. Some texts mean more to placement, and keep this meaning:

- Names decide ties, for instance between volumes of one size. So a made-up name is a number in the order of the real names, and the hash.
- A claim of a generic ephemeral volume has the names of its pod and volume in its name.
- Whole numbers stay in the values of labels that Gt or Lt compare.
- A volume in several zones has them in one value, joined by `__`. Its region is the beginning of its zones' names.
- `nginx` and `nginx:latest` are one image. Disks of AWS and Google have several spellings.
- A text that cannot be a label stays such a text.
- Expressions that choose devices stay, and so do values of the attributes that they name. Values of other attributes are only compared with
  each other. Names of devices and pools keep their order, too.

These stay unchanged: quantities, effects, operators, times, and types of machines and systems. So do the names of resources, device
classes, attributes, schedulers, drivers, provisioners and profiles. Of Kubernetes, keys of labels and finalizers stay.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from placewright.api.annotations import DOMAIN_LIMITS
from placewright.api.avoidedpods import ANNOTATION as AVOIDED_PODS
from placewright.api.avoidedpods import Controller, avoided_by
from placewright.api.objects import Node
from placewright.api.podgroups import GROUP_LABEL, TOPOLOGY_KEY, TOPOLOGY_MODE, VOLCANO_GROUP_ANNOTATION
from placewright.api.profile import KIND as PROFILE
from placewright.api.selectors import NODE_NAME_FIELD, parse_int64
from placewright.api.storage import BETA_CLASS, MIGRATED_PLUGINS, SELECTED_NODE
from placewright.framework.registry import installed_sources
from placewright.plugins.domainlimit.args import DomainLimitError, read_limits, write_limits
from placewright_console.local.prunedobjects import avoided_text
from placewright_lab.snapshots.linefile import only_what_stays

Json = Any

_KEY_BYTES: Final = 32
_READY_MADE: Final = frozenset({"default", "kube-system", "kube-public", "kube-node-lease"})
#: Kinds whose names stay, because they name products, or because people use them on a command line.
_PUBLIC_KINDS: Final = frozenset({"CSIDriver", "DeviceClass", PROFILE})
_DEVICE_KINDS: Final = frozenset({"DeviceClass", "DeviceTaintRule", "ResourceClaim", "ResourceSlice"})
#: Label keys under these prefixes are Kubernetes' own, and so are the others named here.
_OWN_PREFIXES: Final = frozenset(
    {
        "kubernetes.io", "k8s.io", "node.kubernetes.io", "topology.kubernetes.io", "beta.kubernetes.io", "app.kubernetes.io",
        "failure-domain.beta.kubernetes.io", "apps.kubernetes.io", "batch.kubernetes.io", "statefulset.kubernetes.io",
        "node.cloudprovider.kubernetes.io",
    }
)  # fmt: skip
_OWN_KEYS: Final = frozenset(
    {
        "node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master", "node-role.kubernetes.io/worker",
        GROUP_LABEL, "topology.ebs.csi.aws.com/zone", "topology.gke.io/zone", "topology.cinder.csi.openstack.org/zone",
    }
)  # fmt: skip
#: Labels whose values identify no user. The type of a machine also tells how many disks it takes.
_PLAIN_LABELS: Final = re.compile(r"(beta\.)?kubernetes\.io/(os|arch)|(node|beta)\.kubernetes\.io/instance-type")
_ZONES: Final = re.compile(r".*(^|[./])(zone|region)")
_ZONE_SEPARATOR: Final = "__"
_LABEL_VALUE: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
_LABEL_KEY: Final = re.compile(r"([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
_AWS: Final = re.compile(r"aws://([^/]*)/+([^/]*)/*")
_GOOGLE: Final = re.compile(r"projects/UNSPECIFIED/(zones|regions)/([^/]*)/disks/(.*)")

#: Fields whose content always stays.
_KEPT: Final = frozenset(
    {
        "kind", "apiVersion", "operator", "effect", "phase", "type", "status", "reason", "creationTimestamp", "deletionTimestamp",
        "startTime", "schedulerName", "preemptionPolicy", "whenUnsatisfiable", "nodeAffinityPolicy", "nodeTaintsPolicy", "protocol",
        "restartPolicy", "action", "volumeMode", "volumeBindingMode", "provisioner", "driver", "attacher", "accessModes",
        "declaredFeatures", "requests", "limits", "allocatable", "capacity", "overhead", "allocatedResources", "maximumVolumeSize",
        "deviceClassName", "extendedResourceName", "resourceName", "resource", "apiGroup", "allocationMode", "allocationTimestamp",
        "expression", "counters", "consumedCapacity", "matchAttribute", "distinctAttribute", "bindingConditions",
        "bindingFailureConditions", "timeAdded", "lastTransitionTime",
    }
)  # fmt: skip
_NAMES: Final = frozenset(
    {
        "name", "namespace", "namespaces", "nodeName", "nominatedNodeName", "volumeName", "persistentVolumeName", "storageClassName",
        "volumeAttributesClassName", "podGroupName", "podGroup", "podGroupReplicaKey", "resourceClaimName", "resourceClaimTemplateName",
        "containerName", "requestName", "pool", "device", "counterSet", "parentCompositePodGroupName",
    }
)  # fmt: skip
#: Kubernetes' own finalizers, under its domains, and a few without any.
_OWN_FINALIZER: Final = re.compile(r"kubernetes|orphan|foregroundDeletion|([a-z0-9-]+\.)*(k8s|kubernetes)\.io/.*")
_WORD: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_IMAGES: Final = frozenset({"image", "reference", "names"})
_LABEL_MAPS: Final = frozenset({"labels", "matchLabels", "nodeSelector"})
_KEY_LISTS: Final = frozenset(
    {"matchLabelKeys", "affinityLabels", "antiAffinityLabelsPreference", "presentLabels", "absentLabels", "presentLabelsPreference",
     "absentLabelsPreference"}
)  # fmt: skip


@only_what_stays()
def anonymised(lines: Sequence[bytes], key: bytes | None = None) -> list[bytes]:
    """Return the objects, one a line, with made-up names. An explicit `key` gives the same names again."""
    objects = [msgspec.json.decode(line) for line in lines]
    mask = Mask(key or secrets.token_bytes(_KEY_BYTES), objects)
    return [msgspec.json.encode(mask.manifest(each)) for each in objects]


class Mask:
    """The map from real to made-up texts, for the objects of one snapshot. It also maps texts that are no object's name."""

    def __init__(self, key: bytes, objects: Iterable[Mapping[str, Json]]) -> None:
        self._key = key
        self._hashes: dict[str, str] = {}
        objects = list(objects)
        named = {_name_of(each) for each in objects if each["kind"] not in _PUBLIC_KINDS}
        names = sorted((named | set(_device_names(objects))) - {*_READY_MADE, ""})
        width = len(str(len(names)))
        self._names = {name: f"n{place:0{width}}-{self._hash(name, 8)}" for place, name in enumerate(names)}
        self._names.update({name: name for name in _READY_MADE})
        parts = list(_mappings(objects))
        compared = (each.get("key") for each in parts if each.get("operator") in ("Gt", "Lt"))
        self._compared = frozenset(key for key in compared if isinstance(key, str))
        expressions = (each.get("expression") for each in parts)
        self._expressed = frozenset(word for text in expressions if isinstance(text, str) for word in _WORD.findall(text))
        self._claims = dict(self._ephemeral_claims(objects))

    # --- texts ----------------------------------------------------------------------------------------------------------------

    def name(self, text: str) -> str:
        """Return the name of an object."""
        return self._names.get(text) or self.text(text)

    def text(self, text: str) -> str:
        """Replace a text without a structure. An empty one stays empty."""
        return f"x{self._hash(text, 12)}" if text else text

    def claim(self, namespace: str, name: str) -> str:
        """Return the name of a claim."""
        return self._claims.get((namespace, name)) or self.name(name)

    def label_key(self, key: str) -> str:
        """Return the key of a label or a taint."""
        if key in _OWN_KEYS or key.partition("/")[0] in _OWN_PREFIXES or not key:
            return key
        return f"{'' if _LABEL_KEY.fullmatch(key) else '!'}k{self._hash(key, 12)}"

    def label_value(self, key: str, value: str) -> str:
        """Return the value of the label or taint of that (real) key."""
        if not value or _PLAIN_LABELS.fullmatch(key) or (key in self._compared and parse_int64(value) is not None):
            return value
        if value in self._names:
            return self._names[value]
        if _ZONES.fullmatch(key):
            return _ZONE_SEPARATOR.join(self._zone(zone) for zone in value.split(_ZONE_SEPARATOR))
        return self.text(value) if _LABEL_VALUE.fullmatch(value) else f"!{self.text(value)}"

    def attribute(self, name: str, value: str) -> str:
        """Return the text of a device's attribute with this name."""
        return value if name.rpartition("/")[2] in self._expressed else self.text(value)

    def finalizer(self, text: str) -> str:
        """Replace a finalizer's name. The number of finalizers stays."""
        return text if _OWN_FINALIZER.fullmatch(text) else f"placewright.invalid/{self.text(text)}"

    def request(self, text: str) -> str:
        """Return the name of a request for devices, `request` or `request/subrequest`."""
        return "/".join(self.name(part) for part in text.split("/"))

    def image(self, image: str) -> str:
        """Return the name of an image, with or without a tag or digest."""
        place, at, digest = image.partition("@")
        if at:
            way, colon, content = digest.partition(":")  # the colon shows that the name has a tag
            return f"{self.text(place)}@{way}{colon}{self.text(content)}"
        tagged = place.rfind(":") > place.rfind("/")
        path, _, tag = place.rpartition(":") if tagged else (place, "", "")
        return self.text(path) + (f":{tag if tag == 'latest' else self.text(tag)}" if tagged else "")

    def disk(self, handle: str) -> str:
        """Replace the name of a disk or a volume, in any of its spellings."""
        if found := _AWS.fullmatch(handle):
            return f"aws://{self._zone(found[1])}/{self.disk(found[2])}"
        if found := _GOOGLE.fullmatch(handle):
            return f"projects/UNSPECIFIED/{found[1]}/{self._zone(found[2])}/disks/{self.disk(found[3])}"
        return ("vol-" if handle.startswith("vol-") else "") + self.text(handle)

    def _zone(self, zone: str) -> str:
        """Replace a zone part by part, because regions are the first parts of zones. Blanks around it do not count."""
        parts = zone.strip().split("-")
        if zone == "UNSPECIFIED" or not all(parts):
            return zone if zone in ("", "UNSPECIFIED") else self.text(zone)
        return "-".join(f"z{self._hash(part, 6)}" for part in parts)

    def _hash(self, text: str, length: int) -> str:
        known = self._hashes.get(text)
        if known is None:
            known = self._hashes[text] = hmac.new(self._key, text.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()
        return known[:length]

    # --- objects --------------------------------------------------------------------------------------------------------------

    def manifest(self, manifest: Mapping[str, Json]) -> Json:
        """Return an object with made-up names."""
        if manifest["kind"] == PROFILE:
            return _Arguments(self).profile(manifest)
        walk = (_DeviceWalk if manifest["kind"] in _DEVICE_KINDS else _Walk)(self, str(manifest["kind"]), _namespace_of(manifest))
        made = walk.mapping(manifest) | _plain(manifest)
        if manifest["kind"] == "PersistentVolumeClaim":
            made["metadata"]["name"] = self.claim(_namespace_of(manifest), _name_of(manifest))
        if manifest["kind"] in _PUBLIC_KINDS:
            made["metadata"]["name"] = _name_of(manifest)
        made["metadata"] |= _selected(manifest, made["metadata"])
        if annotations := manifest["metadata"].get("annotations"):
            made["metadata"]["annotations"] = self._annotations(annotations, manifest)
        return made

    def _annotations(self, annotations: Mapping[str, str], manifest: Mapping[str, Json]) -> dict[str, str]:
        names = (SELECTED_NODE, BETA_CLASS, VOLCANO_GROUP_ANNOTATION)
        made = {key: self.name(value) if key in names else value for key, value in annotations.items()}
        if TOPOLOGY_KEY in made:
            made[TOPOLOGY_KEY] = self.label_key(made[TOPOLOGY_KEY])
        if AVOIDED_PODS in made and manifest["kind"] == "Node":
            avoided = avoided_by(msgspec.convert(manifest, Node))
            made[AVOIDED_PODS] = avoided_text(Controller(kind, self.text(uid)) for kind, uid in avoided)
        if DOMAIN_LIMITS in made:
            made[DOMAIN_LIMITS] = self._limits(made[DOMAIN_LIMITS])
        known = {*names, MIGRATED_PLUGINS, AVOIDED_PODS, TOPOLOGY_KEY, TOPOLOGY_MODE, DOMAIN_LIMITS}
        return {key: value if key in known else "yes" for key, value in made.items()}

    def _limits(self, text: str) -> str:
        """Return the limits in a pod's own text. A text that is no limit stays such a text."""
        try:
            limits = write_limits(read_limits(text))
        except DomainLimitError:
            return self.text(text)
        return msgspec.json.encode(_Arguments(self).value("", msgspec.json.decode(limits))).decode()

    def _ephemeral_claims(self, objects: Iterable[Mapping[str, Json]]) -> Iterable[tuple[tuple[str, str], str]]:
        """Return the claims that are called `POD-VOLUME`. If two pairs have the same name, the pod decides."""
        for pod in objects:
            for volume in (pod.get("spec") or {}).get("volumes") or () if pod["kind"] == "Pod" else ():
                if "ephemeral" in volume:
                    claim = f"{_name_of(pod)}-{volume.get('name', '')}"
                    yield (_namespace_of(pod), claim), f"{self.name(_name_of(pod))}-{self.name(volume.get('name', ''))}"


class _Walk:
    """Walks through one object, and replaces every text that is not known to stay."""

    def __init__(self, mask: Mask, kind: str, namespace: str) -> None:
        self._mask = mask
        self._kind = kind
        self._namespace = namespace

    def mapping(self, item: Mapping[str, Json], within: str = "") -> dict[str, Json]:
        """Replace the texts of one level in the field `within`."""
        made = {field: self._field(field, value, within) for field, value in item.items()}
        if "key" in item:
            made |= _keyed(self._mask, item, names=within == "matchFields")
        if within == "claimRef":
            made["name"] = self._mask.claim(item.get("namespace", ""), item.get("name", ""))
        return made

    def _field(self, field: str, value: Json, within: str) -> Json:
        if field in _KEPT and not (field == "status" and isinstance(value, dict)):
            return value
        if field == "name" and within == "drivers":
            return value
        if field in _LABEL_MAPS or (field == "selector" and self._kind in ("Service", "ReplicationController")):
            return _labels(self._mask, value)
        if field == "disruptedPods":
            return {self._mask.name(name): when for name, when in value.items()}
        if field == "claimName":
            return self._mask.claim(self._namespace, value)
        return self._content(field, value)

    def _content(self, field: str, value: Json) -> Json:
        if isinstance(value, dict):
            return self.mapping(value, field)
        if isinstance(value, list):
            return [self._content(field, each) for each in value]
        return self._maker(field)(value) if isinstance(value, str) else value

    def _maker(self, field: str) -> Callable[[str], str]:
        if field in _NAMES:
            return self._mask.name
        if field in _IMAGES and self._kind in ("Pod", "Node"):
            return self._mask.image
        if field == "topologyKey" or field in _KEY_LISTS:
            return self._mask.label_key
        if field == "finalizers":
            return self._mask.finalizer
        if field == "hostIP":
            return lambda address: address if address in ("", "0.0.0.0") else self._mask.text(address)  # noqa: S104
        return self._mask.disk if field in ("volumeID", "pdName", "volumeHandle") else self._mask.text


class _DeviceWalk(_Walk):
    """Walks through an object about devices, in which some fields have another meaning."""

    def _field(self, field: str, value: Json, within: str) -> Json:
        if field == "attributes":
            return {name: self._attribute(name, content) for name, content in value.items()}
        if field == "request" or (field == "requests" and within == "constraints"):
            return self._content(field, value)
        if field == "nodeSelector" or (field == "requests" and within == "devices"):
            return self._content("", value)
        return super()._field(field, value, within)

    def _attribute(self, name: str, content: Mapping[str, Json]) -> Json:
        return {kind: self._mask.attribute(name, value) if kind == "string" else value for kind, value in content.items()}

    def _maker(self, field: str) -> Callable[[str], str]:
        return self._mask.request if field in ("request", "requests") else super()._maker(field)


class _Arguments:
    """Walks through a profile. It replaces labels in the arguments of plugins, and keeps the rest."""

    def __init__(self, mask: Mask) -> None:
        self._mask = mask

    def profile(self, manifest: Mapping[str, Json]) -> Json:
        """Remove a profile's own labels, which placement does not read, and the addresses of its extenders."""
        made = {**manifest, "metadata": {key: value for key, value in manifest["metadata"].items() if key != "labels"}}
        spec = dict(manifest.get("spec") or {})
        if configs := spec.get("pluginConfig"):
            spec["pluginConfig"] = [self.value("", each) for each in configs]
        if extenders := spec.get("extenders"):
            urls = (f"http://{self._mask.text(each.get('urlPrefix', ''))}.invalid" for each in extenders)
            spec["extenders"] = [{**each, "urlPrefix": url} for each, url in zip(extenders, urls, strict=True)]
        return {**made, "spec": spec}

    def value(self, field: str, value: Json) -> Json:
        """Return a part of the arguments, in the field `field`."""
        if isinstance(value, list):
            return [self.value(field, each) for each in value]
        if isinstance(value, str):
            if field == "namespaces":
                return self._mask.name(value)
            return self._mask.label_key(value) if field == "topologyKey" or field in _KEY_LISTS else value
        if not isinstance(value, dict):
            return value
        if field in _LABEL_MAPS:
            return _labels(self._mask, value)
        made = {each: self.value(each, content) for each, content in value.items()}
        return made | _keyed(self._mask, value, names=field == "matchFields") if "key" in value else made


def _plain(manifest: Mapping[str, Json]) -> dict[str, Json]:
    """Return the fields without private content, of an object that an installed plugin declares."""
    for source in installed_sources():
        if source.reads(manifest.get("apiVersion"), manifest["kind"]):
            return {field: manifest[field] for field in source.plain_fields if field in manifest}
    return {}


def _selected(manifest: Mapping[str, Json], made: Mapping[str, Json]) -> dict[str, Json]:
    """Keep the labels and the name by which a plugin's source selects an object. The plugin's package names them."""
    kept: dict[str, Json] = {}
    for source in installed_sources():
        if source.reads(manifest.get("apiVersion"), manifest["kind"]):
            labels = manifest["metadata"].get("labels") or {}
            compared = {each.key for each in source.selector.expressions} & labels.keys()
            if compared:
                kept["labels"] = {**made.get("labels", {}), **{key: labels[key] for key in compared}}
            if "metadata.name" in source.field_selector:
                kept["name"] = manifest["metadata"]["name"]
    return kept


def _keyed(mask: Mask, item: Mapping[str, Json], *, names: bool) -> dict[str, Json]:
    """Mask a requirement, a taint or a toleration by its key. `names` is True if it is about the node's name, a field."""
    key = item["key"]
    if names and key == NODE_NAME_FIELD:
        return {"values": [mask.name(each) for each in item["values"]]} | {"key": key} if item.get("values") else {"key": key}
    made: dict[str, Json] = {"key": mask.label_key(key)}
    if "value" in item:
        made["value"] = mask.label_value(key, item["value"])
    if item.get("values") is not None:
        made["values"] = [mask.label_value(key, each) for each in item["values"]]
    return made


def _labels(mask: Mask, labels: Mapping[str, str] | None) -> dict[str, str] | None:
    return None if labels is None else {mask.label_key(key): mask.label_value(key, value) for key, value in labels.items()}


def _mappings(item: Json) -> Iterable[Mapping[str, Json]]:
    """Yield every mapping in an object, however deep."""
    if isinstance(item, dict):
        yield item
    for each in item.values() if isinstance(item, dict) else item if isinstance(item, list) else ():
        yield from _mappings(each)


def _device_names(objects: Iterable[Mapping[str, Json]]) -> Iterable[str]:
    """Return the names of pools and of the devices in them."""
    for each in objects:
        if each["kind"] == "ResourceSlice":
            spec = each.get("spec") or {}
            yield (spec.get("pool") or {}).get("name", "")
            yield from (device.get("name", "") for device in spec.get("devices") or ())


def _name_of(manifest: Mapping[str, Json]) -> str:
    return str(manifest["metadata"].get("name", ""))


def _namespace_of(manifest: Mapping[str, Json]) -> str:
    return str(manifest["metadata"].get("namespace", ""))
