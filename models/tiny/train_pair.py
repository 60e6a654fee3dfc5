"""Train a tiny target and a tiny draft that share one vocabulary, on a CPU in a few minutes.

    python models/tiny/train_pair.py --out /tmp/pair

Needs ``torch``, ``transformers`` and ``tokenizers``, which Specrack itself does not. Afterwards
``make_gguf.py`` converts each folder for llama.cpp.

The text is 25 modules of the standard library of the Python that runs this script (PSF licence).
The draft learns the target's whole distribution (distillation), not the text: acceptance under
greedy decoding is how often both name the same next token. The schedule counts steps, not seconds,
so that one machine with one version of torch gives the same weights every run.
"""

from __future__ import annotations

import argparse
import json
import sys
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch
    from tokenizers import Tokenizer
    from transformers import LlamaForCausalLM

VOCABULARY_TOKENS = 1024
CONTEXT_TOKENS = 1024
SEQUENCE_TOKENS = 128
HEAD_WIDTH = 64
VALIDATION_TOKENS = 20_000

#: Packages of the standard library whose modules are the text.
TEXT_PACKAGES = ("collections", "concurrent/futures", "http", "json", "logging", "urllib")

UNKNOWN, BEGIN, END = "<unk>", "<s>", "</s>"
BEGIN_ID, END_ID = 1, 2

#: Questions become comments, answers are code as it is.
CHAT_TEMPLATE = (
    "{% for m in messages %}{% if m['role']=='user' %}# {{ m['content'] }}\n"
    "{% else %}{{ m['content'] }}\n{% endif %}{% endfor %}"
)


@dataclass(frozen=True)
class Shape:
    """Size of a Llama and how it is trained."""

    width: int
    layers: int
    inner_width: int
    sequences_per_step: int
    learning_rate: float


TARGET = Shape(width=256, layers=4, inner_width=768, sequences_per_step=8, learning_rate=3e-3)
DRAFT = Shape(width=128, layers=1, inner_width=384, sequences_per_step=12, learning_rate=4e-3)


def main(arguments: list[str] | None = None) -> int:
    """Command line. Returns the exit status."""
    parser = argparse.ArgumentParser(
        description="Train a tiny target and draft with one vocabulary (Hugging Face form).",
        epilog="example: python models/tiny/train_pair.py --out /tmp/pair --target-steps 50",
    )
    parser.add_argument("--out", type=Path, required=True, help="gets the folders target and draft")
    parser.add_argument("--target-steps", type=int, default=600, help="default: %(default)s")
    parser.add_argument("--draft-steps", type=int, default=400, help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=0, help="default: %(default)s")
    options = parser.parse_args(arguments)
    try:
        train_pair(options.out, options.target_steps, options.draft_steps, seed=options.seed)
    except ImportError as error:
        print(f"train_pair: {error} (pip install torch transformers tokenizers)", file=sys.stderr)
        return 2
    return 0


def train_pair(out: Path, target_steps: int, draft_steps: int, *, seed: int) -> None:
    """Train both and write them below ``out``. Prints progress and how well they agree."""
    import torch

    torch.manual_seed(seed)
    # More threads would add up in another order, and so give other weights.
    torch.set_num_threads(1)
    texts = read_texts()
    tokenizer = train_tokenizer(texts)
    ids = torch.tensor(
        [token for text in texts for token in (BEGIN_ID, *tokenizer.encode(text).ids, END_ID)]
    )
    print(f"{len(texts)} modules, {sum(map(len, texts)):,} characters, {len(ids):,} tokens")
    training, validation = ids[:-VALIDATION_TOKENS], ids[-VALIDATION_TOKENS:]

    target = new_model(TARGET)
    train("target", target, TARGET, training, target_steps, next_token_loss)
    target.eval()
    draft = new_model(DRAFT)
    train("draft", draft, DRAFT, training, draft_steps, distillation_loss(target))
    draft.eval()
    report(target, draft, validation)
    save(target, tokenizer, out / "target")
    save(draft, tokenizer, out / "draft")


def read_texts() -> list[str]:
    """The training text, in an order that does not depend on the file system."""
    library = Path(sysconfig.get_paths()["stdlib"])
    paths = sorted(path for name in TEXT_PACKAGES for path in (library / name).glob("*.py"))
    return [path.read_text(encoding="utf-8") for path in paths]


