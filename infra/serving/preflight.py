"""Can this deployment start at all? Asked of the disk before anything is started or paid for.

Every fault that is found is reported, not the first one only. Model names that are hub ids are not
looked up: they are not on this disk.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from infra.errors import Problem, UnsupportedError
from infra.serving import support
from infra.serving.adapters import Node, adapter
from infra.serving.gguf_header import GgufHeader, NotGgufError, read_header
from infra.serving.hf_folder import HfFolder, NotAModelError, read_folder
from infra.serving.references import is_hub_id
from infra.serving.vocabulary import gguf_mismatch, hf_mismatch
from infra.spec.model import METHODS_WITH_DRAFT, Deployment

TARGET_KEY = "model.target"
DRAFT_KEY = "model.draft"
LENGTH_KEY = "model.max_model_len"
ENGINE_KEY = "serving.engine"
METHOD_KEY = "serving.speculation.method"
SYNTHETIC_KEY = "serving.speculation.synthetic_acceptance_length"


def check(
    deployment: Deployment, root: Path, *, kind: Literal["cpu", "gpu"] | None = None
) -> list[Problem]:
    """All faults of ``deployment`` that can be seen before a start; empty when there are none.

    ``root`` is the project's root; ``kind`` of node defaults to ``cpu`` on site ``local`` and to
    ``gpu`` elsewhere. The problems carry a key of the deployment, but no file and no line.
    """
    faults = _Faults(deployment, root)
    faults.check_support(kind or ("cpu" if deployment.site == "local" else "gpu"))
    if deployment.serving.engine == "llamacpp":
        faults.check_gguf()
    elif deployment.serving.engine == "vllm":
        faults.check_hf()
    return faults.found


class _Faults:
    """Collects what is wrong with one deployment."""

    def __init__(self, deployment: Deployment, root: Path) -> None:
        self.found: list[Problem] = []
        self._model = deployment.model
        self._serving = deployment.serving
        self._deployment = deployment
        self._root = root

    def check_support(self, kind: Literal["cpu", "gpu"]) -> None:
        """Engine, version, method and kind of node go together."""
        # The adapter knows which version it would install: let it plan, and drop the plan.
        node = Node(kind=kind, gpus=0 if kind == "cpu" else 1, threads=1, root="/")
        try:
            engine = adapter(self._serving.engine)
        except UnsupportedError as error:
            self._add(ENGINE_KEY, str(error))
            return
        try:
            engine.launch_plan(self._deployment, node, baseline=False)
        except support.UnsupportedReferenceError as error:
            self._add(error.key, error.what)
        except support.UnsupportedSyntheticError as error:
            self._add(SYNTHETIC_KEY, str(error))
        except UnsupportedError as error:
            self._add(METHOD_KEY, str(error))

    def check_gguf(self) -> None:
        """llama.cpp: GGUF files, one vocabulary, enough context."""
        target = self._gguf(TARGET_KEY, self._model.target)
        draft = self._gguf(DRAFT_KEY, self._draft) if self._draft else None
        for what, header in (("target", target), ("draft", draft)):
            if header is not None:
                self._check_context(what, header.context_tokens)
        if target is not None and draft is not None:
            self._check_vocabulary(gguf_mismatch(target, draft))

    def check_hf(self) -> None:
        """vLLM: folders in Hugging Face form, one vocabulary, enough context."""
        target = self._folder(TARGET_KEY, self._model.target, needs_tokenizer=True)
        if target is not None:
            self._check_context("target", target.context_tokens)
        if not self._draft:
            return
        # Heads (EAGLE, Medusa) use the target's tokenizer and positions.
        is_model = self._serving.speculation.method == "draft_model"
        draft = self._folder(DRAFT_KEY, self._draft, needs_tokenizer=is_model)
        if draft is None or not is_model:
            return
        self._check_context("draft", draft.context_tokens)
        if target is not None:
            self._check_vocabulary(hf_mismatch(target, draft))

    @property
    def _draft(self) -> str | None:
        """The draft, if the method uses it."""
        uses_it = self._serving.speculation.method in METHODS_WITH_DRAFT
        return self._model.draft if uses_it else None

    def _gguf(self, key: str, name: str) -> GgufHeader | None:
        if is_hub_id(name):
            return None  # check_support has said so
        try:
            return read_header(self._root / name)
        except OSError as error:
            self._add(key, f"{name}: {error.strerror}")
        except NotGgufError as error:
            self._add(key, f"{name}: {error}; llamacpp serves GGUF files")
        return None

    def _folder(self, key: str, name: str, *, needs_tokenizer: bool) -> HfFolder | None:
        if is_hub_id(name):
            return None
        try:
            return read_folder(self._root / name, needs_tokenizer=needs_tokenizer)
        except OSError as error:
            self._add(key, f"{name}: {error.strerror}")
        except NotAModelError as error:
            self._add(key, f"{name}: {error}")
        return None

    def _check_context(self, what: str, trained_tokens: int | None) -> None:
        asked = self._model.max_model_len
        if trained_tokens is not None and asked > trained_tokens:
            self._add(
                LENGTH_KEY, f"{asked} is more than the {what}'s trained context of {trained_tokens}"
            )

    def _check_vocabulary(self, mismatch: str | None) -> None:
        if mismatch:
            self._add(
                DRAFT_KEY, f"{self._draft} has another vocabulary than the target: {mismatch}"
            )

    def _add(self, key: str, what: str) -> None:
        self.found.append(Problem(path="", line=None, key=key, what=what))
