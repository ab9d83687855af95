"""The four tiers of the suite: which test belongs to which, which of them `make test` runs, and what a run says when it is over.

| marker | what its tests need |
|---|---|
| `unit` | Python: the core's rooms and the golden cases. No socket, no process |
| `server` | sandbox and operator in this process, or seconds. No other process |
| `process` | other processes: kubectl, Chromium, Prometheus, `placewright` itself |
| `long` | the same for longer: faults with several replicas, the soak, pages of the documentation command by command, benchmarks |

The tables below decide, never a mark beside a test. Tests of the first two tiers fail where they open what their tier must not, so the
tables cannot fall behind the tests. `make unit` runs the first tier. `make test`, and `pytest` without arguments, run the first two whole
and the choice (`choice.py`) of the others. `make test-all` (`pytest --all`) runs everything: also the cases of tests that take real data,
where that lies beside the checkout (`inputs/real.py`), and all random cases (`randomcases.py`). `make nightly` adds windows
(`looks.py`). A file that a command names, or a tier that it asks for, is run whole.
"""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from choice import CHOICE
from inputs.real import takes_real_data
from kubectl.pages import lines_not_run

TESTS: Final = Path(__file__).parent
TIERS: Final = ("unit", "server", "process", "long")
UNIT_ROOMS: Final = frozenset(
    {
        "api",
        "cluster",
        "engine",
        "explain",
        "framework",
        "offline",
        "plugins",
        "profiles",
        "queue",
        "scheduler",
        "shadow",
        "testing",
        "vectors",
    }
)

#: Tests of the core that take seconds each, and of which a part would show nothing, or that run an operator on a sandbox: `make unit`
#: leaves them to `make test`.
SECONDS: Final = frozenset(
    {
        "engine/test_debug_signal.py",
        "engine/test_extenders.py",
        "engine/test_groupstatus.py",
        "engine/test_history.py",
        "engine/test_reconciling.py",
        "engine/test_rediscovery.py",
        "engine/test_reload.py",
        "engine/test_unclaimedpods.py",
        "framework/test_plugins_document.py::test_a_test_of_the_page_passes",
        "scheduler/podgroups/test_random_clusters.py::test_groups_that_each_need_most_of_the_cluster_are_placed_one_after_the_other",
        "scheduler/podgroups/test_random_clusters.py::test_no_group_starves_in_three_thousand_minutes_of_small_pods",
        "scheduler/test_rooms.py::test_an_extender_that_hangs_holds_up_only_the_pods_of_its_profile",
    }
)

