"""The commands of each paper's presets, as `noisegen train --list` shows them, on small files.

A command is taken from its preset and run by the command line; only names of files and models are
put in, and options that make a run short are added behind it.
"""

import csv
import json
import re
import shlex
import sys
from importlib import import_module
from pathlib import Path

import made_tasks
import pytest
from models import character_bert, laser2_checkpoint, laser2_pieces

import noisegen
from noisegen.cli import run
from noisegen.evaluation.sets import ROLASER
from noisegen.training.settings import read_preset

sys.path.append(str(Path(__file__).parents[1] / "mining"))
from exports import export, page

pytestmark = pytest.mark.nightly


def columns(head, *cells):
    rows = zip(*cells, strict=True)
    return ["\t".join(head.split()), *("\t".join(map(str, row)) for row in rows)]


@pytest.fixture
def folder(tmp_path, monkeypatch, sentences, pairs_file, tiny_models):
    """A folder with a file of each name that commands have."""
    monkeypatch.chdir(tmp_path)
    texts = sentences[:60]
    noisy = [noisegen.noise(text, "ugc", seed=3, id=row) for row, text in enumerate(texts)]
    switched = [noisegen.noise(text, "codeswitch:into=de", seed=1, id=text) for text in texts]
    moved = str.maketrans("aeiou", "eioua")  # another language
    other = [text.translate(moved) for text in sentences]
    lines = {
        "TEXT.txt": sentences,
        "FLORES.txt": texts[:8],
        "RAW.en": noisy,
        "NORM.en": texts,
        **{f"REF.{lang}": other[:60] for lang in ("cs", "de", "fr", "ru", "uk")},
        "LINES.de": other[:60],
        "LINES.en": texts,
        "BITEXT.tsv": columns("en de", sentences[:150], other[:150]),
        "TATOEBA.tsv": columns("en de", texts, other[:60]),
        "TED.tsv": columns("en de", texts, other[:60]),
        "SWITCHED.tsv": columns("en de", switched, other[:60]),
        "STS.tsv": columns("sentence1 sentence2 score", texts, noisy, [*range(5)] * 12),
        "TWEETS.tsv": columns("text label", texts, [0, 1] * 30),
        "TWEETS_TRAIN.tsv": columns("text label", sentences[60:120], [0, 1] * 30),
        "TWEET_PAIRS.tsv": columns("sentence1 sentence2 label", texts, noisy, [0, 1] * 30),
    }
    for name, content in lines.items():
        Path(name).write_text("\n".join(content) + "\n", "utf-8")
    Path("PAIRS.tsv").write_text(pairs_file.read_text("utf-8"), "utf-8")
    return tmp_path


def made(command, places, *more):
    """Run a command with its names replaced, and more options behind it."""
    names = "|".join(sorted(map(re.escape, places), key=len, reverse=True))
    line = re.sub(rf"(?<![\w.-])({names})(?![\w-])", lambda found: str(places[found[1]]), command)
    program, *words = shlex.split(line)
    if program == "python":
        module = import_module(words[1])
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", words[1:])
            module.main()
        return
    assert program == "noisegen"
    assert run([*words, *more, "--quiet"]) == 0, line


def figures(report):
    """Return {(model, dataset): metrics} of metrics.csv."""
    found: dict[tuple[str, str], set[str]] = {}
    lines = Path(report, "metrics.csv").read_text("utf-8").splitlines()
    for row in csv.DictReader(lines):
        assert row["value"] not in ("", "nan")
        dataset = row.get("dataset") or f"{row['lang']} {row['side']}"
        found.setdefault((row["model"], dataset), set()).add(row["metric"])
    return found


@pytest.fixture
def laser(folder, sentences):
    """The folder of a small LASER2, in the folder of files."""
    import torch

    pieces = laser2_pieces(folder, sentences)
    Path("laser").mkdir()
    torch.save(laser2_checkpoint(pieces[1], 8, 8, 2), "laser/laser2.pt")
    Path("laser/laser2.spm").write_bytes(pieces[0])
    return "laser"


