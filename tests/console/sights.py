"""Every page of the console, in one place, for the tests that look at all of them; and files in which each page has something to show."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote

from .companymakers import claiming, device_claim, devices, given, gpu_class, group, member
from .makers import HOSTILE, Object, a_node, a_pod, claim_profile, file_of


class Sight(NamedTuple):
    """A page as a person sees it.

    Attributes:
        name: of its picture.
        address: the fragment.
        ready: an expression that is true once the page has its content.
        steps: expressions that a person's actions stand for, each after the one before is true.
    """

    name: str
    address: str
    ready: str
    steps: tuple[str, ...] = ()


def pod_address(namespace: str, name: str) -> str:
    """The address of a pod's page."""
    return _address("pod", namespace, name)


def _address(page: str, namespace: str, name: str) -> str:
    return f"#/{page}/{quote(namespace, safe='')}/{quote(name, safe='')}"


_UNFOLD = "[...document.querySelectorAll('main details')].map((each) => (each.open = true)).length + 1"
_CHOOSE = """(() => { const map = document.getElementById('map'); if (!document.querySelector('#node .meter')) { map.focus();
    for (const key of ['Home', 'Enter']) map.dispatchEvent(new KeyboardEvent('keydown', { key, cancelable: true })); }
    return document.querySelector('#node .meter'); })()"""
_ANSWERED = "document.getElementById('progress')?.textContent.startsWith('As of')"
_TRY = """(() => { const it = document.getElementById('weight-NodeResourcesFit'); if (it.value !== '7') { it.value = 7;
    it.dispatchEvent(new Event('input')); } return document.getElementById('yaml') !== null; })()"""
_NODES = "document.querySelector('#nodes tbody tr')"


def sights(
    waiting: tuple[str, str], placed: tuple[str, str], fitting: tuple[str, str], group: tuple[str, str], claim: tuple[str, str]
) -> tuple[Sight, ...]:
    """All pages of the console.

    Args:
        waiting: namespace and name of a pod that fits nowhere.
        placed: of a pod on a node.
        fitting: of a pod that waits and that a node can hold.
        group: of a pod group.
        claim: of a claim to devices.

    Returns:
        The pages. A new page of the console is added here, and all tests of this kind see it.
    """
    return (
        Sight("cluster", "#/cluster", "document.querySelector('#groups tbody tr')", (_CHOOSE, _UNFOLD, _NODES)),
        Sight("queue", "#/queue", "document.querySelector('#reasons > li')", (_UNFOLD,)),
        Sight("which-pod", "#/pod", "document.querySelector('#pod .empty h1')"),
        Sight("pod-waiting", pod_address(*waiting), "document.getElementById('funnel')"),
        Sight("pod-fitting", pod_address(*fitting), "document.getElementById('scores')", (_UNFOLD,)),
        Sight("pod-placed", pod_address(*placed), "document.querySelector('#pod .lines')"),
        Sight("what-if", "#/whatif", _ANSWERED, (_TRY, _ANSWERED, _UNFOLD)),
        Sight("group", _address("group", *group), "document.querySelector('#group h1')", (_UNFOLD,)),
        Sight("claim", _address("claim", *claim), "document.querySelector('#claim h1')", (_UNFOLD,)),
        Sight("time", "#/time", "document.querySelector('#charts svg, #charts canvas')", (_UNFOLD,)),
        Sight("shadows", "#/shadows", "document.querySelector('#shadows .panel')", (_UNFOLD,)),
        Sight("verdicts", f"#/cluster?pod={quote('/'.join(waiting), safe='')}", "document.querySelector('#verdicts:not([hidden])')"),
        Sight("pod-unknown", pod_address("shop", "nobody"), "document.querySelector('#pod .empty h1')"),
    )  # fmt: skip


#: Of `town`.
TOWN: Final = sights(("ml", "train-0"), ("shop", "web-3"), ("shop", "small-0"), ("ml", "llm"), ("ml", "wish"))


def shadow(name: str, of: str) -> Object:
    """A shadow with the figures that its status has."""
    made = claim_profile(name, "")
    made["spec"] = {"mode": "Shadow", "shadows": of}
    regret = {"decisions": 25, "meanPoints": 12.5, "maxPoints": 30, "meanPercent": 4.2}
    counts = {"pods": 60, "decided": 50, "agreementPercent": 40, "same": 20, "other": 25, "liveOnly": 5, "regret": regret}
    use = [{"name": each, "shadow": {"meanPercent": 50, "deviationPercent": 10}} for each in ("cpu", "memory", name)]
    return {**made, "status": {"shadow": {**counts, "resources": use}}}


