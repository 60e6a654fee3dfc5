"""``python -m smoke``: the harness alone, against any OpenAI-compatible endpoint."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError
from rich.console import Console

import smoke
from infra.errors import EXIT_INCONCLUSIVE, InputError, SpecrackError
from infra.spec.model import Load, Sla, SpeculationSla
from smoke.endpoint import API_KEY_VARIABLE
from smoke.progress import for_terminal
from smoke.report import terminal
from smoke.request import PATH

_EXAMPLES = f"""
examples:
  python -m smoke --url http://127.0.0.1:8000 --sla-ttft-p95-ms 400 --sla-tpot-p95-ms 30
  python -m smoke --url https://llm.example.com --model llama --sessions 20 --think-s 10 \\
      --prompt-tokens 1024 --output-tokens 256 --sla-e2e-p95-ms 9000 --out smoke-report
  python -m smoke --url http://gpu1:8000 --baseline-url http://gpu2:8000 --engine vllm \\
      --sla-tpot-p95-ms 30 --sla-speedup-min 1.2 --sla-output identical --json

exit status: 0 the SLA holds, 1 it is broken, 2 bad input, 3 undecided or not measurable.
A key for the endpoint is read from the environment variable {API_KEY_VARIABLE} only.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    options = _parser().parse_args(arguments)
    errors = Console(stderr=True)
    try:
        return _run(options)
    except SpecrackError as error:
        _say(errors, f"error: {error}")
        return error.exit_status
    except KeyboardInterrupt:
        _say(errors, "interrupted; nothing was written")
        return 128 + signal.SIGINT
    except BrokenPipeError:
        # Nobody reads our output; keep the interpreter from tripping over it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_INCONCLUSIVE
    except Exception as error:  # a fault of ours; a user still gets a sentence
        if os.environ.get("SPECRACK_DEBUG"):
            traceback.print_exc()
        _say(errors, f"error: the harness failed: {type(error).__name__}: {error}")
        _say(errors, "(this is a bug; SPECRACK_DEBUG=1 shows where)")
        return EXIT_INCONCLUSIVE


def _run(given: argparse.Namespace) -> int:
    sla, load = _sla(given), _load(given)
    target = smoke.Target(
        url=given.url,
        model=given.model,
        engine=given.engine,
        baseline_url=given.baseline_url,
        metrics_url=given.metrics_url,
        name=given.name,
    )
    options = smoke.Options(
        max_seconds=given.max_seconds,
        min_requests=given.min_requests,
        seed=given.seed,
        kind=given.endpoint,
        arrival=given.arrival,
        rate_rps=given.rate_rps,
        max_in_flight=given.max_in_flight,
        ignore_eos=not given.no_ignore_eos,
        prompts_file=given.prompts,
        timeouts=smoke.Timeouts(
            connect_s=given.connect_timeout_s,
            first_byte_s=given.first_byte_timeout_s,
            stall_s=given.stall_timeout_s,
            total_s=given.total_timeout_s,
        ),
    )
    progress = for_terminal()
    report = smoke.run(target, sla, load, options, _reader(given.engine), progress)
    # Written before anything is printed: a closed pipe must not cost the report.
    paths = smoke.report.write_all(report, given.out) if given.out else None
    if given.json:
        sys.stdout.write(smoke.report.to_json(report))
    else:
        console = Console()
        console.print(terminal.render(report))
        if paths is not None:
            print(f"report: {paths.html}")
    sys.stdout.flush()
    return report.exit_status


def _reader(engine: str | None) -> smoke.AcceptanceReader:
    """The reader of ``engine``'s metrics; without a name, the metrics' own prefix tells it."""
    from infra.serving.acceptance import AcceptanceRecord
    from infra.serving.metrics import acceptance

    def read(text: str) -> AcceptanceRecord | None:
        return acceptance(engine or ("llamacpp" if "llamacpp:" in text else "vllm"), text)

    return read


