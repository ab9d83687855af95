"""Makes `dashboard.json`, the Grafana dashboard, of the panels in `dashboard.yaml`.

`python manifests/components/monitoring/dashboard.py` writes it, `--check` says whether it is out of date (exit code 1). Its variables are
the data source and the job; it has no identity of its own, so that it can be imported wherever somebody wants it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

FILE: Final = Path(__file__).with_name("dashboard.json")
PANELS: Final = Path(__file__).with_name("dashboard.yaml")
_WIDTH: Final = 24
_DATASOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
#: Of a stat and of a timeseries, in Grafana's grid.
_SIZES: Final = {"stat": (4, 4), "timeseries": (8, 8)}

Json = dict[str, Any]


def dashboard() -> Json:
    """Build the dashboard as Grafana imports it."""
    return {
        "title": "Placewright",
        "description": "The scheduler: what waits, what is decided under which profile, and what it costs.",
        "tags": ["kubernetes", "placewright", "scheduler"],
        "schemaVersion": 39,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": [_datasource(), _job()]},
        "panels": list(_panels(yaml.safe_load(PANELS.read_text(encoding="utf-8")))),
    }


def _datasource() -> Json:
    return {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"}


def _job() -> Json:
    query = "label_values(placewright_build_info, job)"
    return {
        "name": "job", "label": "Job", "type": "query", "datasource": _DATASOURCE, "refresh": 2,
        "query": {"query": query, "refId": "job"}, "definition": query,
    }  # fmt: skip


def _panels(rows: list[Json]) -> Iterator[Json]:
    identity, top = 1, 0
    for row in rows:
        yield {"id": identity, "type": "row", "title": row["row"], "collapsed": False, "panels": [], "gridPos": _place(0, top, _WIDTH, 1)}
        identity, top, left, height = identity + 1, top + 1, 0, 0
        for panel in row["panels"]:
            width, tall = _SIZES[_kind(panel)]
            if left + width > _WIDTH:
                left, top = 0, top + height
            yield {"id": identity, **_panel(panel), "gridPos": _place(left, top, width, tall)}
            identity, left, height = identity + 1, left + width, tall
        top += height


def _place(x: int, y: int, width: int, height: int) -> Json:
    return {"x": x, "y": y, "w": width, "h": height}


def _kind(panel: Json) -> str:
    return str(panel.get("kind", "timeseries"))


def _panel(panel: Json) -> Json:
    defaults: Json = {"unit": panel.get("unit", "short")}
    if _kind(panel) == "timeseries":
        defaults["min"] = 0
    if "red" in panel:
        steps = [{"color": "green", "value": None}, {"color": "red", "value": panel["red"]}]
        defaults |= {"color": {"mode": "thresholds"}, "thresholds": {"mode": "absolute", "steps": steps}}
    return {
        "type": _kind(panel),
        "title": panel["title"],
        "description": panel["about"],
        "datasource": _DATASOURCE,
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "targets": [
            {"refId": chr(ord("A") + place), "datasource": _DATASOURCE, "expr": expression, "legendFormat": legend or "__auto"}
            for place, (legend, expression) in enumerate(_queries(panel))
        ],
    }


def _queries(panel: Json) -> Iterator[tuple[str, str]]:
    """(legend, PromQL)."""
    yield from panel.get("queries", {}).items()
    if "quantiles" in panel:
        for quantile in (0.5, 0.9, 0.99):
            yield f"p{quantile * 100:g}", _quantile(quantile, panel["quantiles"], "le")
    if "p99" in panel:
        yield f"{{{{{panel['by']}}}}}", _quantile(0.99, panel["p99"], f"le, {panel['by']}")


def _quantile(quantile: float, histogram: str, by: str) -> str:
    return f'histogram_quantile({quantile}, sum by ({by}) (rate({histogram}_bucket{{job="$job"}}[$__rate_interval])))'


def main(arguments: list[str]) -> int:
    """Write the file, or with `--check` compare it."""
    text = json.dumps(dashboard(), indent=1, ensure_ascii=False) + "\n"
    if arguments != ["--check"]:
        FILE.write_text(text, encoding="utf-8")
        return 0
    if FILE.read_text(encoding="utf-8") == text:
        return 0
    sys.stderr.write(f"{FILE.name} is out of date: run 'make generate'\n")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
