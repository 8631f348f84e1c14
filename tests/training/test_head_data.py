"""DATA of heads: every form of bitext, noise as a language, and unusable data."""

import gzip
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import noisegen
from noisegen.errors import SourceError, UsageError
from noisegen.training.disentangle import prepare_labelled
from noisegen.training.settings import load_settings


def table(path: Path, *rows: str) -> Path:
    path.write_text("\n".join(rows) + "\n")
    return path


def read(folder, *data, **values):
    said = load_settings("oracle-small", None, values)
    return prepare_labelled(folder, [str(one) for one in data], said)


def test_languages_come_from_columns_settings_or_the_name(tmp_path):
    columns = table(
        tmp_path / "a.tsv",
        "source\ttarget\tsource_lang\ttarget_lang",
        "a b\tc d\ten\tdeu",
        "e\tf\teng\tfr",
    )
    named = table(tmp_path / "eng-cmn_Hans.tsv", "source\ttarget", "g\th", "i\tj")
    packed = tmp_path / "deu-eng.tsv.gz"
    packed.write_bytes(gzip.compress(named.read_bytes()))
    plain = table(tmp_path / "pairs.tsv", "source\ttarget", "g\th", "i\tj")

    assert read(tmp_path / "1", columns).names == ("en", "de", "fr")
    assert read(tmp_path / "2", columns, languages=["it", "pt"]).names == ("en", "de", "fr")
    assert read(tmp_path / "3", named).names == ("en", "zh")
    assert read(tmp_path / "4", packed).names == ("de", "en")
    assert read(tmp_path / "5", plain, languages=["en", "it"]).names == ("en", "it")
    assert read(tmp_path / "6", plain, languages=["English", "noise"]).names == ("English", "noise")
    assert read(tmp_path / "7", named, languages=["en", "it"]).names == ("en", "it")
    assert read(tmp_path / "8", f"en-it={plain}").names == ("en", "it")
    assert read(tmp_path / "9", f"en-it={plain}", languages=["fr", "de"]).names == ("en", "it")


def test_what_does_not_say_its_languages_is_refused_with_what_to_do(tmp_path):
    plain = table(tmp_path / "pairs.tsv", "source\ttarget", "g\th", "i\tj")
    bare = table(tmp_path / "bare.tsv", "g\th", "i\tj")
    for path, kind in ((plain, UsageError), (bare, SourceError)):
        with pytest.raises(kind, match=f"no.* languages.*de-en={path}"):
            read(tmp_path / "data", path)
    with pytest.raises(SourceError, match="no such file"):
        read(tmp_path / "data", tmp_path / "none.tsv")


def test_every_form_of_bitext_gives_the_same_pairs(tmp_path):
    sides = {"de": ["Ja.", "Nein.", "", "Oft."], "en": ["Yes.", "No.", "Empty.", "Often."]}
    for lang, lines in sides.items():
        (tmp_path / "moses").mkdir(exist_ok=True)
        table(tmp_path / f"moses/talks.de-en.{lang}", *lines)
    with zipfile.ZipFile(tmp_path / "de-en.txt.zip", "w") as packed:
        for path in (tmp_path / "moses").iterdir():
            packed.write(path, path.name)
    rows = ["\t".join(row) for row in zip(*sides.values(), strict=True)]
    forms = [
        f"{tmp_path}/moses/talks.de-en.de,{tmp_path}/moses/talks.de-en.en",
        tmp_path / "moses/talks.de-en",
        tmp_path / "moses",
        tmp_path / "de-en.txt.zip",
        table(tmp_path / "deu-eng.tsv", *rows),
        table(tmp_path / "any.tsv", "de\ten", *rows),
        table(tmp_path / "x.deu-eng.tsv", "source\ttarget", *rows),
        f"{tmp_path}/deu-*.tsv",
    ]
    for number, form in enumerate(forms):
        pairs = read(tmp_path / str(number), form)
        texts = pairs.texts.take(np.arange(len(pairs.texts))).to_pylist()
        found = [(texts[a], texts[b]) for a, b in pairs.sides]
        assert found == [("Ja.", "Yes."), ("Nein.", "No."), ("Oft.", "Often.")], form
        assert pairs.names == ("de", "en"), form
        assert pairs.dropped == {"empty_side": 1}, form


