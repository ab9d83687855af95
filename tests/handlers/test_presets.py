"""One word in a profile changes where a running scheduler puts pods."""

from __future__ import annotations

from .stage import Stage, operator


async def test_a_preset_changes_where_pods_go_while_the_scheduler_runs(stage: Stage) -> None:
    async with operator(stage):
        apart = stage.pods(3, cpu="500m")
        await stage.until(lambda: stage.placed(*apart))
        assert len({stage.node_of(name) for name in apart}) == 3
        generation = stage.edit_profile(preset="bin-packing")
        await stage.until(lambda: stage.show_profile()["status"]["activeGeneration"] == generation)
        together = stage.pods(4, cpu="500m")
        await stage.until(lambda: stage.placed(*together))
        assert len({stage.node_of(name) for name in together}) == 1
        assert {decision.generation for name in together if (decision := stage.decision(name))} == {generation}
