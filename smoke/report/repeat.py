"""The command line that repeats a run."""

from __future__ import annotations

import shlex

from smoke.measured import Measured
from smoke.options import Options, Target


def repeat_command(found: Measured) -> str:
    """The command that measures the same again, for a POSIX shell."""
    target, options, load, sla = found.target, found.options, found.load, found.sla
    default = Options()
    words: list[object] = ["python", "-m", "smoke", "--url", target.url]
    pairs: list[tuple[str, object, object]] = [
        ("--name", target.name, Target(url="").name),
        ("--model", target.model, None),
        ("--engine", target.engine, None),
        ("--baseline-url", target.baseline_url, None),
        ("--metrics-url", target.metrics_url, None),
        ("--sessions", load.sessions, None),
        ("--think-s", f"{load.think_s:g}", None),
        ("--prompt-tokens", load.prompt_tokens, None),
        ("--output-tokens", load.output_tokens, None),
        ("--sla-ttft-p95-ms", sla.ttft_p95_ms, None),
        ("--sla-tpot-p95-ms", sla.tpot_p95_ms, None),
        ("--sla-e2e-p95-ms", sla.e2e_p95_ms, None),
        ("--sla-error-rate-max", sla.error_rate_max, None),
        ("--rate-rps", options.rate_rps, None),
        ("--seed", options.seed, None),
        ("--max-seconds", options.max_seconds, default.max_seconds),
        ("--min-requests", options.min_requests, None),
        ("--max-in-flight", options.max_in_flight, None),
        ("--endpoint", options.kind, default.kind),
        ("--arrival", options.arrival, default.arrival),
        ("--prompts", options.prompts_file, None),
    ]
    if sla.speculation is not None:
        wanted = sla.speculation
        pairs += [
            ("--sla-speedup-min", wanted.speedup_min, None),
            ("--sla-mean-acceptance-length-min", wanted.mean_acceptance_length_min, None),
            ("--sla-output", wanted.output, "any"),
        ]
    for flag, value, unset in pairs:
        if value is not None and value != unset:
            words += [flag, f"{value:g}" if isinstance(value, float) else value]
    if not options.ignore_eos:
        words.append("--no-ignore-eos")
    return shlex.join(str(word) for word in words)