def town(path: Path) -> Path:
    """A recording of sixty nodes in three zones, with pods of many kinds. Some pods are placed while it plays."""
    nodes = [
        a_node(
            f"ip-10-{i // 20}-{i % 20}-17.eu-west-1.compute.internal", cpu=(4, 16, 64)[i % 3], gpu=0 if i % 5 else 8, cordoned=i % 11 == 3,
            taint="example.com/gpu" if i % 5 == 0 else "", zone=f"eu-west-1{'abc'[i % 3]}", pool=("web", "batch", "gpu")[i % 3],
        )
        for i in range(60)
    ]  # fmt: skip
    names = [each["metadata"]["name"] for each in nodes]
    tolerates = [{"key": "example.com/gpu", "operator": "Exists"}]
    placed = [a_pod(f"web-{i}", names[i * 7 % 60], namespace="shop", cpu=250 * (1 + i % 9)) for i in range(150)]
    placed += [a_pod(f"rank-{i}", names[i * 5 % 60], namespace="ml", cpu=500, gpu=1 + i % 4, tolerations=tolerates) for i in range(24)]
    placed += [a_pod(f"agent-{i}", names[i], namespace="kube-system", cpu=100, schedulerName="another") for i in range(60)]
    waits = [a_pod(f"train-{i}", namespace="ml", gpu=16, tolerations=tolerates, created=f"2026-11-23T10:{i:02d}:00Z") for i in range(31)]
    waits += [a_pod(f"small-{i}", namespace="shop", cpu=500, created="2026-11-23T11:59:20Z") for i in range(3)]
    waits += [a_pod(f"huge-{i}", namespace="bank", cpu=200_000) for i in range(7)]
    waits += [a_pod("held", namespace="bank", schedulingGates=[{"name": "example.com/quota"}])]
    waits += [a_pod("lost", schedulerName="defualt-scheduler")]
    moves = [(0.01 * i, "MODIFIED", a_pod(f"late-{i}", names[i * 3 % 60], namespace="shop")) for i in range(8)]
    late = [a_pod(f"late-{i}", namespace="shop", created="2026-11-23T11:59:50Z") for i in range(8)]
    waits += [member("llm", f"llm-{i}", cpu=40_000, created=f"2026-11-23T11:{i:02d}:00Z") for i in range(12)]
    waits += [claiming("wisher", "wish", cpu=100)]
    objects = [group("llm", 12, topology="pool"), gpu_class(), devices(names[0], "g0", "g1"), device_claim("wish", count=4)]
    profiles = [claim_profile(), claim_profile("batch", "batch-scheduler"), shadow("greener", "default")]
    return file_of(path, [*nodes, *objects, *placed, *waits, *late, *profiles], moves)


#: A name with no place to break it. With what is put before and behind it it has 253 characters at most, as API servers allow.
LONG: Final = "a-very-long-name-" * 13 + "ends-with-" + "x" * 4
#: Characters that turn the direction of writing, that cannot be seen, and that stand above each other.
TURNED: Final = "left\u202eright\u2066\u200bhidden\u0000Z\u0351\u036b\u0343\u036a\u0302\u036b\u033d\u034f\u0334"
#: Of `rogues`.
ROGUES: Final = tuple(
    each
    for each in sights((LONG, f"{LONG}-0"), (HOSTILE, HOSTILE), (TURNED, TURNED), (LONG, HOSTILE), (LONG, LONG))
    if each.name not in {"time", "pod-unknown"}
)


def rogues(folder: Path) -> Path:
    """A snapshot whose file name, nodes, labels, taints, pods, namespaces, profiles, gates and resources are each chosen to do harm."""
    value = "v" * 63
    nodes: list[Object] = [a_node(HOSTILE, zone=HOSTILE), a_node(LONG, zone=LONG, taint=LONG), a_node(TURNED, zone=TURNED)]
    nodes += [a_node("__proto__", zone="")]
    nodes[1]["metadata"]["labels"] |= {f"{LONG}/{value}": value, f"{HOSTILE}/{TURNED}": HOSTILE}
    for each in nodes[:2]:
        each["status"]["allocatable"] |= {f"example.com/{value}": "8", f"{LONG}/{HOSTILE}": "9"}
    placed = [
        a_pod(HOSTILE, HOSTILE, namespace=HOSTILE),
        a_pod(LONG, LONG, namespace=LONG),
        a_pod("constructor", HOSTILE, namespace="__proto__"),
    ]
    waits = [a_pod(f"{LONG}-{i}", namespace=LONG, cpu=99_000) for i in range(2)]
    waits += [a_pod(TURNED, namespace=TURNED, cpu=1)]
    waits += [a_pod(HOSTILE * 3, namespace=HOSTILE, schedulingGates=[{"name": LONG}, {"name": HOSTILE}])]
    waits += [a_pod("stray", namespace=LONG, schedulerName=LONG), a_pod("toString", namespace="hasOwnProperty", schedulerName=HOSTILE)]
    waits += [member(HOSTILE, f"{LONG}{i}", namespace=LONG, cpu=99_000) for i in range(2)]
    waits += [claiming(HOSTILE * 2, LONG, namespace=LONG, cpu=100)]
    objects = [group(HOSTILE, 9, namespace=LONG, topology=LONG), gpu_class(), devices(LONG, LONG[:60], HOSTILE)]
    objects += [device_claim(LONG, namespace=LONG, has=(given(HOSTILE, LONG),), users=(HOSTILE, LONG))]
    profiles = [claim_profile(), claim_profile(LONG, LONG + "-scheduler"), claim_profile("h", HOSTILE + TURNED)]
    profiles += [shadow(LONG + "-shadow", LONG), shadow(HOSTILE, HOSTILE)]
    return file_of(folder / f"{HOSTILE.replace('/', '')}\u202egnp.snapshot", [*nodes, *objects, *placed, *waits, *profiles])
