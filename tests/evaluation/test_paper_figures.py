"""Rows and figures of the papers, from reports of `evaluate` and against plain arithmetic."""

import csv
import json
import re
import sys
from statistics import fmean, median

import numpy as np
import pytest

from benchmarks import paper_figures, rolaser_map
from noisegen.encoders.encoder import open_encoder
from noisegen.evaluation.evaluate import evaluate

LANGS = ("de", "fr", "hi", "pl", "id")  # two of Tatoeba-14, seen; one unseen; none; of the 36 alone


@pytest.fixture(scope="module")
def texts(demo):
    return [row["text"] for row in demo if row["lang"] == "en"][:30]


@pytest.fixture(scope="module")
def files(tmp_path_factory, texts):
    """Made translations, whose letters are moved, and scores of similarity."""
    folder = tmp_path_factory.mktemp("sets")
    (folder / "v1").mkdir()
    for number, lang in enumerate(LANGS):
        moved = str.maketrans("aeiou", ("eioua", "ioeua", "uoaie", "oeuai", "uaoei")[number])
        lines = "\n".join(text.translate(moved) for text in texts) + "\n"
        (folder / "v1" / f"v1.{lang}-en.{lang}").write_text(lines, "utf-8")
        (folder / "v1" / f"v1.{lang}-en.en").write_text("\n".join(texts) + "\n", "utf-8")
    (folder / "sts").mkdir()
    for name in ("STS.en-en", "STS.en-de", "STS.en-pl"):
        rows = [
            f"{a}\t{b}\t{n % 5}" for n, (a, b) in enumerate(zip(texts, texts[::-1], strict=True))
        ]
        head = "sentence1\tsentence2\tscore"
        (folder / "sts" / f"{name}.tsv").write_text("\n".join([head, *rows]) + "\n", "utf-8")
    return folder


@pytest.fixture(scope="module")
def models(tiny_models):
    return {"LASER": tiny_models(), "RoLASER": tiny_models(seed=1)}


def report(out, models, **given):
    named = [f"{name}={spec}" for name, spec in models.items()]
    found = evaluate(named[1:], str(out), named[0].partition("=")[2], seeds=2, hard=False, **given)
    return found.metrics(), next(model.name for model in found.models)


def rows_of(paper, out, *reports, monkeypatch):
    argv = ["x", paper, *map(str, reports), "-o", str(out)]
    monkeypatch.setattr(sys, "argv", argv)
    paper_figures.main()
    with (out / "rows.csv").open(encoding="utf-8") as file:
        rows = {tuple(row[:3]): (float(row[3]), int(row[4])) for row in list(csv.reader(file))[1:]}
    return rows, (out / "figures.html").read_text("utf-8")


def test_rows_of_rolaser(tmp_path, models, texts, files, monkeypatch):
    (tmp_path / "clean.txt").write_text("\n".join(texts) + "\n", "utf-8")
    found, base = report(
        tmp_path / "a",
        models,
        source=[str(tmp_path / "clean.txt")],
        transforms=("leet", "fing"),
        retrieval=[str(files / "v1")],
    )
    rows, page = rows_of("rolaser", tmp_path / "figures", tmp_path / "a", monkeypatch=monkeypatch)

    for noise in ("leet", "fing"):
        ours, theirs = found["RoLASER"][noise], found[base][noise]
        assert rows["improv. x, distance", noise, "RoLASER"][0] == pytest.approx(
            theirs["distance"] / ours["distance"]
        )
        tokens = theirs["tokens_noisy"] / theirs["tokens_clean"]
        assert rows["Figure 4", noise, "tokens"][0] == pytest.approx(tokens)
        assert rows["Figure 4", noise, "types"][0] == pytest.approx(tokens * theirs["ttr_ratio"])
    errors = [v["xsim_error_reverse"] for name, v in found["RoLASER"].items() if "-en" in name]
    assert rows["Figure 6: En→XX", "median", "RoLASER"] == (median(errors), len(LANGS))
    assert rows["Figure 6: En→XX", "maximum", "RoLASER"][0] == max(errors)
    assert all(f"Figure {number}: " in page for number in (4, 5, 6))


