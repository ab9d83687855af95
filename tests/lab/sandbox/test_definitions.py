"""What a definition leaves behind when it goes; definitions at work are asked about in tests/contract."""

from __future__ import annotations

from lab.sandbox.makers import Core, definition, widget


def test_a_deleted_definition_takes_its_objects_and_paths_with_it() -> None:
    core = Core()
    core.create("customresourcedefinitions", definition())
    core.create("widgets", widget("a"))
    key = core.type("widgets").key
    generation = core.registry.generation
    core.writes.delete(core.type("customresourcedefinitions"), "", "widgets.example.test")
    assert core.registry.find("example.test", "v1", "widgets") is None
    assert core.registry.generation > generation
    assert core.store.listed(key) == []
