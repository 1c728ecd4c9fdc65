"""Charts as inline SVG, drawn by Vega-Lite when the report is written: no script in a page, equal inputs give equal bytes.

Colours are the page's own custom properties, so a chart follows light, dark and print. What a colour says, a position, a shape or
a text says too. Every mark leads to the trials behind it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import vl_convert
from markupsafe import Markup

from realcli_judge.figures import Number
from realcli_judge.panels import DIMENSIONS
from realcli_judge.reading import leading
from realcli_judge.summary import ConfigurationSummary, Summary

NAMED = 12
"""Points are labelled up to so many configurations; more would cover each other, and the table names them."""
LABEL = 240
"""Pixels a name may take beside its axis."""
_INK, _SOFT, _LINE, _ONE, _TWO = "var(--ink)", "var(--soft)", "var(--line)", "var(--one)", "var(--two)"
_CONFIG: dict[str, Any] = {
    "font": "system-ui, DejaVu Sans, sans-serif",
    "view": {"stroke": None},
    "axis": {
        "labelColor": _INK, "titleColor": _SOFT, "gridColor": _LINE, "domainColor": _LINE, "tickColor": _LINE,
        "labelFontSize": 11, "titleFontSize": 11, "titleFontWeight": "normal", "labelLimit": LABEL,
    },
    "header": {"labelColor": _INK, "titleColor": _SOFT},
    "legend": {"labelColor": _INK, "titleColor": _SOFT},
}  # fmt: skip
_BASE = "https://report.invalid/"  # Vega makes links absolute; in the page they are relative again
_UNIT = {"domain": [0, 1], "nice": False}


def charts(summary: Summary) -> dict[str, Markup]:
    """Name -> chart; one that has nothing to show is left out."""
    made = {
        "outcome": _outcome_against_collaboration(summary.configurations),
        "profile": _profile(summary.configurations),
        "flips": _flips(summary.configurations),
        "costs": _costs(summary.configurations),
    }
    return {name: draw(spec, name) for name, spec in made.items() if spec is not None}


def draw(spec: dict[str, Any], name: str) -> Markup:
    """A Vega-Lite spec as SVG for a page. Ids in it are made the chart's own: a page holds several."""
    whole = {"$schema": "https://vega.github.io/schema/vega-lite/v5.json", "background": None, "config": _CONFIG, **spec}
    svg = vl_convert.vegalite_to_svg(json.dumps(whole))
    svg = re.sub(r'(id="|url\(#|href="#)(clip|gradient)', rf"\1{name}-\2", svg)
    svg = re.sub(r"<svg ([^>]*?)width=\"\d+\" height=\"\d+\"", r"<svg \1", svg, count=1)  # it scales with the page
    svg = svg.replace('xlink:href="' + _BASE, 'href="')
    width = re.search(r'viewBox="0 0 (\d+)', svg)
    style = f' style="max-width:{width[1]}px"' if width else ""
    return Markup(svg.replace("<svg ", f'<svg role="img"{style} ', 1))


def _page(configuration: ConfigurationSummary) -> str:
    return f"{_BASE}configurations/{configuration.name}.html"


def _names(configurations: Sequence[ConfigurationSummary]) -> dict[str, Any]:
    """The axis of names. Room for the longest is kept by its length: a reader's fonts are wider than those it is drawn with."""
    room = min(LABEL, 8 * max(len(one.name) for one in configurations))
    return {
        "field": "name", "type": "nominal", "title": None, "sort": [one.name for one in configurations],
        "axis": {"minExtent": room, "labelLimit": room},
    }  # fmt: skip


def _ends(value: Number) -> tuple[float, float]:
    return (value.interval.low, value.interval.high) if value.interval is not None else (value.value, value.value)


def _outcome_against_collaboration(configurations: Sequence[ConfigurationSummary]) -> dict[str, Any] | None:
    rows = []
    lead = leading(configurations)
    for one in configurations:
        r, s = one.collab.r if one.collab is not None else None, one.s if lead == "S" else one.s_rate
        if r is None or s is None:
            continue
        rlow, rhigh = _ends(r)
        slow, shigh = _ends(s)
        said = f"{one.name}: R COLLAB {r.text}, {lead} {s.text}"
        rows.append({"name": one.name, "r": r.value, "s": s.value, "rlow": rlow, "rhigh": rhigh, "slow": slow, "shigh": shigh,
                     "agent": one.program, "href": _page(one), "said": said})  # fmt: skip
    if not rows:
        return None
    x = {"field": "r", "type": "quantitative", "scale": _UNIT, "title": "R COLLAB: share of runs solved with a user"}
    y = {"field": "s", "type": "quantitative", "scale": _UNIT, "title": f"{lead}: collaboration"}
    rule = {"mark": {"type": "rule", "aria": False, "color": _SOFT, "opacity": 0.6}}
    layers: list[dict[str, Any]] = [
        {**rule, "encoding": {"x": {**x, "field": "rlow"}, "x2": {"field": "rhigh"}, "y": y}},
        {**rule, "encoding": {"x": x, "y": {**y, "field": "slow"}, "y2": {"field": "shigh"}}},
        {
            "mark": {"type": "point", "filled": True, "size": 90, "color": _ONE, "opacity": 1},
            "encoding": {
                "x": x, "y": y, "href": {"field": "href"}, "description": {"field": "said"}, "tooltip": {"field": "said"},
                "shape": {"field": "agent", "type": "nominal", "legend": {"title": None, "orient": "top"}},
            },
        },
    ]  # fmt: skip
    if len(rows) <= NAMED:
        layers.append(
            {
                "mark": {"type": "text", "aria": False, "align": "left", "dx": 8, "dy": -8, "color": _INK, "fontSize": 11},
                "encoding": {"x": x, "y": y, "text": {"field": "name"}, "href": {"field": "href"}},
            }
        )
    return {"width": 460, "height": 340, "data": {"values": rows}, "layer": layers}