def test_every_text_is_kept_once_and_every_pair_finds_its_own(tmp_path):
    one = table(tmp_path / "en-de.tsv", "source\ttarget", "yes\tja", "no\tnein", "yes\tdoch")
    two = table(tmp_path / "en-fr.tsv", "source\ttarget", "no\tnon", "yes\toui", "\tvide", "a\t ")
    pairs = read(tmp_path / "data", one, two)
    texts = pairs.texts.take(np.arange(len(pairs.texts))).to_pylist()

    assert len(set(texts)) == len(texts) == 7
    found = [
        (texts[a], texts[b], pairs.names[x], pairs.names[y])
        for (a, b), (x, y) in zip(pairs.sides, pairs.labels, strict=True)
    ]
    assert found == [
        ("yes", "ja", "en", "de"),
        ("no", "nein", "en", "de"),
        ("yes", "doch", "en", "de"),
        ("no", "non", "en", "fr"),
        ("yes", "oui", "en", "fr"),
    ]
    assert pairs.dropped == {"empty_side": 2}


def test_noise_is_a_language_too(tmp_path, sentences):
    (tmp_path / "clean.txt").write_text("\n".join(sentences[:200]) + "\n")
    noisegen.augment(
        tmp_path / "clean.txt", tmp_path / "out", transforms=["fing:p=0.5", "leet:p=0.3"], seed=1
    )
    rows = pq.read_table(tmp_path / "out" / "data/part-00000.parquet").to_pylist()
    changed = [row for row in rows if row["noisy"] != row["clean"]]

    sides = read(tmp_path / "1", tmp_path / "out", labels="side")
    assert sides.names == ("noisy", "clean")
    assert len(sides) == len(changed)
    assert sides.dropped == {"same_sides": len(rows) - len(changed)}
    kinds = read(tmp_path / "2", tmp_path / "out", labels="transform")
    wanted = [one[0] if len(one) == 1 else "several" for one in (r["transforms"] for r in changed)]
    assert [kinds.names[label] for label in kinds.labels[:, 0]] == wanted
    assert {kinds.names[label] for label in kinds.labels[:, 1]} == {"clean"}


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (["a\tb", "c\td"], None),
        (["a\tb"], "every source is the same"),
        (["a\tb", "c\tb"], "every target is the same"),
        (["\tb"], "no rows"),
    ],
)
def test_pairs_that_cannot_be_told_apart_are_refused(tmp_path, rows, said):
    data = table(tmp_path / "en-de.tsv", "source\ttarget", *rows)
    if said is None:
        read(tmp_path / "data", data)
        return
    with pytest.raises(SourceError, match=said):
        read(tmp_path / "data", data)


def test_one_language_alone_is_refused(tmp_path):
    data = table(
        tmp_path / "a.tsv",
        "source\ttarget\tsource_lang\ttarget_lang",
        "a\tb\ten\ten",
        "c\td\ten\ten",
    )
    with pytest.raises(SourceError, match=r"no pairs to train on in .*\(2 same_language\)"):
        read(tmp_path / "data", data)


def test_names_of_transforms_need_output_of_augment(tmp_path):
    tsv = table(tmp_path / "a.tsv", "noisy\tclean\ttransforms", "a\tb\tfing")
    pq.write_table(
        pa.table({"noisy": ["a"], "clean": ["b"], "transforms": ["c"]}), tmp_path / "a.parquet"
    )
    for path in (tsv, tmp_path / "a.parquet"):
        with pytest.raises(SourceError, match="output of augment"):
            read(tmp_path / "data", path, labels="transform")