def test_rolaser(folder, laser, tiny_models):
    character_bert(folder / "cb", pickled=True)
    lines = Path("FLORES.txt").read_text("utf-8").splitlines()
    altered = {f"{text} Not.": {"src": text, "errtype": "Causality"} for text in lines}
    Path("ERRTYPE_errtype.json").write_text(json.dumps(altered))
    Path("ERRTYPE_augmented").write_text("\n".join(altered) + "\n")
    places = {
        "TEXT": "TEXT.txt",
        "FOLDER": laser,
        "char:FOLDER": "char:cb",
        "PAIRS": "PAIRS.tsv",
        "FLORES": "FLORES.txt",
        "FLORES,LANGUAGES": "NORM.en,REF.??",
        "ERRTYPE": "ERRTYPE_errtype.json",
        "STS": "STS.tsv",
        "TWEETS": "TWEETS.tsv",
        "TWEETS_TRAIN": "TWEETS_TRAIN.tsv",
        "TWEET_PAIRS": "TWEET_PAIRS.tsv",
    }
    short = ("--steps", "3", "--set", "max_length=40", "--set", "batch_tokens=512")
    tables = read_preset("rolaser").tables
    made(read_preset("rolaser").command, places, "--student", str(tiny_models()), *short)
    made(read_preset("c-rolaser").command, places, *short)
    for command in tables.values():
        few = ("--seeds", "2") if "--source" in command else ()
        made(command, places, *few)

    natural = figures("table4")
    base, *students = models = list(dict.fromkeys(model for model, _ in natural))
    assert students == ["RoLASER", "c-RoLASER"]
    assert all({"distance", "xsim_error"} <= natural[model, "PAIRS"] for model in models)
    assert {"tokens_clean", "tokens_noisy", "ttr_clean", "ttr_ratio"} <= natural[base, "PAIRS"]
    kinds = figures("table5")
    assert {*kinds} == {(model, kind) for model in models for kind in (*ROLASER, "rolaser")}
    for (model, _), metrics in kinds.items():
        assert {"distance", "xsim_error", "xsim_hard_error"} <= metrics
        assert model == base or "drift" in metrics  # Table 7
    translations = figures("table6")
    assert {*translations} == {(model, name) for model in models for name in ("ugc", "std")}
    assert all({"xsim_error", "xsim_error_reverse"} <= found for found in translations.values())
    languages = figures("languages")
    assert len({name for _, name in languages}) == 5
    drawn = Path("figures/figures.html").read_text("utf-8")
    assert all(f"Figure {number}: " in drawn for number in (4, 5, 6))
    assert "Spearman" in Path("figure2.html").read_text("utf-8")
    assert "transforms" in Path("figure3.html").read_text("utf-8")
    for model in models:
        assert "sts_clean" in figures("table8")[model, "STS"]
        assert "accuracy_clean" in figures("table8")[model, "TWEETS"]
        assert "average_precision_clean" in figures("table8")[model, "TWEET_PAIRS"]


def test_rolaser_v2(folder, laser, tiny_models):
    preset = read_preset("rolaser-v2")
    places = {"FOLDER": laser, "PAIRS": "PAIRS.tsv", "BITEXT": "BITEXT.tsv", "fr": "de"}
    made(preset.command, places, "--student", str(tiny_models()), "--steps", "3")
    for command in preset.tables.values():
        made(command, places)

    modules = json.loads(Path("run/student/modules.json").read_text("utf-8"))
    assert [one["type"].rpartition(".")[2] for one in modules][1:] == ["Pooling", "Dense"]
    dense = json.loads(Path("run/student/2_Dense/config.json").read_text("utf-8"))
    assert dense["activation_function"] == "torch.nn.modules.activation.GELU"
    assert not Path("run/student/preparation.json").exists()  # it reads text as it is
    assert {"distance", "xsim_error"} <= figures("natural")["RoLASER-v2", "PAIRS"]
    assert "accuracy_forward" in figures("translations")["RoLASER-v2", "BITEXT"]


