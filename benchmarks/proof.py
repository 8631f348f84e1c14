"""All tables of docs/proof.md: `python -m benchmarks.proof -o DIR` (`make proof`).

Writes the training texts, trains students of `robust-minilm` and `robust-static`, and runs
`which_noise` without and with words as tokens, `which_noise_languages`, `beside`, `retrieval` and
`rankings`. Finished steps are skipped; other rows or minutes are measured anew, another text needs
another DIR. With the defaults it takes about eight CPU hours, with `--seeds 1 --rows 200` two and a
half.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

from benchmarks.development import SETS, TWEETS
from benchmarks.natural_noise import ROWS

STATIC_SHARE = 0.5  # of the minutes of a student of robust-minilm


def run(module: str, *arguments: object) -> None:
    """Run a module of Python on one thread a process; raises CalledProcessError."""
    print("python -m", module, *arguments, flush=True)
    subprocess.run(
        [sys.executable, "-m", module, *map(str, arguments)],
        check=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


def train(text: Path, out: Path, preset: str, minutes: float) -> Path:
    """Return the folder of a student, which is trained if it is not there."""
    if not (out / "metrics.json").exists():
        limits = ["--set", f"cpu_limit={60 * minutes:g}s", "--set", "precision=fp32"]
        run("noisegen", "train", text, "-o", out, "--preset", preset, "--force", "--quiet", *limits)
    return out / "student"


def main() -> None:
    """Read the arguments and run the steps."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--text", type=Path, help="clean sentences (default: natural_text's)")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--minutes", type=float, default=4, help="CPU time of each training")
    parser.add_argument("--jobs", type=int, default=2, help="trainings at once, a core each")
    parser.add_argument("--rows", type=int, default=ROWS, help="most rows of a set")
    given = parser.parse_args()
    out: Path = given.out / f"{given.minutes:g}m"  # what depends on the minutes
    out.mkdir(parents=True, exist_ok=True)
    text = given.text or given.out / "text.txt"
    if given.text and not text.exists():
        parser.error(f"there is no file {text}")
    if not text.exists():
        part = text.with_suffix(".part")
        run("benchmarks.natural_text", part)
        part.replace(text)
    rows = ["--rows", given.rows]
    each = ["--seeds", given.seeds, "--minutes", given.minutes, "--jobs", given.jobs]
    noise = ["benchmarks.which_noise", text, "-o", given.out / "which_noise", *each, *rows]
    run(*noise)
    run(*noise, "--words")
    if TWEETS in SETS:
        texts = given.out / "languages"
        if not texts.exists():
            part = texts.with_suffix(".part")
            run("benchmarks.multilingual_text", part)
            part.replace(texts)
        languages = ["benchmarks.which_noise_languages", texts, "-o", given.out / "which_languages"]
        run(*languages, "--minutes", given.minutes)
    robust = train(text, out / "robust-minilm", "robust-minilm", given.minutes)
    static = train(text, out / "robust-static", "robust-static", STATIC_SHARE * given.minutes)
    models = [f"robust-minilm={robust}", f"robust-static={static}"]
    run("benchmarks.beside", *models, "-o", out / "beside", *rows)
    run("benchmarks.rankings", *models, "-o", out / "rankings", *rows)
    retrieval = out / f"retrieval-{given.rows}"
    if not (retrieval / "report" / "results.json").exists():
        run("benchmarks.retrieval", models[0], "--baseline", "minilm", "-o", retrieval, *rows)


if __name__ == "__main__":
    main()