#: Rooms, files, or single tests of files that are otherwise of another tier.
PROCESS: Final = frozenset(
    {
        "lab/demo/test_demo.py",
        "lab/demo/test_demo_console.py",
        "lab/commands/test_record_command.py",
        "lab/commands/test_sandbox_command.py",
        "lab/bench/test_scheduler_perf_command.py",
        "console/test_console_browser.py",
        "console/test_console_map_browser.py",
        "console/test_console_command.py::test_it_prints_its_address_and_why_it_asks_no_operator_and_ends_in_order",
        "console/test_console_company_browser.py",
        "console/test_console_pod_browser.py",
        "console/test_console_time_browser.py",
        "console/test_console_handthrough.py::test_the_replica_of_the_lease_is_asked_and_the_next_one_after_a_change_of_leader",
        "console/test_console_frames.py",
        "console/test_console_failures_browser.py",
        "console/test_console_sights.py",
        "console/test_console_still.py",
        "lab/whatif/test_whatif_apply.py::test_the_line_for_kubectl_does_the_same",
        "lab/whatif/test_whatif_browser.py",
        "lab/controlplane/test_assets.py",
        "tools/test_conformance_programs.py",
        "lab/controlplane/test_programs.py",
        "tools/test_provide.py",
        "handlers/test_admission.py::test_kubectl_shows_what_the_webhook_says",
        "handlers/test_commands.py",
        "handlers/test_configfile.py",
        "kube/test_login.py::test_an_exec_plugins_token_is_used_and_asked_for_again_only_when_it_expires_or_was_refused",
        "kube/test_login.py::test_an_expired_token_of_a_plugin_is_made_anew",
        "kube/test_login.py::test_a_plugin_without_credentials_is_refused_by_name",
        "kubectl",
        "packaging/test_argocd.py",
        "packaging/test_chart.py",
        "packaging/test_distributions.py",
        "packaging/test_examples.py",
        "packaging/test_image.py",
        "packaging/test_manifests.py",
        "packaging/test_monitoring.py",
        "packaging/test_overlays.py",
        "packaging/test_tiers.py",
        "packaging/test_trends.py",
        "packaging/test_tuning_example.py",
        "lab/sandbox/test_process.py",
        "console/test_console_in_chromium.py",
        "observability/test_logs_process.py",
        "observability/test_logs_writer.py",
        "observability/test_prometheus.py",
        "observability/test_tracing.py",
        "observability/test_watchdog.py",
        "lab/figures/test_group_figures.py",
        "lab/report/test_report.py",
        "lab/tune/test_shared_study.py",
        "lab/snapshots/test_snapshot_files.py",
        "lab/commands/test_sweep.py",
        "lab/tune/test_tuning.py",
        "vectors/test_golden_cases.py::test_a_clone_without_the_cases_does_not_pass",
    }
)
LONG: Final = frozenset(
    {
        "lab/bench/test_bench.py",
        "lab/bench/test_bench_against.py",
        "benchmarks/test_before_after.py",
        "benchmarks/test_benchmarks.py",
        "benchmarks/test_reload_benchmark.py",
        "faults/test_api_server.py",
        "faults/test_clocks.py",
        "faults/test_devices.py",
        "faults/test_groups.py",
        "faults/test_leader.py",
        "faults/test_meanwhile.py",
        "faults/test_rolling_update.py",
        "faults/test_soak.py",
        "faults/test_two_schedulers.py",
        "handlers/test_hanging_plugins.py",
        "engine/test_takeover.py",
        "hostile/test_attacks.py",
        "kubectl/test_device_jobs.py",
        "kubectl/test_operating_pages.py",
        "kubectl/test_pages.py",
        "kubectl/test_tutorial.py",
        "kubectl/test_uninstalling.py",
        "packaging/test_new_fields.py",
        "packaging/test_prose.py::test_the_rooms_and_documents_that_hold_break_no_rule",
        "handlers/test_shared_manifests.py::test_a_scheduler_without_one_of_its_plugins_is_found_out",
        "lab/simulation/test_forgotten_histories.py::test_the_histories_are_worth_watching",
        "lab/simulation/test_forgotten_histories.py::test_whatever_happens_no_group_is_forgotten",
        "lab/simulation/test_simulation_stories.py",
        "scheduler/test_hostile_memory.py",
        "scheduler/test_nothing_stays.py",
        "packaging/test_contributing.py::test_a_walk_as_it_is_written_ends_with_tests_that_failed_before_and_pass",
    }
)

#: Audit events (docs.python.org, "Audit events table") that a test of the tier must not cause.
FORBIDDEN: Final[Mapping[str, frozenset[str]]] = {
    "unit": frozenset({"socket.bind", "socket.connect", "subprocess.Popen", "os.fork", "os.posix_spawn"}),
    "server": frozenset({"subprocess.Popen", "os.fork", "os.posix_spawn"}),
}


def tier_of(node_id: str) -> str:
    """The tier of a test: `tests/faults/test_soak.py::test_soak_with_churn[1]` is long."""
    names = set(_names(node_id))
    if takes_real_data(node_id) or not names.isdisjoint(LONG):
        return "long"
    if not names.isdisjoint(PROCESS):
        return "process"
    if not names.isdisjoint(SECONDS):
        return "server"
    return "unit" if not names.isdisjoint(UNIT_ROOMS) else "server"


def chosen(node_id: str) -> bool:
    """Whether `make test` runs this test, should it be of a tier of which it runs only some."""
    names = set(_names(node_id))
    return not takes_real_data(node_id) and any(not names.isdisjoint(entries) for entries in CHOICE.values())


def _names(node_id: str) -> Iterator[str]:
    """What an entry of the tables may call a test: its room, its file, its function, itself."""
    path, _, test = node_id.removeprefix("tests/").partition("::")
    yield path.partition("/")[0]
    yield path
    yield f"{path}::{test.partition('[')[0]}"
    yield f"{path}::{test}"


