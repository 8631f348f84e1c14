"""`normalize` on posts whose words people normalised: `python -m benchmarks.normalization LANG...`.

MultiLexNorm2, its dev parts; da, es, it and tr have none, so the last fifth of their train part is
held out. The measure is theirs: the error reduction rate, 100 times the errors of the given text
less those of the result, over the errors of the given text, by tokens with their case. Leaving the
text as it is has 0. Rows of the table:

- MFR: each token becomes the normal form that it had most often in the train part, as in the
  baseline of MultiLexNorm;
- lists: `normalize` without data of the task;
- clean: `normalize --clean` with the normal forms of the train part alone, without pairs;
- pairs: `normalize --pairs` with the train part.
"""

import argparse
import csv
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import noisegen
from benchmarks.real_pairs import post_tokens
from noisegen.text.moves import Edit

LANGS = ("da", "de", "en", "es", "hr", "id", "it", "nl", "sl", "sr", "tr", "vi")
WITHOUT_DEV = ("da", "es", "it", "tr")
Post = tuple[list[str], list[str]]  # tokens, and the normal form of each


def parts(lang: str) -> tuple[list[Post], list[Post]]:
    """Return the posts to learn from, and the posts to judge by."""
    train = list(post_tokens(lang, "train"))
    if lang in WITHOUT_DEV:
        cut = len(train) * 4 // 5
        return train[:cut], train[cut:]
    return train, list(post_tokens(lang, "dev"))


def most_frequent(train: Sequence[Post], posts: Sequence[Post]) -> list[list[str]]:
    """Return the tokens of posts, each as the train part has it most often."""
    counts = defaultdict[str, Counter[str]](Counter)
    for tokens, normal in train:
        for token, form in zip(tokens, normal, strict=True):
            counts[token][form] += 1
    best = {token: forms.most_common(1)[0][0] for token, forms in counts.items()}
    return [[best.get(token, token) for token in tokens] for tokens, _ in posts]


def by_token(tokens: Sequence[str], text: str, edits: Sequence[Edit]) -> list[str]:
    """Return what became of each token of ' '.join(tokens), of which edits made `text`.

    An edit of several tokens gives each its own word, if there are as many, else all to the first.
    """
    ends = list(accumulate(len(token) + 1 for token in tokens))
    starts, result = [0, *ends], list(tokens)
    given = " ".join(tokens)
    for edit in edits:
        start, stop = edit.clean_start, edit.clean_end
        hit = [n for n in range(len(tokens)) if starts[n] < stop and start < ends[n] - 1]
        if not hit:
            continue
        first, last = starts[hit[0]], ends[hit[-1]] - 1
        form = given[first:start] + text[edit.noisy_start : edit.noisy_end] + given[stop:last]
        words = form.split()
        if len(words) != len(hit):
            words = [form, *[""] * (len(hit) - 1)]
        for number, word in zip(hit, words, strict=True):
            result[number] = word
    return result


def normalized(lang: str, posts: Sequence[Post], **options: Any) -> list[list[str]]:
    """Return the tokens of posts after `normalize`."""
    texts = [" ".join(tokens) for tokens, _ in posts]
    made = noisegen.normalize(texts, lang, words_only=True, edits=True, **options)
    return [
        by_token(tokens, one.text, one.edits) for (tokens, _), one in zip(posts, made, strict=True)
    ]


def reduction(posts: Sequence[Post], results: Sequence[Sequence[str]]) -> float:
    """Return the error reduction rate of results, in per cent."""
    rows = [
        row
        for (tokens, normal), result in zip(posts, results, strict=True)
        for row in zip(tokens, normal, result, strict=True)
    ]
    before = sum(token != form for token, form, _ in rows)
    after = sum(made != form for _, form, made in rows)
    return 100 * (before - after) / before


def measured(lang: str, folder: Path) -> tuple[float, float, float, float]:
    """Return the rates of a language: most frequent, lists, clean text, pairs."""
    train, posts = parts(lang)
    pairs, clean = folder / f"{lang}.csv", folder / f"{lang}.txt"
    sides = [(" ".join(tokens), " ".join(filter(None, normal))) for tokens, normal in train]
    with pairs.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(("noisy", "clean"))
        table.writerows(sides)
    clean.write_text("\n".join(normal for _, normal in sides), "utf-8")
    results = (
        most_frequent(train, posts),
        normalized(lang, posts),
        normalized(lang, posts, clean=str(clean)),
        normalized(lang, posts, pairs=str(pairs)),
    )
    mfr, lists, of_clean, of_pairs = (reduction(posts, result) for result in results)
    return mfr, lists, of_clean, of_pairs


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table: a line per language, and the means."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("langs", nargs="*", default=LANGS)
    langs = parser.parse_args(arguments).langs
    print("| | MFR | lists | clean | pairs |\n|---|---:|---:|---:|---:|")
    found = []
    with TemporaryDirectory() as folder:
        for lang in langs:
            found.append(measured(lang, Path(folder)))
            print(
                f"| {lang} | " + " | ".join(f"{rate:.1f}" for rate in found[-1]) + " |", flush=True
            )
    means = (sum(column) / len(found) for column in zip(*found, strict=True))
    print("| mean | " + " | ".join(f"{mean:.1f}" for mean in means) + " |")


if __name__ == "__main__":
    main()