def _sla(given: argparse.Namespace) -> Sla:
    wanted = (given.sla_speedup_min, given.sla_mean_acceptance_length_min)
    asked = any(value is not None for value in wanted) or given.sla_output != "any"
    try:
        return Sla(
            ttft_p95_ms=given.sla_ttft_p95_ms,
            tpot_p95_ms=given.sla_tpot_p95_ms,
            e2e_p95_ms=given.sla_e2e_p95_ms,
            error_rate_max=given.sla_error_rate_max,
            speculation=SpeculationSla(
                speedup_min=given.sla_speedup_min,
                mean_acceptance_length_min=given.sla_mean_acceptance_length_min,
                output=given.sla_output,
            )
            if asked
            else None,
        )
    except ValidationError as error:
        raise _as_input_error(error, "--sla-") from None


def _load(given: argparse.Namespace) -> Load:
    try:
        return Load(
            sessions=given.sessions,
            prompt_tokens=given.prompt_tokens,
            output_tokens=given.output_tokens,
            think_s=given.think_s,
        )
    except ValidationError as error:
        raise _as_input_error(error, "--") from None


def _as_input_error(error: ValidationError, prefix: str) -> InputError:
    first = error.errors()[0]
    message = first["msg"].removeprefix("Value error, ")
    if not first["loc"]:
        flags = "--sla-ttft-p95-ms, --sla-tpot-p95-ms, --sla-e2e-p95-ms"
        return InputError(f"no SLA to judge by: {message}", do=f"flags: {flags}")
    flag = prefix + str(first["loc"][-1]).replace("_", "-")
    return InputError(f"{flag}: {message}, not {first['input']}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m smoke",
        description="Measure an OpenAI-compatible endpoint under load and judge it by an SLA.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    target = parser.add_argument_group("endpoint")
    target.add_argument("--url", required=True, help="address below which /v1 lies")
    target.add_argument("--name", default="endpoint", help="what reports call it")
    target.add_argument("--model", help="model name (default: ask /v1/models)")
    target.add_argument("--engine", choices=("llamacpp", "vllm"), help="default: ask /v1/models")
    target.add_argument("--metrics-url", help="Prometheus metrics (default: URL/metrics)")
    target.add_argument("--baseline-url", help="the same model with speculation off, for A/B")

    sla = parser.add_argument_group("SLA (at least one latency)")
    sla.add_argument("--sla-ttft-p95-ms", type=float, metavar="MS")
    sla.add_argument("--sla-tpot-p95-ms", type=float, metavar="MS")
    sla.add_argument("--sla-e2e-p95-ms", type=float, metavar="MS")
    sla.add_argument("--sla-error-rate-max", type=float, default=0.02, metavar="SHARE")
    sla.add_argument("--sla-speedup-min", type=float, metavar="X")
    sla.add_argument("--sla-mean-acceptance-length-min", type=float, metavar="TOKENS")
    sla.add_argument("--sla-output", choices=("identical", "any"), default="any")

    load = parser.add_argument_group("load")
    load.add_argument("--sessions", type=int, default=8, help="concurrent users (default 8)")
    load.add_argument("--think-s", type=float, default=1.0, help="pause of a user (default 1)")
    load.add_argument("--prompt-tokens", type=int, default=256)
    load.add_argument("--output-tokens", type=int, default=128)
    load.add_argument("--rate-rps", type=float, help="requests/s (default: from the sessions)")
    load.add_argument("--arrival", choices=("poisson", "constant"), default="poisson")
    load.add_argument("--endpoint", choices=tuple(PATH), default="chat")
    load.add_argument("--prompts", type=Path, metavar="FILE", help="your prompts, JSON lines")
    load.add_argument("--no-ignore-eos", action="store_true", help="let outputs end early")
    load.add_argument("--seed", type=int, default=1)

    run = parser.add_argument_group("run")
    defaults, timeouts = smoke.Options(), smoke.Timeouts()
    run.add_argument("--max-seconds", type=float, default=defaults.max_seconds)
    run.add_argument("--min-requests", type=int)
    run.add_argument("--max-in-flight", type=int)
    run.add_argument("--connect-timeout-s", type=float, default=timeouts.connect_s)
    run.add_argument("--first-byte-timeout-s", type=float, default=timeouts.first_byte_s)
    run.add_argument("--stall-timeout-s", type=float, default=timeouts.stall_s)
    run.add_argument("--total-timeout-s", type=float, default=timeouts.total_s)
    run.add_argument("--out", type=Path, metavar="DIR", help="write the reports there")
    run.add_argument("--json", action="store_true", help="print the report as JSON")
    return parser


def _say(console: Console, text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)