def train_tokenizer(texts: list[str]) -> Tokenizer:
    """Byte-level BPE: any text can be encoded, nothing is unknown."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY_TOKENS,
        special_tokens=[UNKNOWN, BEGIN, END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def new_model(shape: Shape) -> LlamaForCausalLM:
    """A Llama with random weights and tied embeddings."""
    from transformers import LlamaConfig, LlamaForCausalLM

    heads = shape.width // HEAD_WIDTH
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=VOCABULARY_TOKENS,
            hidden_size=shape.width,
            num_hidden_layers=shape.layers,
            num_attention_heads=heads,
            num_key_value_heads=heads,
            intermediate_size=shape.inner_width,
            max_position_embeddings=CONTEXT_TOKENS,
            tie_word_embeddings=True,
            bos_token_id=BEGIN_ID,
            eos_token_id=END_ID,
            pad_token_id=None,
        )
    )


Loss = Callable[["torch.Tensor", "torch.Tensor", "torch.Tensor"], "torch.Tensor"]


def next_token_loss(
    logits: torch.Tensor, _inputs: torch.Tensor, following: torch.Tensor
) -> torch.Tensor:
    """Cross-entropy against the text."""
    from torch.nn import functional

    return functional.cross_entropy(logits.flatten(0, 1), following.flatten())


def distillation_loss(teacher: LlamaForCausalLM) -> Loss:
    """Kullback-Leibler divergence from the teacher's distribution."""
    import torch
    from torch.nn import functional

    def loss(logits: torch.Tensor, inputs: torch.Tensor, _following: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            wanted = teacher(inputs).logits.log_softmax(-1).flatten(0, 1)
        return functional.kl_div(
            logits.log_softmax(-1).flatten(0, 1), wanted, log_target=True, reduction="batchmean"
        )

    return loss


def train(
    name: str, model: LlamaForCausalLM, shape: Shape, ids: torch.Tensor, steps: int, loss_of: Loss
) -> None:
    """AdamW over random windows: 20 steps of warm-up, a plateau, then linear to 5%."""
    import torch

    is_matrix = {
        key: value.ndim == 2 and "embed" not in key for key, value in model.named_parameters()
    }
    groups = [
        {
            "params": [v for k, v in model.named_parameters() if is_matrix[k]],
            "peak": shape.learning_rate / 3,
            "weight_decay": 0.02,
        },
        {
            "params": [v for k, v in model.named_parameters() if not is_matrix[k]],
            "peak": shape.learning_rate,
            "weight_decay": 0.0,
        },
    ]
    optimizer = torch.optim.AdamW(groups, lr=shape.learning_rate, betas=(0.9, 0.95))
    model.train()
    for step in range(steps):
        factor = min(1.0, (step + 1) / 20, max(0.05, 1.6 * (1 - step / steps)))
        for group in optimizer.param_groups:
            group["lr"] = group["peak"] * factor
        starts = torch.randint(0, len(ids) - SEQUENCE_TOKENS - 1, (shape.sequences_per_step,))
        windows = torch.stack([ids[at : at + SEQUENCE_TOKENS + 1] for at in starts])
        inputs, following = windows[:, :-1], windows[:, 1:]
        loss = loss_of(model(inputs).logits, inputs, following)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 50 == 0 or step == steps - 1:
            print(f"{name}: step {step + 1} of {steps}, loss {loss.item():.3f}", flush=True)


def report(target: LlamaForCausalLM, draft: LlamaForCausalLM, validation: torch.Tensor) -> None:
    """How often both name the same next token on text that neither has seen."""
    import torch

    count = 32 * SEQUENCE_TOKENS
    inputs = validation[:count].view(32, SEQUENCE_TOKENS)
    with torch.no_grad():
        ours, theirs = target(inputs).logits, draft(inputs).logits
    agreement = (ours.argmax(-1) == theirs.argmax(-1)).float().mean().item()
    overlap = torch.minimum(ours.softmax(-1), theirs.softmax(-1)).sum(-1).mean().item()
    print(f"same next token: {agreement:.3f}; overlap of the distributions: {overlap:.3f}")


def save(model: LlamaForCausalLM, tokenizer: Tokenizer, folder: Path) -> None:
    """Hugging Face form, bfloat16."""
    import torch
    from transformers import PreTrainedTokenizerFast

    wrapped = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        unk_token=UNKNOWN,
        bos_token=BEGIN,
        eos_token=END,
        model_max_length=CONTEXT_TOKENS,
    )
    wrapped.chat_template = CHAT_TEMPLATE
    model.to(torch.bfloat16).save_pretrained(folder)
    wrapped.save_pretrained(folder)
    generation = {"bos_token_id": BEGIN_ID, "eos_token_id": END_ID}
    (folder / "generation_config.json").write_text(json.dumps(generation), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
