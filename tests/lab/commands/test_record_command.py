"""`placewright record` against a sandbox: what is written down, when, and what is left when it ends, is killed, or loses the server."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from handlers.stage import DEADLINE, Stage, new_stage
from placewright.cli.livecluster import readable
from placewright.cli.main import main
from placewright.kube.auth.login import load_config
from placewright.kube.client import ApiClient
from placewright_lab.simulation.scenario import Act
from placewright_lab.snapshots.linefile import NewFile, numbered_lines
from placewright_lab.snapshots.recorder import Recorded, Recorder
from placewright_lab.snapshots.snapshot import Recording, read_recording

Body = dict[str, Any]


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with new_stage() as made:
        yield made.profile().nodes(3)


class AtWork:
    """A recorder at work in this process."""

    def __init__(self, path: Path, recorder: Recorder, task: asyncio.Task[Recorded], stop: asyncio.Event) -> None:
        self.path = path
        self.recorder = recorder
        self.task = task
        self._stop = stop

    def told(self, act: Act) -> int:
        return self.recorder.recorded.acts[act]

    async def end(self) -> Recording:
        self._stop.set()
        async with asyncio.timeout(DEADLINE):
            await self.task
        return read_recording(self.path)


@asynccontextmanager
async def recording(stage: Stage, path: Path) -> AsyncIterator[AtWork]:
    stop, begun = asyncio.Event(), asyncio.Event()
    async with ApiClient(load_config(str(stage.sandbox.kubeconfig))) as client:
        recorder = Recorder(client, await readable(client))

        async def run() -> Recorded:
            with NewFile(path) as new:
                return await recorder.run(new, stop, lambda _: begun.set())

        task = asyncio.create_task(run())
        async with asyncio.timeout(DEADLINE):
            await asyncio.wait([task, asyncio.create_task(begun.wait())], return_when=asyncio.FIRST_COMPLETED)
        try:
            yield AtWork(path, recorder, task, stop)
        finally:
            stop.set()
            await asyncio.gather(task, return_exceptions=True)


def modify(stage: Stage, plural: str, name: str, change: Callable[[Body], Any]) -> None:
    namespace = "default" if plural == "pods" else ""
    stage.sandbox.writes.modify(stage.sandbox.resource("", "v1", plural), namespace, name, change)


def bind(stage: Stage, name: str, node: str) -> None:
    modify(stage, "pods", name, lambda pod: pod["spec"].update(nodeName=node))


def left_in(folder: Path) -> list[Path]:
    return list(folder.iterdir())


def changes(path: Path) -> list[tuple[str, str, str]]:
    """Return act, kind and name of the lines with changes."""
    lines = [json.loads(line) for _, line in numbered_lines(path, on_cut=lambda _: None)]
    found = [each for each in lines if "act" in each]
    return [(each["act"], each["object"]["kind"], each["object"]["metadata"]["name"]) for each in found]


async def test_what_happens_is_written_down_in_order_and_read_as_a_scenario(stage: Stage, tmp_path: Path) -> None:
    stage.pod("old").pod("waits")
    bind(stage, "old", "node-0")
    await stage.until(lambda: stage.show("old")["status"].get("startTime"))
    async with recording(stage, tmp_path / "r.gz") as at_work:
        uid = stage.pod("new").show("new")["metadata"]["uid"]
        await stage.until(lambda: at_work.told(Act.ADDED) >= 1)
        bind(stage, "new", "node-1")
        await stage.until(lambda: at_work.told(Act.MODIFIED) >= 1)
        stage.delete_pod("old")
        await stage.until(lambda: at_work.told(Act.DELETED) >= 1)
        stage.node("late")
        await stage.until(lambda: at_work.told(Act.ADDED) >= 2)
        found = await at_work.end()
    once = list(dict.fromkeys(changes(tmp_path / "r.gz")))  # that its kubelet has started a pod is a change of its own
    terminated = [("MODIFIED", "Pod", "old"), ("DELETED", "Pod", "old")]
    assert once == [("ADDED", "Pod", "new"), ("MODIFIED", "Pod", "new"), *terminated, ("ADDED", "Node", "late")]
    happened = [(each.act, each.manifest["metadata"]["name"]) for each in found.scenario.happenings]
    assert happened == [("ADDED", "new"), ("MODIFIED", "old"), ("DELETED", "old"), ("ADDED", "late")]
    assert found.recorded_nodes == {uid: "node-1"}
    assert found.header.counts == {"Pod": 2, "Node": 3, "Namespace": 4, "SchedulingProfile": 1}
    assert found.notes == []
    assert (tmp_path / "r.gz").stat().st_mode & 0o777 == 0o600


async def test_what_placement_does_not_read_is_no_change(stage: Stage, tmp_path: Path) -> None:
    stage.pod("a")
    async with recording(stage, tmp_path / "r.gz") as at_work:
        modify(stage, "nodes", "node-0", lambda node: node["metadata"].setdefault("annotations", {}).update(heartbeat="1"))
        modify(stage, "nodes", "node-0", lambda node: node["status"].update(conditions=[{"type": "Ready", "status": "False"}]))
        modify(stage, "pods", "a", lambda pod: pod["metadata"].setdefault("annotations", {}).update(token="s3cr3t"))
        modify(stage, "pods", "a", lambda pod: pod["metadata"].setdefault("labels", {}).update(app="seen"))
        await stage.until(lambda: at_work.told(Act.MODIFIED) > 0)
        stage.node("last")
        await stage.until(lambda: at_work.told(Act.ADDED) > 0)
        await at_work.end()
    assert changes(tmp_path / "r.gz") == [("MODIFIED", "Pod", "a"), ("ADDED", "Node", "last")]


async def test_a_pod_that_ends_by_itself_runs_as_long_in_the_replay(stage: Stage, tmp_path: Path) -> None:
    uid = stage.pod("job").show("job")["metadata"]["uid"]
    async with recording(stage, tmp_path / "r.gz") as at_work:
        bind(stage, "job", "node-0")
        await stage.until(lambda: at_work.told(Act.MODIFIED) >= 1)
        modify(stage, "pods", "job", lambda pod: pod.update(status={"phase": "Succeeded"}))
        await stage.until(lambda: at_work.told(Act.DELETED) >= 1)
        stage.delete_pod("job")  # it is long gone
        stage.node("last")
        await stage.until(lambda: at_work.told(Act.ADDED) >= 1)
        found = await at_work.end()
    assert found.scenario.durations.keys() == {uid}
    assert [each.act for each in found.scenario.happenings] == [Act.ADDED]
    assert at_work.told(Act.DELETED) == 1


async def test_what_vanished_while_the_server_was_away_is_written_down_when_it_is_back(stage: Stage, tmp_path: Path) -> None:
    stage.pods(3)
    async with recording(stage, tmp_path / "r.gz") as at_work:
        sandbox = stage.sandbox
        sandbox.faults.refuse_connections(0.5)
        sandbox.faults.drop_watches()
        stage.delete_pod("web-0")
        stage.pod("meanwhile")
        sandbox.faults.compact()
        await stage.until(lambda: at_work.told(Act.DELETED) >= 1 and at_work.told(Act.ADDED) >= 1)
        found = await at_work.end()
    assert sorted(changes(tmp_path / "r.gz")) == [("ADDED", "Pod", "meanwhile"), ("DELETED", "Pod", "web-0")]
    assert len(found.scenario.happenings) == 2


async def test_a_pod_that_was_replaced_by_another_of_its_name_goes_and_comes(stage: Stage, tmp_path: Path) -> None:
    stage.pod("a")
    async with recording(stage, tmp_path / "r.gz") as at_work:
        stage.sandbox.faults.drop_watches()
        stage.delete_pod("a")
        stage.pod("a")
        stage.sandbox.faults.compact()
        await stage.until(lambda: at_work.told(Act.ADDED) >= 1)
        await at_work.end()
    assert changes(tmp_path / "r.gz") == [("DELETED", "Pod", "a"), ("ADDED", "Pod", "a")]


async def test_a_disk_that_is_full_ends_the_recording_and_what_was_flushed_stays(stage: Stage, tmp_path: Path) -> None:
    async with recording(stage, tmp_path / "r.gz") as at_work:
        stage.pod("kept")
        await stage.until(lambda: at_work.told(Act.ADDED) >= 1)
        out = at_work.recorder._out
        assert out is not None
        out.flush()

        class Full:
            def write(self, _: bytes) -> int:
                raise OSError(28, "No space left on device")

        out.fileobj = Full()  # type: ignore[assignment]
        stage.pod("lost")
        with pytest.raises(Exception, match=r"r\.gz: cannot be written: No space left on device"):
            await asyncio.wait_for(asyncio.shield(at_work.task), DEADLINE)
    assert changes(tmp_path / "r.gz") == [("ADDED", "Pod", "kept")]


# --- as a process ---


@asynccontextmanager
async def process(stage: Stage, path: Path, *options: str) -> AsyncIterator[Process]:
    """Run the command, yield it after it has begun to record, and kill it at the end."""
    words = ["-m", "placewright.cli.main", "record", "--write", str(path), "--kubeconfig", str(stage.sandbox.kubeconfig), *options]
    running = await asyncio.create_subprocess_exec(sys.executable, *words, stdout=PIPE, stderr=PIPE)
    try:
        assert running.stderr is not None
        async with asyncio.timeout(DEADLINE * 2):
            said = (await running.stderr.readline()).decode()
        assert said == f"placewright: recording into {path} from 3 Nodes, 4 Namespaces, 1 SchedulingProfile\n"
        yield running
    finally:
        if running.returncode is None:
            running.kill()
            await running.wait()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_ends_the_recording_in_order(stage: Stage, tmp_path: Path, number: signal.Signals) -> None:
    path = tmp_path / "r.gz"
    async with process(stage, path) as running:
        stage.pod("a")
        await stage.until(lambda: changes(path), "the change is in the file within a second or so")
        running.send_signal(number)
        async with asyncio.timeout(DEADLINE):
            out, err = await running.communicate()
    assert (running.returncode, err) == (0, b"")
    assert out.decode().startswith(f"{path}: 1 added, 0 modified, 0 deleted in ")
    assert read_recording(path).notes == []
    assert left_in(tmp_path) == [path]


async def test_a_killed_recorder_leaves_what_it_had_flushed_and_the_file_says_that_it_was_cut(stage: Stage, tmp_path: Path) -> None:
    path = tmp_path / "r.gz"
    async with process(stage, path) as running:
        stage.pods(5)
        await stage.until(lambda: len(changes(path)) == 5)
        running.kill()
        await running.wait()
    found = read_recording(path)
    assert [each.manifest["metadata"]["name"] for each in found.scenario.happenings] == [f"web-{number}" for number in range(5)]
    assert "the file ends in the middle" in found.notes[0]


async def test_a_recording_ends_by_itself_after_the_time_it_was_given(stage: Stage, tmp_path: Path) -> None:
    path = tmp_path / "r.gz"
    async with process(stage, path, "--for", "1500ms") as running, asyncio.timeout(DEADLINE):
        out, _ = await running.communicate()
    assert running.returncode == 0
    assert "0 added, 0 modified, 0 deleted in 1.5 s" in out.decode()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-o", "r.gz", "--for", "soon"], "argument --for: found 'soon'; allowed a duration such as 90s, 30m or 1h30m"),
        (["-o", "r.gz", "--for", "0s"], "argument --for: found '0s'; allowed a duration"),
        ([], "--write FILE is needed: where to write"),
        (["--show", "/nowhere/r.gz"], "/nowhere/r.gz: cannot be read: No such file or directory"),
        (["-o", str(Path(__file__))], "found 'a file of that name'; allowed a new name, or --force to replace it"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_exit_code_2(words: list[str], said: str, capsys: Any) -> None:
    assert main(["record", *words]) == 2
    err = capsys.readouterr().err
    assert said in err and err.count("\n") == 1


async def test_show_says_what_a_recording_holds(stage: Stage, tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "r.gz"
    async with recording(stage, path) as at_work:
        stage.pod("a")
        await stage.until(lambda: at_work.told(Act.ADDED) >= 1)
        bind(stage, "a", "node-1")
        await stage.until(lambda: at_work.told(Act.MODIFIED) >= 1)
        await at_work.end()
    assert main(["record", "--show", str(path)]) == 0
    assert "1 changes to replay, 1 pods came; placed were 1" in capsys.readouterr().out
