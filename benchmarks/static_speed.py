"""Speed of a static student against its teacher MiniLM: `python -m benchmarks.static_speed`.

The student is the static form of MiniLM, before training, which does not change its speed. Both
encode the same posts on one thread, by noisegen and by sentence-transformers.
"""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measure import ROWS, Result, Target, best, cpu, report

SENTENCES, FEWER = 20_000, 20  # MiniLM encodes a twentieth of the sentences
AIM = Target(">=", 50)


def results(rows: int) -> Iterator[Result]:
    """Compare sentences per CPU second; the ratio is the static student's over MiniLM's."""
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    import torch
    from sentence_transformers import SentenceTransformer

    from noisegen import noise
    from noisegen.demo.quickstart import demo_texts
    from noisegen.encoders.encoder import open_encoder
    from noisegen.encoders.folders import minilm_folder, save_folder
    from noisegen.encoders.static import static_form

    torch.set_num_threads(1)
    count = max(1_000, int(SENTENCES * min(1, rows / ROWS)))
    clean = demo_texts().training
    texts = [text for seed in range(count // len(clean) + 1) for text in noise(clean, seed=seed)]
    many, few = texts[:count], texts[: max(1, count // FEWER)]
    minilm = open_encoder("minilm")
    with tempfile.TemporaryDirectory(prefix="noisegen-bench-") as folder:
        save_folder(static_form(minilm).student, Path(folder))
        static = open_encoder(folder)
        small = SentenceTransformer(folder, device="cpu").float()
        large = SentenceTransformer(str(minilm_folder()), device="cpu")
        for name, ours, theirs in (
            ("noisegen", static.encode, minilm.encode),
            ("sentence-transformers", small.encode, large.encode),
        ):
            jobs = {
                "static": cpu(lambda encode=ours: encode(many)),
                "minilm": cpu(lambda encode=theirs: encode(few)),
            }
            seconds = best(jobs)
            yield Result(
                f"static student in {name}",
                len(many) / seconds["static"],
                len(few) / seconds["minilm"],
                "sentences/CPU s",
                "MiniLM",
                AIM,
            )


if __name__ == "__main__":
    report(results)
