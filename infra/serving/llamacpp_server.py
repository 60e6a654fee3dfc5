"""llama.cpp's server as a process of its own: ``python -m infra.serving.llamacpp_server``.

Prints one JSON line on stdout when it listens, and llama.cpp's log on stderr. Ends with status 0 on
SIGTERM, and with status 2 and one last line on stderr when starting it again cannot help: a wrong
configuration, a missing or wrong model file, vocabularies that differ, a port that is taken.

``/health`` answers 503 while the model loads: llama.cpp binds the port first. The load holds
Python's interpreter lock, so a SIGTERM meanwhile ends the process by the signal itself.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import socket
import sys
import time
import urllib.request
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from pydantic import ValidationError

from infra.errors import EXIT_BAD_INPUT, EXIT_OK, InputError
from infra.process import die_with_parent, stop_when_orphaned
from infra.serving import openmp
from infra.serving.gguf_header import GgufHeader, NotGgufError, read_header
from infra.serving.llamacpp_config import ServerConfig
from infra.serving.vocabulary import gguf_mismatch

HOST = "127.0.0.1"

#: Matches of this many tokens are looked up; with llama.cpp's default of 12 short texts never hit.
NGRAM_LOOKUP_TOKENS = 3

#: Prompts of finished requests kept in memory, at most. llama.cpp's default is 8 GiB.
PROMPT_CACHE_MIB = 256


def main(arguments: list[str] | None = None) -> NoReturn:
    """Command line. Ends the process; see the module for the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m infra.serving.llamacpp_server",
        description="Serve a GGUF model with llama.cpp on 127.0.0.1 until SIGTERM.",
        epilog="example: ... --config server.json --port 8000",
    )
    parser.add_argument("--config", type=Path, required=True, help="server.json of a launch plan")
    parser.add_argument("--port", type=int, required=True, help="TCP port (1-65535)")
    options = parser.parse_args(arguments)
    die_with_parent()
    try:
        openmp.ensure(options.config.resolve().parent)
        stop_when_orphaned()
        serve(read_config(options.config), options.port)
    except InputError as error:
        _end(EXIT_BAD_INPUT, f"llamacpp-server: {error}")


def read_config(path: Path) -> ServerConfig:
    """Raises InputError naming the file and the key."""
    try:
        return ServerConfig.model_validate_json(path.read_bytes())
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        raise InputError(f"{path}: {key}: {first['msg']}") from error


def serve(config: ServerConfig, port: int) -> NoReturn:
    """Check, load, listen, wait for SIGTERM. Raises InputError."""
    check_files(config)
    check_port(port)
    import xllamacpp

    started = time.monotonic()
    try:
        server = xllamacpp.Server(server_parameters(config, port))
    except RuntimeError as error:
        # Its text is the same for every cause; between our look and now the port may have gone.
        check_port(port)
        raise InputError(
            f"llama.cpp could not load {config.model}", do="the log lines above say why"
        ) from error
    signal.signal(signal.SIGTERM, _stop)
    signal.signal(signal.SIGINT, _stop)
    check_speculation(config, server.listening_address)
    line = {
        "event": "listening",
        "url": server.listening_address,
        "pid": os.getpid(),
        "method": config.method,
        "load_s": round(time.monotonic() - started, 3),
    }
    print(json.dumps(line), flush=True)
    while True:
        signal.pause()


def check_files(config: ServerConfig) -> None:
    """Model files are there, are GGUF, and share the vocabulary. Raises InputError.

    llama.cpp itself serves *without* speculation when the vocabularies differ.
    """
    target = _header(config.model, what="model file")
    if config.method != "draft_model":
        return
    if config.draft is None:
        raise InputError("method draft_model needs a draft")
    draft = _header(config.draft, what="draft file")
    mismatch = gguf_mismatch(target, draft)
    if mismatch:
        raise InputError(
            f"draft {config.draft} has another vocabulary than {config.model}: {mismatch}",
            do="use a draft of the target's own family",
        )