class Tiers:
    """The part of pytest that knows tiers. In a run with several processes, each worker selects and the first process reports."""

    def __init__(self, *, every_test: bool) -> None:
        self._every_test = every_test
        #: How many tests of each tier were left out, of those that were asked for.
        self._left: Counter[str] = Counter()
        self._forbidden: frozenset[str] = frozenset()
        self._caused: list[str] = []
        self._thread = threading.get_ident()
        sys.addaudithook(self._heard)  # stays until the process ends: Python can add hooks, not remove them

    def pytest_configure(self, config: pytest.Config) -> None:
        """Beside the tiers' own markers, which a mark beside a test never sets, the one that is set by what the test takes."""
        config.addinivalue_line("markers", "real_data: takes the data beside the checkout; only `make test-all` runs it")

    def _heard(self, event: str, _: tuple[Any, ...]) -> None:
        if event in self._forbidden and threading.get_ident() == self._thread:
            self._caused.append(event)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Mark each test with its tier; of the slow tiers keep what is chosen."""
        every = self._every_test or bool(config.option.markexpr)
        named = {(config.invocation_params.dir / each.partition("::")[0]).resolve() for each in config.args}
        left = []
        for item in items:
            tier = tier_of(item.nodeid)
            item.add_marker(tier)
            if not every and tier in {"process", "long"} and not chosen(item.nodeid) and item.path not in named:
                left.append(item)
                self._left[tier] += 1
        if left:
            out = set(left)
            items[:] = [item for item in items if item not in out]
            config.hook.pytest_deselected(items=left)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Listen to what the test and its fixtures cause. A real API server is other processes, whose tests are asked for one by one."""
        self._caused.clear()
        if not item.config.getoption("--real", default=False):
            self._forbidden = FORBIDDEN.get(tier_of(item.nodeid), frozenset())
        try:
            return (yield)
        finally:
            self._forbidden = frozenset()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Iterator[None]:
        """Fail the test that caused what its tier must not."""
        yield
        if self._caused:
            pytest.fail(f"a test of tier {tier_of(item.nodeid)!r} caused {', '.join(sorted(set(self._caused)))} (tests/tiers.py)")

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """A worker hands its count over."""
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output["left"] = dict(self._left)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        """Every worker has the same count; the last one's stands."""
        self._left = Counter(getattr(node, "workeroutput", {}).get("left", self._left))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """What was run, what was left, and why tests were skipped: a line each."""
        ran, seconds, skipped = _counted(terminalreporter)
        if not ran and not self._left:
            return
        parts = []
        for tier in TIERS:
            total = ran[tier] + self._left[tier]
            if total:
                of = f" of {total:,}" if self._left[tier] else ""
                parts.append(f"{tier} {ran[tier]:,}{of} ({seconds[tier]:.0f} s of work)")
        terminalreporter.write_line("tiers: " + ", ".join(parts))
        if self._left:
            left = " and ".join(f"{self._left[tier]:,} {tier}" for tier in TIERS if self._left[tier])
            terminalreporter.write_line(f"left for `make test-all`: {left}")
        for reason, count in skipped.most_common():
            terminalreporter.write_line(f"skipped: {count:,}: {reason}")
        if any("packaging/test_page_commands.py" in report.nodeid for report in terminalreporter.stats.get("passed", ())):
            for line in lines_not_run():
                terminalreporter.write_line(line)


def _counted(reporter: pytest.TerminalReporter) -> tuple[Counter[str], Counter[str], Counter[str]]:
    """By tier: tests that ran, and the seconds they took; by reason: tests that were skipped."""
    ran: Counter[str] = Counter()
    seconds: Counter[str] = Counter()
    skipped: Counter[str] = Counter()
    for outcome, reports in reporter.stats.items():
        for report in reports:
            if not isinstance(report, pytest.TestReport):
                continue
            tier = tier_of(report.nodeid)
            seconds[tier] += report.duration
            if outcome == "skipped":
                skipped[_reason(report.longrepr)] += 1
            elif outcome in {"passed", "failed", "xfailed", "xpassed"}:
                ran[tier] += 1
    return ran, seconds, skipped


def _reason(place: Any) -> str:
    """Without the file and line, so that equal reasons are one line."""
    return str(place[2] if isinstance(place, tuple) else place).removeprefix("Skipped: ")