def test_rows_of_oracle(tmp_path, models, files, monkeypatch):
    sts = [str(path) for path in sorted(files.glob("sts/*"))]
    switched = f"switched={files}/v1/v1.de-en"
    found, _ = report(tmp_path / "a", models, retrieval=[str(files / "v1"), switched], sts=sts)
    rows, page = rows_of("oracle", tmp_path / "figures", tmp_path / "a", monkeypatch=monkeypatch)

    ours = found["RoLASER"]
    backward = {  # English is the target side: the way back is En→XX
        lang: next(v for name, v in ours.items() if name.endswith(f"{lang}-en") and name[0] != "s")
        for lang in LANGS
    }
    for group, langs in (
        ("Tatoeba-14", ("de", "fr", "hi")),
        ("Tatoeba-36", ("de", "fr", "hi", "id")),
        ("seen", ("de", "fr")),
        ("unseen", ("hi", "pl", "id")),
        ("all", LANGS),
    ):
        for way, metric in (("En→XX", "accuracy_backward"), ("XX→En", "accuracy_forward")):
            mean = fmean(backward[lang][metric] for lang in langs)
            assert rows["Table 3", f"{group}, {way}", "RoLASER"] == (
                pytest.approx(mean),
                len(langs),
            )
    assert rows["Table 11", "all, XX→En", "RoLASER"][1] == 1
    similar = {name: v["sts_clean"] for name, v in ours.items() if name.startswith("STS")}
    assert len(similar) == 3
    assert rows["Table 10", "within languages", "RoLASER"][0] == similar["STS.en-en"]
    assert rows["Table 10", "across languages", "RoLASER"][1] == 2
    assert rows["Table 10", "unseen", "RoLASER"][0] == similar["STS.en-pl"]
    assert sum(where == "Figures 7 to 16" for where, *_ in rows) == 2 * 2 * (len(LANGS) + 1)
    assert all(f"Figure {number}" in page for number in (3, 4, 6))


def test_the_map_has_sentences_and_translations_in_one_plane(
    tmp_path, models, texts, files, monkeypatch, capsys
):
    (tmp_path / "noisy").write_text("\n".join(text.lower() for text in texts), "utf-8")
    (tmp_path / "clean").write_text("\n".join(texts), "utf-8")
    argv = [
        "x",
        str(tmp_path / "noisy"),
        str(tmp_path / "clean"),
        str(files / "v1" / "v1.de-en.de"),
    ]
    argv += ["--teacher", str(models["LASER"]), "--student", f"RoLASER={models['RoLASER']}"]
    monkeypatch.setattr(sys, "argv", [*argv, "--rows", "0", "5", "-o", str(tmp_path / "m.html")])
    rolaser_map.main()
    found = json.loads(capsys.readouterr().out)

    assert found["groups"] == [
        *("teacher clean", "teacher noisy", "teacher v1.de-en.de"),
        *("RoLASER clean", "RoLASER noisy"),
    ]
    page = (tmp_path / "m.html").read_text("utf-8")
    assert len(re.findall(r'<circle fill="none"', page)) == 2 * len(found["groups"])
    from sklearn.decomposition import PCA

    sides = [
        texts,
        [text.lower() for text in texts],
        (files / "v1" / "v1.de-en.de").read_text().split("\n")[:-1],
    ]
    vectors = [open_encoder(str(models["LASER"])).encode(side) for side in sides]
    vectors += [open_encoder(str(models["RoLASER"])).encode(side) for side in sides[:2]]
    units = [side / np.linalg.norm(side, axis=1)[:, None] for side in vectors]
    groups = dict(zip(found["groups"], units, strict=True))
    points, correlation = rolaser_map.projected(groups)
    wanted = PCA(2).fit_transform(np.concatenate(units))
    assert np.allclose(np.abs(np.concatenate(list(points.values()))), np.abs(wanted), atol=1e-4)
    assert correlation == pytest.approx(found["spearman"], abs=1e-4)
