"""A robust encoder: distil a student of MiniLM on your own clean text, and report its gains.

    pip install 'noisegen[train]'
    python examples/robust_encoder.py news.txt out            # ten minutes; one sentence per line
    python examples/robust_encoder.py news.txt out 1h

Then open out/report/report.html, or the student: SentenceTransformer("out/run/student").
"""

import sys
from pathlib import Path

import noisegen

HELD_OUT = 10  # one sentence of so many is kept for the report


def main(text: str, out: Path, time_limit: str = "10m") -> None:
    """Split `text`, train in out/run and write out/report."""
    lines = [line for line in Path(text).read_text("utf-8").splitlines() if line.strip()]
    out.mkdir(parents=True, exist_ok=True)
    train, held_out = out / "train.txt", out / "held_out.txt"
    held_out.write_text("\n".join(lines[::HELD_OUT]) + "\n", "utf-8")
    train.write_text(
        "\n".join(line for number, line in enumerate(lines) if number % HELD_OUT) + "\n", "utf-8"
    )
    noisegen.train(
        str(train),
        str(out / "run"),
        teacher="minilm",
        recipe="ugc-heavy",
        time_limit=time_limit,
        values={"objective": "mse_sum+0.2*info_nce", "validation_rows": min(500, len(lines) // 10)},
        tell=print,
        force=True,
    )
    results = noisegen.evaluate(
        [f"student={out / 'run' / 'student'}"],
        str(out / "report"),
        baseline="minilm",
        source=[f"held-out={held_out}"],
        transforms=["ugc", "fing", "leet"],
        seeds=1,
        force=True,
    )
    for name in ("minilm", "student"):
        for dataset, scores in results.scores[name].items():
            print(
                f"{name:8} {dataset:24} distance of noisy to clean {scores['distance'].value:.4f}"
            )


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit(f"usage: {sys.argv[0]} TEXT OUT [TIME]")
    main(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:])
