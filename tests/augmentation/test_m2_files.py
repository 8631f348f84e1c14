"""M2 files: pairs as noisy sentences with edits, which M2 readers turn back into the pairs."""

import csv
import gzip
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from runs import DEMO, augment, noisy_of

from noisegen.cli import run
from noisegen.data.formats.base import NoisyRow
from noisegen.data.formats.m2 import M2, reason_against
from noisegen.data.m2 import NO_CONTROLS, m2_sentences
from noisegen.data.pairs import read_pairs
from noisegen.data.rows import Columns
from noisegen.errors import UsageError
from noisegen.noising.recipe import recipe_names
from noisegen.testing import ODD_TEXTS

ODD = [
    *ODD_TEXTS,
    "a || b",
    "say -NONE- now",
    "S 1",
    "A 1 2|||x",
    "a|b",
    "\x1c x\x01y\tz\n\nb\u2028c",
]


def plain(text):
    """Return the tokens that M2 can hold, joined by spaces."""
    return " ".join(" ".join(text.split()).translate(NO_CONTROLS).split())


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """JSON lines with sentences of many languages, and odd texts between."""
    with DEMO.open(encoding="utf-8", newline="") as file:
        texts = [row["text"] for row in csv.DictReader(file, delimiter="\t")]
    path = tmp_path_factory.mktemp("m2") / "in.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in [*texts, *ODD]))
    return path, [*texts, *ODD]


@pytest.mark.parametrize("recipe", recipe_names())
def test_pairs_are_read_back_as_they_were_noised(source, tmp_path, recipe):
    path, texts = source
    made = augment(path, tmp_path / "out.m2", recipe=recipe)
    augment(path, tmp_path / "shards", recipe=recipe)

    fit = [not reason_against(text) for text in texts]
    noisy = noisy_of(tmp_path / "shards").values()
    wanted = [
        (plain(n), plain(c)) for n, c, is_fit in zip(noisy, texts, fit, strict=True) if is_fit
    ]
    read = read_pairs([str(tmp_path / "out.m2")])
    assert list(zip(read.noisy, read.clean, strict=True)) == wanted
    assert read.damaged == []
    assert sum(made.totals["dropped"].values()) == fit.count(False)


@given(st.data())
def test_any_edits_are_read_back(data):
    words = st.lists(st.sampled_from(["a", "bc", " ", "  ", "\n", "|", "é", "\u00a0", "\x02"]))
    clean = "x" + "".join(data.draw(words))
    ends = sorted(data.draw(st.lists(st.integers(0, len(clean)), max_size=8)))
    noisy, at, edits = "", 0, []
    for start, stop in zip(ends[::2], ends[1::2], strict=False):
        noisy += clean[at:start]
        begin, at = len(noisy), stop
        noisy += "".join(data.draw(words))
        span = {"clean_start": start, "clean_end": stop, "noisy_start": begin}
        edits.append({**span, "noisy_end": len(noisy), "transform": "fing"})
    noisy += clean[at:]
    if reason_against(clean):
        return
    pair = {"clean": clean, "noisy": noisy, "edits": edits}
    block = M2.writer.line(NoisyRow({}, Columns(), (), None, pair=pair))
    [sentence] = m2_sentences(enumerate(block.splitlines(), 1))

    assert " ".join(sentence.tokens) == plain(noisy)
    assert sentence.corrected() == [plain(clean)]
    assert sentence.damaged == []


def test_an_edit_names_its_operation_and_transform(tmp_path):
    (tmp_path / "a.txt").write_text("I could have known it .\nIt is a lot of work .\n")

    noise = ["drop:article_rate=0.9,subject_rate=0.9", "spac:add_rate=0.1,drop_rate=0.2", "intj"]
    augment(tmp_path / "a.txt", tmp_path / "a.m2.gz", transforms=noise, seed=1)

    text = gzip.decompress((tmp_path / "a.m2.gz").read_bytes()).decode()
    assert text == (
        "S Could have kn ow n it .\n"
        "A 0 1|||R:drop|||I could|||REQUIRED|||-NONE-|||0\n"
        "A 2 5|||R:spac|||known|||REQUIRED|||-NONE-|||0\n\n"
        "S Wtf. Is a lot of work . lmao\n"
        "A 0 2|||R:drop+intj|||It is|||REQUIRED|||-NONE-|||0\n"
        "A 7 8|||U:intj|||-NONE-|||REQUIRED|||-NONE-|||0\n\n"
    )


def test_what_m2_cannot_hold_is_left_out_and_counted(tmp_path, capfd):
    (tmp_path / "a.txt").write_text("See you there.\n\n \na || b\n")

    assert run(["augment", str(tmp_path / "a.txt"), "-o", "-", "--to", "m2", "-t", "week"]) == 3

    shown = capfd.readouterr()
    noop = "A -1 -1|||noop|||-NONE-|||REQUIRED|||-NONE-|||0"
    assert shown.out == f"S See you there.\n{noop}\n\n"
    assert "left out: no_tokens 2, not_m2 1" in shown.err
    with pytest.raises(UsageError, match="m2 has no column for --copies"):
        augment(tmp_path / "a.txt", tmp_path / "b.m2", copies=2)


def test_lists_of_tokens_are_written_as_sentences(tmp_path):
    row = {"tokens": ["See", "you", "tomorrow", "there"], "tags": ["O", "O", "O", "O"]}
    (tmp_path / "a.jsonl").write_text(json.dumps(row) + "\n")

    given = {"tokens": "tokens", "labels": "tags", "transforms": ["fing:rate=0.5"]}
    augment(tmp_path / "a.jsonl", tmp_path / "a.m2", **given)

    read = read_pairs([str(tmp_path / "a.m2")])
    assert read.clean == ["See you tomorrow there"]
    assert read.noisy != read.clean
