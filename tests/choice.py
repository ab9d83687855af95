"""What shows each feature that README.md names, in `make test`. Of the tiers `process` and `long` no more is run there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

#: By the command or the page that README.md names: rooms, files or single tests below `tests`.
CHOICE: Final[Mapping[str, tuple[str, ...]]] = {
    # The table "Commands".
    "demo": ("lab/demo/test_demo.py", "lab/demo/test_demo_console.py"),
    "run": ("handlers/test_commands.py", "handlers/test_configfile.py", "kube/test_login.py", "observability/test_logs_process.py"),
    "sandbox": (
        "lab/commands/test_sandbox_command.py",
        "lab/sandbox/test_process.py",
        "kubectl/test_reading.py",
        "kubectl/test_changing.py",
        "kubectl/test_nodes.py",
        "kubectl/test_shared_manifests.py",
    ),
    "evaluate": ("lab/commands/test_evaluate.py", "vectors"),
    "explain": ("cli/test_explain.py",),
    "bench": (
        "lab/bench/test_bench.py",
        "lab/bench/test_bench_against.py",
        "lab/bench/test_bench_before.py",
        "lab/bench/test_bench_reload.py",
        "lab/bench/test_perf_run.py",
    ),
    "schema": ("cli/test_schema_command.py",),
    "snapshot": ("lab/commands/test_snapshot_command.py", "lab/snapshots/test_snapshot_files.py", "kubectl/test_snapshot.py"),
    "record": ("lab/commands/test_record_command.py",),
    "console": ("console",),
    "simulate": ("lab/commands/test_simulate.py", "lab/figures/test_group_figures.py"),
    "compare": ("lab/commands/test_compare.py", "lab/report/test_report.py", "lab/commands/test_sweep.py"),
    "diff": ("lab/commands/test_diff.py",),
    "tune": ("lab/commands/test_tune.py", "lab/tune/test_tuning.py", "lab/tune/test_shared_study.py"),
    "validate": ("cli/test_validate.py", "kubectl/test_validation.py"),
    "convert": ("cli/test_convert.py", "kubectl/test_conversion.py"),
    "profiles": ("cli/test_profiles_command.py", "kubectl/test_plugin.py"),
    "doctor": ("cli/test_doctor.py",),
    "version": ("cli/test_main.py",),
    # The table "Documentation".
    "docs/tutorial.md": ("kubectl/test_tutorial.py",),
    "docs/gitops.md": ("packaging",),
    "docs/profiles-command.md": ("cli/test_profiles_changes.py",),
    "docs/beside-default-scheduler.md": ("faults/test_two_schedulers.py",),
    "docs/upgrade.md": ("kubectl/test_operating_pages.py",),
    "docs/uninstall.md": ("kubectl/test_uninstalling.py::test_deleting_what_was_applied_leaves_profiles_and_definitions[base]",),
    "docs/endpoints.md": ("serving/test_pages.py", "serving/test_health.py", "observability/test_watchdog.py"),
    "docs/console.md": ("console",),
    "docs/troubleshooting.md": ("cli/test_doctor.py",),
    "docs/leadership.md": (
        "faults/test_api_server.py::test_api_server_killed_again_and_again[1-3]",
        "faults/test_leader.py::test_leader_killed_in_mid_burst",
        "handlers/test_takeover.py::test_the_next_replica_binds_in_time",
        "handlers/test_takeover.py::test_a_binding_without_an_answer_is_asked_for_before_the_next_term_begins",
    ),
    "docs/metrics.md": (
        "observability/test_metrics.py",
        "observability/test_prometheus.py::test_every_query_of_the_dashboard_and_the_alerts_is_answered",
    ),
    "docs/logs.md": ("observability/test_logs_document.py", "observability/test_logs_writer.py"),
    "docs/tracing.md": ("observability/test_tracing.py",),
    "docs/runbook.md": ("packaging/test_monitoring.py",),
    "docs/security.md": (
        "packaging/test_rights.py",
        "serving/test_access.py",
        "hostile/test_attacks.py::test_healthy_pods_are_placed_beside_it[spread constraints times affinity terms-1]",
    ),
    "docs/overload.md": (
        "handlers/test_overload.py",
        "faults/test_api_server.py::test_10_percent_of_bindings_answered_409_429_500_or_never",
    ),
    "docs/reconciler.md": ("handlers/test_reconciling.py",),
    "docs/gangs.md": ("faults/test_groups.py::test_groups_with_the_leader_killed_in_mid_group", "scheduler/podgroups"),
    "docs/conversion.md": ("profiles/test_conversion.py",),
    "docs/policy.md": ("policy", "packaging/test_policy_samples.py"),
    "docs/reference.md": ("profiles/test_schema.py",),
    "docs/scheduler-perf.md": ("lab/bench/test_scheduler_perf_command.py",),
    "docs/reload.md": ("handlers/test_reload.py",),
    "docs/admission.md": ("handlers/test_admission.py",),
    "docs/compare.md": ("lab/bench/test_comparison.py",),
    "docs/devices.md": (
        "handlers/test_devices.py",
        "kubectl/test_devices.py",
        "faults/test_devices.py::test_devices_with_the_leader_killed_between_allocation_and_binding",
        "kubectl/test_device_jobs.py::test_a_device_is_cut_up_and_its_parts_are_no_more_than_the_whole",
    ),
    "docs/fragmentation.md": ("handlers/test_device_shares.py",),
    "docs/extenders.md": ("handlers/test_extenders.py",),
    "docs/plugins.md": (
        "framework/test_plugins_document.py",
        "handlers/test_hanging_plugins.py::test_the_next_process_places_all_pods_but_those_of_the_profile_whose_plugin_hung[filter_node]",
    ),
    "docs/inputs.md": ("lab/readers/test_manifests.py",),
    "docs/sandbox.md": ("lab/sandbox/test_server.py",),
    "docs/contributing.md": (
        "packaging/test_contributing.py::test_a_walk_as_it_is_written_ends_with_tests_that_failed_before_and_pass[A field of the profile]",
    ),
    "docs/architecture.md": ("handlers/test_placing.py", "scheduler/test_ways.py"),
    "docs/glossary.md": ("packaging/test_names.py",),
    "docs/decisions": ("packaging/test_documents.py",),
    "docs/e2e.md": ("contract", "lab/controlplane/test_assets.py", "lab/controlplane/test_provide.py"),
    "docs/conformance.md": ("lab/controlplane/test_conformance_programs.py",),
    "docs/faults.md": ("faults/test_audit.py",),
    "docs/testing.md": ("testing",),
    "docs/tests.md": ("packaging/test_tiers.py",),
}
