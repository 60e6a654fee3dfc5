"""Prompts: text that people would send, cut or lengthened to about the promised token count.

Random tokens are not used: they over- or understate how many drafted tokens are accepted.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from infra.errors import InputError

#: Without the model's tokenizer: characters a token of English and Python under vocabularies of
#: usual size. What was really sent is reported from the engine's own count (``usage``).
CHARS_PER_TOKEN = 3.2

_MAX_FILE_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Prompt:
    """A text and what kind of work it asks for (``code``, ``chat``, ``summarise``, ``user``)."""

    kind: str
    text: str


class PromptSet:
    """An endless, reproducible series of prompts: ``text(i)`` is a pure function of i and seed."""

    def __init__(self, prompts: Sequence[Prompt], *, tokens: int | None, seed: int) -> None:
        """``tokens``: length to cut or lengthen to, about; None sends the prompts as they are."""
        if not prompts:
            raise InputError("there is no prompt to send")
        self._prompts = list(prompts)
        random.Random(seed).shuffle(self._prompts)
        self._chars = None if tokens is None else max(1, round(tokens * CHARS_PER_TOKEN))
        self._seed = seed

    def __len__(self) -> int:
        """How many different texts there are before variants begin."""
        return len(self._prompts)

    def text(self, number: int) -> str:
        """Prompt ``number`` (from 0). Past the end of the set come variants: the same questions
        below other text, so that a prefix cache finds nothing to reuse."""
        variant, place = divmod(number, len(self._prompts))
        prompt = self._prompts[place]
        if self._chars is None:
            return prompt.text
        # Cut prompts may end alike, too ("... in one sentence."), so those are numbered as well.
        title = f"# {number}\n" if variant or len(prompt.text) > self._chars else ""
        room = max(1, self._chars - len(title))
        return title + self._fit(prompt, number, room)

    def _fit(self, prompt: Prompt, number: int, chars: int) -> str:
        """``prompt`` at the end of ``chars`` characters; what stands before it is of its kind."""
        parts = [prompt.text]
        length = len(prompt.text)
        others = [one for one in self._prompts if one.kind == prompt.kind and one is not prompt]
        source = random.Random(f"{self._seed}:{number}")
        while length < chars:
            other = source.choice(others) if others else prompt
            parts.append(other.text)
            length += len(other.text) + 2
        text = "\n\n".join(reversed(parts))
        return text[len(text) - chars :] if len(text) > chars else text


def shipped() -> list[Prompt]:
    """The prompts that come with Specrack (``smoke/data/prompts.jsonl``, Apache-2.0)."""
    resource = resources.files("smoke") / "data" / "prompts.jsonl"
    lines = resource.read_text(encoding="utf-8").splitlines()
    return [Prompt(**json.loads(line)) for line in lines]


def from_file(path: Path) -> list[Prompt]:
    """A user's prompts: JSON lines, each a string or an object with ``prompt`` or ``text``.

    Raises InputError with file and line for the first line that is neither.
    """
    try:
        if path.stat().st_size > _MAX_FILE_BYTES:
            raise InputError(f"{path}: more than {_MAX_FILE_BYTES >> 20} MiB of prompts")
        content = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is not UTF-8 (byte {error.start})") from None
    prompts = [
        Prompt("user", _text_of(line, place=f"{path}:{number}"))
        for number, line in enumerate(content.split("\n"), 1)
        if line.strip()
    ]
    if not prompts:
        raise InputError(f"{path}: holds no prompt", do='one a line: {"prompt": "..."}')
    return prompts


def _text_of(line: str, *, place: str) -> str:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{place}: not JSON: {error}", do='write {"prompt": "..."}') from None
    if isinstance(value, dict):
        value = value.get("prompt", value.get("text"))
    if not isinstance(value, str) or not value.strip():
        raise InputError(
            f"{place}: no prompt in this line", do='write {"prompt": "..."} or a JSON string'
        )
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InputError(f"{place}: the prompt holds half of a surrogate pair") from None
    return value