def test_rcp(folder, tiny_models):
    places = {
        "PAIRS": "PAIRS.tsv",
        "hf:FacebookAI/xlm-roberta-base": tiny_models(),
        "SNIPS": made_tasks.snips_file(folder),
        "FILE": made_tasks.slots_file(folder),
        "WIKIANN": made_tasks.wikiann_file(folder, "en.conll", "en"),
        "CLEAN": made_tasks.wikiann_file(folder, "clean.conll", "es"),
        "NOISY": made_tasks.wikiann_file(folder, "noisy.conll", "es"),
        "MULTINLI": made_tasks.nli_file(folder, "en.tsv"),
        "XNLI": made_tasks.nli_file(folder, "es1.tsv"),
        "NOISY_XNLI": made_tasks.nli_file(folder, "es2.tsv"),
        "DUMP": "dump.xml",
        "REVIEW": "es.review",
    }
    old, new = "El zorro maron salta sobre el perro.", "El zorro marrón salta sobre el perro."
    pages = [page(number, [f"Uno.\n{old}", f"Uno.\n{new}"]) for number in range(1, 5)]
    Path("dump.xml").write_bytes(export(*pages, lang="es"))
    short = ("--steps", "2", "--set", f"student={tiny_models()}", "--set", "batch_pairs=8")
    for name in ("rcp", "rcp-aug"):
        made(read_preset(name).command, places, *short)
    make = "review make TEXT.txt --lang es --recipe fing --strengths 0.1 -o es.review --quiet"
    assert run(make.split()) == 0
    *tasks, dictionaries, kinds = read_preset("rcp").tables.values()
    for command in tasks:
        made(command, places, "--epochs", "1", "--seeds", "2")
    made(dictionaries, places, "--min-pages", "1")
    made(kinds, places)
    assert "0 of 15 rows judged" in Path("figure2.html").read_text("utf-8")

    columns = {"XLM-R", "aug", "RCP"}
    sides = {"es clean", "es noisy", "es change"}
    for report, metrics in (
        ("slots", {"intent_accuracy", "slot_f1"}),
        ("names", {"ner_f1"}),
        ("inference", {"accuracy"}),
    ):
        found = figures(report)
        plus_t = {f"{name}+t" for name in columns} if report == "slots" else set()
        assert {model for model, _ in found} == columns | plus_t
        assert {dataset for _, dataset in found} == sides
        assert all(metrics <= metrics_of for metrics_of in found.values())
    for name in ("classes.csv", "confusion.csv"):
        assert len(Path("slots", name).read_text("utf-8").splitlines()) > 1
    drawn = Path("slots/report.html").read_text("utf-8")
    assert "Classes won and lost" in drawn  # Figure 4
    assert "slot F1, counts over all seeds" in drawn  # Table 7
    mined = Path("mined/dictionary.tsv").read_text("utf-8").splitlines()
    assert ["marrón", "maron"] in [row.split("\t")[1:3] for row in mined]


def test_ct_xlmr_se(folder, tiny_models):
    places = {
        "BITEXT": "BITEXT.tsv",
        "TWEETS": "TWEETS.tsv",
        "TED": "TED.tsv",
        "minilm": tiny_models(),
        "e5": tiny_models(seed=1),
        "hf:FacebookAI/xlm-roberta-base": tiny_models(seed=2),
        "hf:google-bert/bert-base-multilingual-cased": tiny_models(seed=3),
    }
    made(
        read_preset("ct").command,
        places,
        "--teacher",
        str(tiny_models()),
        "--student",
        str(tiny_models(seed=1)),
        "--steps",
        "2",
        "--set",
        "batch_tokens=512",
    )
    commands = [one for one in read_preset("ct").tables.values() if one.startswith("noisegen")]
    for command in commands:
        made(command, places)

    for report, dataset, metrics in (
        ("table2", "TWEETS", {"class_similarity"}),
        ("table3", "TWEETS", {"class_similarity"}),
        ("table4", "TED", {"accuracy_forward", "accuracy_backward", "accuracy_both"}),
        ("table6", "LINES.de", {"distance"}),
    ):
        found = figures(report)
        assert len(found) == 2
        assert all(metrics <= found[model, dataset] for model, _ in found)
        means = Path(report, "means.csv").read_text("utf-8")
        assert all(f",{metric}," in means for metric in metrics)


def test_oracle(folder, tiny_models):
    places = {
        "BITEXT": "BITEXT.tsv",
        "TATOEBA": "TATOEBA.tsv",
        "SWITCHED": "SWITCHED.tsv",
        "STS": "STS.tsv",
        "SPEC": tiny_models(),
    }
    made(read_preset("oracle").command, places, "--steps", "5", "--set", "batch_pairs=32")
    for command in read_preset("oracle").tables.values():
        short = (
            ("--steps", "5", "--set", "batch_pairs=32", "--force") if " train " in command else ()
        )
        if "oracle_tables" not in command:  # trains on Tatoeba
            made(command, places, *short)

    assert "by t-SNE" in Path("run/vectors.html").read_text("utf-8")  # Figures 1 and 5
    drawn = Path("figures/figures.html").read_text("utf-8")
    assert all(f"Figure {number}: " in drawn for number in (3, 4, 6))
    ways = {"accuracy_forward", "accuracy_backward"}
    for report, datasets, metrics in (
        ("table3", {"TATOEBA"}, ways),
        ("table10", {"STS"}, {"sts_clean"}),
        ("table11", {"switched"}, ways),
    ):
        found = figures(report)
        assert {dataset for _, dataset in found} == datasets
        assert {"meaning", "language"} < {model for model, _ in found}
        assert all(metrics <= metrics_of for metrics_of in found.values())
