"""Write the campaign's page, figures and calibrations from the ledger: ``python benchmarks/h200/report.py``.

``docs/h200.md``, ``docs/img/h200_*.svg`` and ``planner/data/calibrations/h200.*.json``. Nothing needs a GPU.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(ROOT)]

import analysis  # noqa: E402
import plots  # noqa: E402
from analysis import Cell, Score  # noqa: E402

from planner.estimate.acceptance import fit_acceptance  # noqa: E402
from planner.estimate.step_cost import StepCostFit, write_calibration  # noqa: E402
from planner.estimate.step_cost.parameters import PARAMETER_NAMES, PARAMETERS  # noqa: E402

__all__ = ["main"]

BLIND = HERE / "raw" / "blind.json"
"""Scores of the first run by the model as it stood when it was run, before anyone had seen a measurement."""
BLIND_SECOND = HERE / "raw" / "blind_second.json"
"""Scores of the second run by the model as it stood before anyone had seen it: cells of the first run known."""
GOALS = {"zero": (0.25, None), "one": (0.12, None), "four": (0.08, None), "quarter": (0.06, 0.12)}
NAMES = {
    "zero": "nothing (tables and data sheet)",
    "one": "one autoregressive cell",
    "four": "four cells",
    "quarter": "a quarter of the cells",
    "other draft": "a quarter of the cells, another draft model asked",
}
TITLES = {"qwen3-8b": "dense 8B", "mla-moe-rank": "MLA + MoE rank"}


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join([*lines, *("| " + " | ".join(map(str, row)) + " |" for row in rows)])


def percent(value: float) -> str:
    return f"{100 * value:.1f} %"


def _verdict(name: str, score: Score) -> str:
    mape, p90 = GOALS[name]
    text = f"MAPE <= {100 * mape:.0f} %" + (f", P90 <= {100 * p90:.0f} %" if p90 else "")
    met = score.mape <= mape and (p90 is None or score.p90 <= p90)
    return f"{text}: {'met' if met else 'missed'}"


_SCORE_HEAD = ("n", "step MAPE", "P90", "tok/s MAPE", "bias", "coverage of 90 %")


def _figures(s: Score) -> tuple[object, ...]:
    """A score under :data:`_SCORE_HEAD`."""
    return s.n, percent(s.mape), percent(s.p90), percent(s.tok_mape), f"{100 * s.bias:+.1f} %", percent(s.coverage)


def ladder_table(scores: dict[str, dict[str, Score]], blind: dict[str, dict[str, Score]]) -> str:
    """How good predictions are by what is known."""
    rows = []
    for model_id, ladder in scores.items():
        for name, s in ladder.items():
            before = percent(blind[model_id][name].mape)
            rows.append((TITLES[model_id], NAMES[name], *_figures(s), before, _verdict(name, s)))
    return table(("model", "known", *_SCORE_HEAD, "MAPE at campaign time", "goal"), rows)


def blind_table(scores: dict[str, dict[str, Score]]) -> str:
    """Scores of cells that were measured after the model was fixed."""
    rows = [
        (TITLES[model_id], NAMES[name], *_figures(s), _verdict(name, s) if name in GOALS else "-")
        for model_id, ladder in scores.items()
        for name, s in ladder.items()
    ]
    return table(("model", "known", *_SCORE_HEAD, "goal"), rows)


def read_scores(path: Path) -> dict[str, dict[str, Score]]:
    """Scores that were written when a model was fixed."""
    body = json.loads(path.read_text())
    return {model_id: {name: Score(**s) for name, s in ladder.items()} for model_id, ladder in body.items()}


def group_tables(fit: StepCostFit, cells: Sequence[Cell]) -> str:
    """Errors by q_len, concurrency, context and mode."""
    rows = []
    keys = (
        ("q_len", lambda c: c.q_len),
        ("concurrency", lambda c: c.concurrency),
        ("prompt tokens", lambda c: c.prompt_tok),
        ("mode", lambda c: c.mode),
    )
    for label, key in keys:
        for value, s in analysis.grouped(fit, cells, key):
            rows.append(
                (
                    f"{label} {value}",
                    s.n,
                    percent(s.mape),
                    percent(s.p90),
                    f"{100 * s.bias:+.1f} %",
                    percent(s.coverage),
                )
            )
    return table(("cells", "n", "MAPE", "P90", "bias", "coverage"), rows)


def option(value: tuple[str, int]) -> str:
    return value[0] if value[0] == "off" else f"{value[0]}, q_len {value[1]}"


def noise_text() -> str:
    """Repeats and scatter within a run."""
    cells = [c for m in analysis.MODELS for c in analysis.load_cells(m, disturbed=True)]
    repeated = [c.spread_frac for c in cells if c.n_repeats > 1]
    graph = [c.line_cv for c in cells if c.graph]
    pairs = [pair for m in analysis.MODELS for pair in analysis.second_starts(m)]
    starts = [abs(second.step_s / first.step_s - 1) for first, second in pairs]
    disturbed = [c.line_cv for c in cells if c.disturbed]
    return (
        f"{len(repeated)} cells were measured three times on one server: half the range over the median is "
        f"{100 * median(repeated):.2f} % in the middle and {100 * max(repeated):.1f} % at most. Decode lines (5 steps "
        f"each) of one run scatter by {100 * median(graph):.1f} % (median of the cells with graphs, at most "
        f"{100 * max(graph):.0f} %). {len(disturbed)} eager cells without speculation were measured while the next "
        "server imported on the same host: their lines scatter by "
        f"{100 * min(disturbed):.0f} to {100 * max(disturbed):.0f} %, and the one run that outlasted "
        f"the imports went from 41 to 25 ms a step when they ended. They are in the ledger "
        "(`neighbour_imports`) and left out below: an eager step waits for the host. "
        f"{len(starts)} cells were measured on two starts of one configuration, hours apart and on two hosts: they "
        f"differ by {100 * median(starts):.1f} % in the middle and {100 * max(starts):.1f} % at most."
    )


def build_page(page: dict[str, str]) -> str:
    """The page from its parts."""
    text = (HERE / "page.md").read_text(encoding="utf-8")
    for name, value in page.items():
        text = text.replace("{{" + name + "}}", value)
    if "{{" in text:
        raise ValueError(f"unfilled: {text[text.index('{{') :][:40]}")
    return text


def main(argv: Sequence[str] = ()) -> int:
    """Writes everything; ``--blind`` only records the scores of the model as it stands."""
    scores = {model_id: analysis.ladder(model_id) for model_id in analysis.MODELS}
    if "--blind" in argv:
        body = {m: {name: asdict(s) for name, s in ladder.items()} for m, ladder in scores.items()}
        BLIND.write_text(json.dumps(body, indent=1) + "\n")
        return 0
    page, images = {}, ROOT / "docs" / "img"
    page["ladder"] = ladder_table(scores, read_scores(BLIND))
    page["noise"] = noise_text()
    page["blind"] = blind_table(read_scores(BLIND_SECOND))
    other = analysis.other_draft_score()
    page["other"] = f"a MAPE of {percent(other.mape)}, bias {100 * other.bias:+.1f} %, {other.n} cells"
    groups, fits = {}, {}
    for model_id in analysis.MODELS:
        cells = analysis.load_cells(model_id)
        known = analysis.quarter(cells)
        fits[model_id] = (fit := analysis.fit_cells(model_id, cells, known), cells, known)
        groups[TITLES[model_id]] = (cells, analysis.predict(fit, cells), known)
        source = f"H200 campaign of 2026-11-30: {len(known)} of {len(cells)} cells, chosen by design (docs/h200.md)"
        path = ROOT / "planner" / "data" / "calibrations" / f"h200.{model_id}.json"
        path.write_text(write_calibration(fit.calibration(source)), encoding="utf-8")
    fit, cells, known = fits["qwen3-8b"]
    rest = [c for i, c in enumerate(cells) if i not in known]
    page["groups"] = group_tables(fit, rest)
    curve = analysis.accept_curve()
    chosen = analysis.choices(fit, cells, curve)
    page["choices"] = table(
        ("prompt tokens", "C", "options", "chosen", "best measured", "regret"),
        [
            (c.prompt_tok, c.concurrency, c.options, option(c.chosen), option(c.best), percent(c.regret_frac))
            for c in chosen
        ],
    )
    over = [c for c in chosen if c.regret_frac > 0.03]
    page["regret"] = (
        f"Regret is at most 3 % in {len(chosen) - len(over)} of {len(chosen)} places (goal: all), "
        f"{percent(sum(c.regret_frac for c in chosen) / len(chosen))} on average and "
        f"{percent(max(c.regret_frac for c in chosen))} at worst."
    )
    crossings = analysis.crossovers(fit, cells)
    page["crossover"] = table(
        ("prompt tokens", "C measured", "off wins from (measured)", "off wins from (predicted)", "steps of C apart"),
        [
            (p, ", ".join(map(str, sizes)), a or "never", b or "never", _apart(sizes, a, b))
            for p, sizes, a, b in crossings
        ],
    )
    page["curve"] = ", ".join(f"{option(key)}: {value:.2f}" for key, value in sorted(curve.items()) if key[0] != "off")
    page["gain"] = _gain(cells)
    page["slopes"] = _slopes(fits["qwen3-8b"][1], fits["mla-moe-rank"][1])
    page["term"] = _term(fits)
    page["host"] = _host(fits)
    page["mla32"] = _mla_at_32(fits["mla-moe-rank"][1])
    spans = [100 * (p / m - 1) for _, m, p in analysis.kv_capacity()]
    page["kvspan"] = f"{min(spans):+.1f} to {max(spans):+.1f} %"
    page["probe"] = _probe()
    page["kv"] = table(
        ("server", "measured (tokens)", "predicted", "error"),
        [(name, f"{m:.0f}", f"{p:.0f}", f"{100 * (p / m - 1):+.1f} %") for name, m, p in analysis.kv_capacity()],
    )
    page |= acceptance_parts(images)
    plots.save(plots.predicted_figure(groups), images / "h200_predicted.svg")
    title = "dense 8B, cells that the fit has not seen (hollow: eager)"
    plots.save(plots.residual_figure(cells, analysis.predict(fit, cells), known, title), images / "h200_residuals.svg")
    figure = plots.crossover_figure(cells, analysis.predict(fit, cells), curve, analysis_contexts())
    plots.save(figure, images / "h200_crossover.svg")
    (ROOT / "docs" / "h200.md").write_text(build_page(page), encoding="utf-8")
    return 0


def analysis_contexts() -> tuple[int, ...]:
    return (512, 2048, 8192)


def _apart(sizes: Sequence[int], measured: int, predicted: int) -> int:
    place = [*sizes, 0]
    return abs(place.index(measured) - place.index(predicted))


def _probe() -> str:
    """The largest batch of the trained pair, in words."""
    (item,) = [
        item
        for item in analysis.observations("h200_acceptance")
        if item.candidate is not None and item.candidate.cuda_graph and item.candidate.q_len > 1
    ]
    same, asked = analysis.metric(item, "same_as_off_req"), analysis.metric(item, "n_requests")
    return (
        f"with {item.concurrency} x {item.candidate.q_len} rows in one graph {same:.0f} of {asked:.0f} "
        f"answers equal those without speculation, the accept length is {item.accept_len:.2f}"
    )


def _gain(cells: Sequence[Cell]) -> str:
    step = {
        (c.kind, c.q_len, c.concurrency): c.step_s for c in cells if c.graph and c.prompt_tok == 512 and c.usual_depth
    }
    gains = {c: 4.0 * step["off", 1, c] / step["tree", 9, c] for c in (1, 16, 32, 128)}
    return ", ".join(f"{value:.2f}x at C = {c}" for c, value in gains.items())


def _slopes(dense: Sequence[Cell], moe: Sequence[Cell]) -> str:
    rows = []
    for name, cells, layers, heads in (("dense 8B", dense, 36, 32), ("MLA + MoE rank", moe, 16, 8)):
        for kind, q_len, size, slope, wave in analysis.context_slopes(cells, layers, heads):
            rows.append((name, option((kind, q_len)), size, f"{slope:.1f}", f"{wave:.0f}" if kind != "off" else "-"))
    return table(("model", "mode", "C", "ns a token and layer", "the same, a wave"), rows)


def _term(fits: dict[str, tuple[StepCostFit, list[Cell], list[int]]]) -> str:
    if "verify_wave_s" not in PARAMETER_NAMES:
        return (
            "The step-cost model has no such term: it lets every further query token repeat a part of reading the KV "
            "cache\n(`verify_attention_frac`), which grows with q_len and not in waves. This is why "
            "the errors above are "
            "largest at\nlong contexts, whatever is calibrated."
        )
    values = {m: f.posterior.value("verify_wave_s") * 1e9 for m, (f, _, _) in fits.items() if f.posterior is not None}
    return (
        "The step-cost model has this term (`verify_wave_s`, for one cached token of 256 elements in "
        "one layer and wave); "
        f"the\ncalibrations put it at {values['qwen3-8b']:.0f} ns for GQA and {values['mla-moe-rank']:.0f} ns for MLA. "
        "Its form came from these runs. So the lines above\nare tests of a form on cells that the "
        "fit has not seen, not of "
        "foresight: what the planner said before the campaign\nis the column 'at campaign time'."
    )


def _host(fits: dict[str, tuple[StepCostFit, list[Cell], list[int]]]) -> str:
    """Host terms and what they are for, by model."""
    shown = ("step_host_s", "request_host_s", "spec_step_s", "spec_request_s", "spec_row_s", "draft_row_s")
    what = {parameter.name: parameter.what for parameter in PARAMETERS}
    posteriors = [fit.posterior for fit, _, _ in fits.values() if fit.posterior is not None]
    rows = []
    for name in shown:
        scale, unit = (1e3, "ms") if name in ("step_host_s", "spec_step_s") else (1e6, "us")
        values = [f"{scale * p.value(name):.2f} +- {scale * p.sd(name):.2f} {unit}" for p in posteriors]
        rows.append((f"`{name}`", *values, what[name]))
    return table(("parameter", *(TITLES[model_id] for model_id in fits), "what"), rows)


def _mla_at_32(cells: Sequence[Cell]) -> str:
    """What a cached token costs at C = 32 between prompts of 512 and 8192 tokens, ns a layer, lowest and highest."""
    step = {(c.kind, c.q_len, c.prompt_tok): c.step_s for c in cells if c.kind != "off" and c.concurrency == 32}
    costs = [
        (value - step[kind, q_len, 512]) / (8192 - 512) / 16 * 1e9
        for (kind, q_len, prompt), value in step.items()
        if prompt == 8192 and (kind, q_len, 512) in step
    ]
    return f"{min(costs):.0f} to {max(costs):.0f}"


def acceptance_parts(images: Path) -> dict[str, str]:
    """Texts and figure of the acceptance section."""
    points, hot = analysis.acceptance_points(), analysis.acceptance_points(1.0)
    exact, own = analysis.exact_mode()
    said = {(p["kind"], p["topk"], p["budget"]): e for p, e in exact}
    warm = {(p["kind"], p["topk"], p["budget"]): p["accept_len"] for p in hot}
    rows = []
    for p in points:
        key = (p["kind"], p["topk"], p["budget"])
        guess = said.get(key)
        rows.append(
            (
                p["kind"],
                p["topk"],
                p["budget"],
                f"{p['accept_len']:.3f}",
                p["rounds"],
                f"{guess.value:.2f} ({100 * (guess.value / p['accept_len'] - 1):+.1f} %)" if guess else "-",
                f"{warm[key]:.3f}",
                f"{p['same']:.0f} of 128",
            )
        )
    head = (
        "kind",
        "topk",
        "budget",
        "accept length",
        "rounds",
        "exact mode",
        "at T = 1",
        "answers as without speculation",
    )
    few = []
    for n in (1, 2, 3):
        errors, inside = analysis.few_point_errors(n)
        size = [abs(e) for e in errors]
        few.append(
            (n, len(errors), percent(sum(size) / len(size)), percent(max(size)), percent(sum(inside) / len(inside)))
        )
    curves = {}
    for topk in (4, 8):
        known = next(p for p in points if p["kind"] == "tree" and p["topk"] == topk and p["budget"] == 8)
        row = {k: known[k] for k in ("budget", "accept_len", "rounds", "topk")}
        fit = fit_acceptance([row], block_size=8, topk=topk, tree_shape="eagle")
        budgets = sorted({*range(4, 33, 2), 40, 48, 64})
        curves[topk] = [(b, fit.predict(b, topk=topk)) for b in budgets]
    plots.save(plots.acceptance_figure(points, curves, exact), images / "h200_acceptance.svg")  # type: ignore[arg-type]
    facts = analysis.train_facts()
    factor = [
        (warm[k] - 1) / (p["accept_len"] - 1) for p in points if (k := (p["kind"], p["topk"], p["budget"])) in warm
    ]
    return {
        "accept": table(head, rows),
        "few": table(("budgets known", "n", "MAPE", "largest", "coverage of 90 %"), few),
        "train": (
            f"{facts['seconds']:.0f} s, {facts['steps']} steps, {facts['tokens'] / 1e6:.0f} million bytes read from "
            f"{facts['n_files']} Python files; final losses "
            f"{facts['loss_target']:.2f} and {facts['loss_draft']:.2f} nats a byte"
        ),
        "warm": f"{min(factor):.2f} to {max(factor):.2f}",
        "own": f"{own[7]:.2f}",
        "own_said": f"{said['chain', 1, 7].value:.2f}",
    }


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
