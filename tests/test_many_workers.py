"""Every command that works in parts makes the same on eight workers of which two are killed."""

import bz2
import json
import random
import sys
from pathlib import Path

import pytest
from runs import contents, visible

import noisegen
from noisegen.mining import dumps, parallel
from noisegen.preparation import duplicates
from noisegen.preparation.prepare import prepare
from noisegen.realism import calibrate, compare, figures, learn

sys.path.append(str(Path(__file__).with_name("mining")))
from exports import export, page

pytestmark = pytest.mark.nightly


@pytest.fixture(scope="module")
def texts(tmp_path_factory, demo_texts):
    """12,000 sentences, of which a third are near an earlier one and some equal it."""
    rng = random.Random(7)
    words = [word for text in demo_texts[:100] for word in text.split() if word.isalpha()]
    rows = [" ".join(rng.choices(words, k=rng.randint(8, 20))) for _ in range(7_500)]
    rows += [row.replace("e", "a", 1) for row in rng.sample(rows, 4_000)] + rows[:500]
    rng.shuffle(rows)
    path = tmp_path_factory.mktemp("texts") / "raw.txt"
    path.write_text("".join(f"{row.capitalize()}.\n" for row in rows))
    return path


@pytest.fixture(scope="module")
def pairs(texts):
    """3,000 of these sentences with noise."""
    rows = texts.read_text().splitlines()[:3_000]
    noisy = noisegen.noise(rows, "ugc", seed=7)
    path = texts.with_name("pairs.tsv")
    lines = (f"{a}\t{b}\n" for a, b in zip(noisy, rows, strict=True))
    path.write_text("noisy\tclean\n" + "".join(lines))
    return path


def test_prepare(texts, tmp_path, eight_workers, monkeypatch):
    monkeypatch.setattr(duplicates, "RANGE", 10_000)  # so that its tasks are many
    monkeypatch.setattr(duplicates, "SPAN", 1_000)
    monkeypatch.chdir(tmp_path)  # the workers are elsewhere
    options = {"rows_per_shard": 500, "identify": "no"}
    one = prepare(texts, "one", **options)
    work = tmp_path / "many" / "work"
    with (
        eight_workers.killing(1),
        eight_workers.killing(1, once=lambda: any(work.glob("links-*.npy"))),
    ):
        many = prepare(texts, "many", executor=eight_workers.executor, **options)
    assert min(one.totals["dropped"].values()) >= 500
    assert many.totals == one.totals
    assert contents(tmp_path / "many") == contents(tmp_path / "one")


def test_learn(pairs, tmp_path, eight_workers, monkeypatch):
    monkeypatch.setattr(learn, "PAIRS_AT_ONCE", 100)
    learn.learn(pairs, tmp_path / "one")
    with eight_workers.killing(2):
        learn.learn(pairs, tmp_path / "many", executor=eight_workers.executor)
    for name in visible(tmp_path / "one"):
        assert (tmp_path / "many" / name).read_bytes() == (tmp_path / "one" / name).read_bytes()


def test_realism(pairs, tmp_path, eight_workers, monkeypatch):
    monkeypatch.setattr(figures, "ROWS_AT_ONCE", 50)
    options = {"pairs": pairs, "recipe": "ugc", "limit": 1_500}
    one = compare.compare(**options)
    with eight_workers.killing(2):
        many = compare.compare(**options, executor=eight_workers.executor)
    assert many == one


def test_calibrate(tmp_path, eight_workers, monkeypatch):
    monkeypatch.setattr(calibrate, "BLOCK_ROWS", 1_000)
    options = {"recipe": "fing", "target_cer": 0.05}
    one = calibrate.calibrate(**options)
    with eight_workers.killing(2):
        many = calibrate.calibrate(**options, executor=eight_workers.executor)
    assert many == one


def test_mine_wiki(texts, tmp_path, eight_workers, monkeypatch):
    rows, noisy = texts.read_text().splitlines()[:6_000], noisegen.noise
    rows = ["\n".join(rows[at : at + 10]) for at in range(0, 6_000, 10)]
    before = noisy(rows, "fing:rate=0.02", seed=7)
    pages = (page(n, pair, first=10 * n) for n, pair in enumerate(zip(before, rows, strict=True)))
    (tmp_path / "dump.xml.bz2").write_bytes(bz2.compress(export(*pages), 1))
    monkeypatch.setattr(dumps, "PIECE_BYTES", 9_000)
    one, many = mined_twice(
        noisegen.mine_wiki, "dump.xml.bz2", tmp_path, eight_workers, monkeypatch
    )
    assert many == one


def test_mine_lang8(pairs, tmp_path, eight_workers, monkeypatch):
    rows = (row.split("\t") for row in pairs.read_text().splitlines()[1:])
    entries = ([n, 1, "English", "Dutch", [a], [[b]]] for n, (a, b) in enumerate(rows))
    (tmp_path / "lang8.dat").write_text("".join(f"{json.dumps(entry)}\n" for entry in entries))
    one, many = mined_twice(noisegen.mine_lang8, "lang8.dat", tmp_path, eight_workers, monkeypatch)
    assert many == one


def test_mine_pairs(pairs, tmp_path, eight_workers, monkeypatch):
    one, many = mined_twice(noisegen.mine_pairs, str(pairs), tmp_path, eight_workers, monkeypatch)
    assert many == one


def mined_twice(mine, source, tmp_path, eight_workers, monkeypatch):
    """Mine one file as many tasks, here and on workers of which two are killed.

    Return, for each of the two, the totals and the bytes of the files.
    """
    monkeypatch.setattr(parallel, "ROWS", 60)
    monkeypatch.chdir(tmp_path)  # the workers are elsewhere
    one = mine(source, "one", workers=1)
    with eight_workers.killing(2):
        many = mine(source, "many", executor=eight_workers.executor)
    assert len(one.shards) > 20
    assert one.totals["pairs"] > 500
    files = [
        {
            path.relative_to(tmp_path / out): path.read_bytes()
            for path in (tmp_path / out).glob("**/*.*")
            if path.suffix in (".parquet", ".tsv")
        }
        for out in ("one", "many")
    ]
    assert len(files[0]) == 2 * len(one.shards) + 2
    return (one.totals, files[0]), (many.totals, files[1])