def _header(path: str, *, what: str) -> GgufHeader:
    try:
        return read_header(Path(path))
    except OSError as error:
        raise InputError(f"{what} {path}: {error.strerror}") from error
    except NotGgufError as error:
        raise InputError(f"{what} {path}: {error}") from error


def check_port(port: int) -> None:
    """Raises InputError when 127.0.0.1:``port`` cannot be bound."""
    if not 0 < port < 65536:
        raise InputError(f"port {port} is not a TCP port (1-65535)")
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As llama.cpp does: a port whose last connections are still closing is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            raise InputError(
                f"port {port} on {HOST}: {error.strerror}", do="free it or choose another one"
            ) from error


def check_speculation(config: ServerConfig, url: str) -> None:
    """Does the server that now listens really speculate? Raises InputError.

    llama.cpp goes on without speculation, with a line in its log, when it cannot set it up.
    """
    if config.method == "none":
        return
    # Straight to the loopback address, whatever proxy the environment names.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"{url}/slots", timeout=10) as answer:
        slots: list[dict[str, Any]] = json.load(answer)
    if not slots or not all(slot.get("speculative") for slot in slots):
        raise InputError(
            f"llama.cpp serves without speculation, but method {config.method} is asked for",
            do="the log lines above say why",
        )


def server_parameters(config: ServerConfig, port: int) -> Any:
    """``config`` as xllamacpp's CommonParams."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = config.model
    params.model_alias = {config.alias}
    params.hostnames = [HOST]
    params.port = port
    # Two servers on one port would share its requests without a word.
    params.reuse_port = False
    params.n_threads_http = config.connections
    # The context is shared out evenly over the slots.
    params.n_parallel = config.slots
    params.n_ctx = config.slots * config.slot_context_tokens
    # Else the context is made smaller, silently, until it fits the memory.
    params.fit_params = False
    params.n_gpu_layers = 0
    # On a CPU it is no faster, and it sums in float16: outputs then depend on how many tokens are
    # computed together, and so on speculation (measured: models/tiny/README.md).
    params.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    params.cache_ram_mib = PROMPT_CACHE_MIB
    params.endpoint_metrics = True
    params.endpoint_slots = True
    params.ui = False
    # No web page may talk to this server through a visitor's browser.
    params.cors_origins = ""
    params.warmup = True
    _use_threads(params, config.threads)
    _use_speculation(params.speculative, config)
    return params


def _use_speculation(speculative: Any, config: ServerConfig) -> None:
    import xllamacpp

    kinds = xllamacpp.common_speculative_type
    if config.method == "none":
        return
    assert config.draft_tokens is not None
    if config.synthetic_acceptance_length is not None:
        speculative.synth_len = config.synthetic_acceptance_length
    if config.method == "ngram":
        speculative.types = [kinds.COMMON_SPECULATIVE_TYPE_NGRAM_SIMPLE]
        speculative.ngram_simple.size_n = NGRAM_LOOKUP_TOKENS
        speculative.ngram_simple.size_m = config.draft_tokens
        return
    speculative.types = [kinds.COMMON_SPECULATIVE_TYPE_DRAFT_SIMPLE]
    draft = speculative.draft
    draft.mparams.path = config.draft
    draft.n_min = 0
    draft.n_max = config.draft_tokens
    # Always propose k tokens: a threshold would make k, and with it the counters, vary.
    draft.p_min = 0.0
    draft.n_gpu_layers = 0
    _use_threads(draft, config.threads)


def _use_threads(params: Any, threads: int) -> None:
    params.cpuparams.n_threads = threads
    params.cpuparams_batch.n_threads = threads


def _stop(_signal: int, _frame: FrameType | None) -> None:
    _end(EXIT_OK, "llamacpp-server: stopped")


def _end(status: int, last_line: str) -> NoReturn:
    """Leave at once: tearing llama.cpp down may hang while requests are in flight."""
    with contextlib.suppress(OSError):
        print(last_line, file=sys.stderr, flush=True)
        sys.stdout.flush()
    os._exit(status)


if __name__ == "__main__":
    main()
