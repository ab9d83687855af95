"""The fragmentation measure on columns against the paper's formula, taken literally."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np

from placewright.plugins.devicefragmentation.measure import IMPOSSIBLE, Ask, FragmentationMeasure, Nodes, choose
from placewright.plugins.devicefragmentation.mix import ANY_NODE, Shape, Typical
from plugins.fragmentation.scalar import Machine, Task, fragmentation, least_growth, placements
from seeds import seeds

UNITS = 1000
MODELS = ("A", "B")
#: A selection's text, as the plugin compares it, and what it means to the scalar model.
SELECTIONS = {ANY_NODE: None, b"a": frozenset("A"), b"ab": frozenset("AB"), b"c": frozenset("C")}


def random_shape(rng: random.Random) -> Shape:
    units = rng.choice([rng.randint(1, 1000), 250, 500, 1000, 1000, 2000, 4000, 8000])
    return Shape(units, rng.choice([0, 1000, 4000, rng.randint(0, 16_000)]), rng.randint(0, 64), rng.choice(list(SELECTIONS)))


def random_machine(rng: random.Random) -> Machine:
    gpus = [Fraction(rng.choice([0, 1000, 1000, 500, 250, rng.randint(0, 1000)]), UNITS) for _ in range(rng.randint(0, 8))]
    return Machine(rng.randint(0, 20_000), rng.randint(0, 80), tuple(gpus), rng.choice(MODELS))


def task(shape: Shape) -> Task:
    return Task(shape.cpu, shape.memory, Fraction(shape.units, UNITS), SELECTIONS[shape.selection])


def as_columns(machines: list[Machine], workload: FragmentationMeasure) -> Nodes:
    devices = np.zeros((len(machines), 8), np.int64)
    for row, machine in enumerate(machines):
        devices[row, : len(machine.gpus)] = [int(free * UNITS) for free in machine.gpus]
    selected = [[accepts(selection, machine) for selection in workload.selections] for machine in machines]
    return Nodes(
        np.array([machine.cpu for machine in machines], np.int64),
        np.array([machine.memory for machine in machines], np.int64),
        devices,
        np.array(selected, np.bool_).reshape(len(machines), len(workload.selections)),
    )


def accepts(selection: bytes, machine: Machine) -> bool:
    models = SELECTIONS[selection]
    return models is None or machine.model in models


def random_case(seed: int) -> tuple[list[Machine], Typical, FragmentationMeasure]:
    rng = random.Random(seed)
    shapes = {random_shape(rng): rng.randint(1, 500) for _ in range(rng.randint(1, 12))}
    typical = tuple(shapes.items())
    return [random_machine(rng) for _ in range(30)], typical, FragmentationMeasure(typical, UNITS)


@seeds(range(30), at_once=10)
def test_fragmentation_on_columns_is_the_papers_sum(seed: int) -> None:
    machines, typical, workload = random_case(seed)
    mix = [(task(shape), count) for shape, count in typical]
    assert workload.fragmentation(as_columns(machines, workload)).tolist() == [UNITS * fragmentation(mix, each) for each in machines]


@seeds(range(30), at_once=10)
def test_growth_is_the_least_of_all_choices_of_devices(seed: int) -> None:
    machines, typical, workload = random_case(seed)
    mix = [(task(shape), count) for shape, count in typical]
    rng = random.Random(seed)
    compared = 0
    for pod in [*(random_shape(rng)._replace(selection=ANY_NODE) for _ in range(5)), Shape(0, 2000, 8, ANY_NODE)]:
        found = workload.growth(as_columns(machines, workload), Ask(pod.units, pod.cpu, pod.memory))
        for growth, machine in zip(found.tolist(), machines, strict=True):
            expected = least_growth(mix, task(pod), machine)
            if expected is not None:
                assert growth == UNITS * expected
                compared += 1
    assert compared > 20


@seeds(range(30), at_once=10)
def test_the_chosen_devices_are_among_the_best(seed: int) -> None:
    machines, typical, workload = random_case(seed)
    mix = [(task(shape), count) for shape, count in typical]
    rng = random.Random(seed)
    compared = 0
    for machine in machines:
        pod = random_shape(rng)._replace(selection=ANY_NODE)
        after = {chosen: fragmentation(mix, left) for chosen, left in placements(task(pod), machine)}
        if after:
            chosen = choose(workload, as_columns([machine], workload), Ask(pod.units, pod.cpu, pod.memory), UNITS)
            assert after[chosen] == min(after.values())
            compared += 1
    assert compared > 3


def test_of_devices_that_are_equally_good_the_fullest_is_taken_and_of_these_the_first() -> None:
    workload = FragmentationMeasure((), UNITS)  # to nobody anything is of use
    node = Nodes(np.array([0]), np.array([0]), np.array([[1000, 300, 700, 300]]), np.ones((1, 0), np.bool_))
    assert choose(workload, node, Ask(200, 0, 0), UNITS) == (1,)
    assert choose(workload, node, Ask(500, 0, 0), UNITS) == (2,)


def test_a_share_that_fits_on_no_single_device_fits_nowhere() -> None:
    workload = FragmentationMeasure(((Shape(500, 0, 0, ANY_NODE), 1),), UNITS)
    node = Nodes(np.array([0]), np.array([0]), np.array([[400, 400, 0]]), np.ones((1, 1), np.bool_))
    assert workload.useful_after(node, Ask(800, 0, 0)).tolist() == [[IMPOSSIBLE] * 3]
    assert workload.useful_after(node, Ask(2000, 0, 0)).tolist() == [[IMPOSSIBLE]]


def test_sums_are_whole_numbers_however_many_pods_there_are() -> None:
    many = 2**53
    workload = FragmentationMeasure(((Shape(500, 0, 0, ANY_NODE), many), (Shape(600, 0, 0, ANY_NODE), 1)), UNITS)
    node = Nodes(np.array([0]), np.array([0]), np.array([[550]]), np.ones((1, 1), np.bool_))
    assert workload.fragmentation(node).tolist() == [550]