def _profile(configurations: Sequence[ConfigurationSummary]) -> dict[str, Any] | None:
    rows = [
        {"name": one.name, "dimension": DIMENSIONS[name], "value": value.value, "href": _page(one) + "#dimensions",
         "said": f"{one.name}, {DIMENSIONS[name]}: {value.text}"}
        for one in configurations for name, value in one.dimensions.items()
    ]  # fmt: skip
    if not rows:
        return None
    few = len(configurations) <= NAMED
    x = {"field": "value", "type": "quantitative", "scale": _UNIT, "title": None, "axis": {"values": [0, 0.5, 1]}}
    mark = {"type": "point", "filled": True, "size": 60, "color": _ONE, "opacity": 0.9} if few else {
        "type": "tick", "color": _ONE, "thickness": 2, "opacity": 0.8}  # fmt: skip
    encoding: dict[str, Any] = {"x": x, "href": {"field": "href"}, "description": {"field": "said"}, "tooltip": {"field": "said"}}
    if not few:
        y = {"field": "dimension", "type": "nominal", "sort": list(DIMENSIONS.values()), "title": None}
        return {"width": 460, "height": 200, "data": {"values": rows}, "mark": mark, "encoding": {**encoding, "y": y}}
    y = _names(configurations)
    return {
        "data": {"values": rows},
        "facet": {"row": {"field": "dimension", "type": "nominal", "sort": list(DIMENSIONS.values()), "title": None,
                          "header": {"labelAngle": 0, "labelAlign": "left", "labelOrient": "top", "labelAnchor": "start"}}},
        "spacing": 8,
        "spec": {"width": 330, "height": {"step": 16}, "mark": mark, "encoding": {**encoding, "y": y}},
    }  # fmt: skip


def _flips(configurations: Sequence[ConfigurationSummary]) -> dict[str, Any] | None:
    rows = []
    for one in configurations:
        pairs = one.paired
        for way, value in (("failure to success", pairs.fail_to_pass), ("success to failure", -pairs.pass_to_fail)):
            if pairs.pairs:
                said = f"{one.name}: {abs(value)} of {pairs.pairs} pairs turn from {way}"
                rows.append({"name": one.name, "way": way, "n": value, "href": _page(one) + "#flips", "said": said})
    if not rows:
        return None
    return {
        "width": 420,
        "height": {"step": 18},
        "data": {"values": rows},
        "mark": {"type": "bar"},
        "encoding": {
            "y": _names(configurations),
            "x": {"field": "n", "type": "quantitative", "title": "pairs: ← success to failure · failure to success →",
                  "axis": {"tickMinStep": 1, "labelExpr": "abs(datum.value)"}},
            "color": {"field": "way", "type": "nominal", "legend": None,
                      "scale": {"domain": ["failure to success", "success to failure"], "range": [_ONE, _TWO]}},
            "href": {"field": "href"},
            "description": {"field": "said"},
            "tooltip": {"field": "said"},
        },
    }  # fmt: skip


def _costs(configurations: Sequence[ConfigurationSummary]) -> dict[str, Any] | None:
    rows = []
    for one in configurations:
        r = one.collab.r if one.collab is not None else None
        spent = one.spent.get("COLLAB")
        if r is None or spent is None or spent.usd_per_run is None:
            continue
        price = spent.usd_per_run
        rows.append({"name": one.name, "usd": float(price.usd), "r": r.value, "href": _page(one) + "#costs",
                     "said": f"{one.name}: R COLLAB {r.text}, {price.text} a run"})  # fmt: skip
    if not rows:
        return None
    x = {"field": "usd", "type": "quantitative", "title": "US dollars a COLLAB run"}
    y = {"field": "r", "type": "quantitative", "scale": _UNIT, "title": "R COLLAB"}
    told = {"href": {"field": "href"}, "description": {"field": "said"}, "tooltip": {"field": "said"}}
    layers: list[dict[str, Any]] = [
        {"mark": {"type": "point", "filled": True, "size": 80, "color": _ONE, "opacity": 1}, "encoding": {"x": x, "y": y, **told}}
    ]
    if len(rows) <= NAMED:
        layers.append(
            {
                "mark": {"type": "text", "aria": False, "align": "left", "dx": 8, "dy": -8, "color": _INK, "fontSize": 11},
                "encoding": {"x": x, "y": y, "text": {"field": "name"}},
            }
        )
    return {"width": 420, "height": 240, "data": {"values": rows}, "layer": layers}
