"""Duplicates of a whole run are found as comparing all with all finds them."""

import resource
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from planted import alike, planted

from noisegen.data.rows import Columns
from noisegen.data.sources import expand, shard_ranges
from noisegen.errors import OutputError
from noisegen.preparation import duplicates
from noisegen.preparation.duplicates import (
    DUPLICATE,
    KEPT,
    NEAR,
    Search,
    links,
)
from noisegen.preparation.fingerprints import normal_form
from noisegen.preparation.intermediate import BATCH, checked, work_path
from noisegen.preparation.portions import Portion, PortionJob, make_candidates
from noisegen.preparation.sentences import Criteria
from noisegen.text.segmentation import language

LEAST = 0.75


def in_turn(function, tasks, finished):
    for task in tasks:
        finished(function(task))


@pytest.fixture
def found(tmp_path):
    """Return the codes of texts that lie in portions of so many rows, and those texts."""

    def run(texts, rows, run_tasks=in_turn, *, batch=16, entries=500, span=50):
        path = tmp_path / f"{rows}.txt"
        path.write_text("\n".join(texts), "utf-8")
        out = tmp_path / f"out-{rows}"
        shutil.rmtree(out, ignore_errors=True)
        (out / "work").mkdir(parents=True)
        job = PortionJob(out, language("en"), Criteria(1, 9_999, 0.0), Columns(), batch=batch)
        counts = []
        for number, (part,) in enumerate(shard_ranges(expand([str(path)]), Columns(), rows)):
            portion = Portion(number, part.first, part.rows, ((str(path), part),))
            counts.append(make_candidates(job, portion).result.rows)
        search = Search(
            out, near=True, shingle=5, similarity_min=LEAST, batch=batch, entries=entries, span=span
        )
        search.begin(counts)
        search.find(run_tasks)
        codes = search.codes()
        files = [work_path(out, "texts", number) for number in range(len(counts))]
        tables = [pa.ipc.open_file(file).read_all() for file in files]
        return codes, pa.concat_tables(tables)["text"].to_pylist()

    return run


def slow(texts):
    """Compare each text with all that are kept before it."""
    codes, kept = [], {}
    forms = set()
    for text in texts:
        form = normal_form(text)
        if text in kept:
            codes.append(DUPLICATE)
        elif form in forms or any(
            min(len(form), len(one)) >= 25 and alike(form, one) >= LEAST for one in kept.values()
        ):
            codes.append(NEAR)
        else:
            codes.append(KEPT)
        kept |= {text: form} if codes[-1] == KEPT else {}
        forms.add(form)
    return codes


def one_a_row(texts):
    spoken = language("en")
    return [text for text in texts if spoken.sentences(text) == [text]]


def with_changes(texts):
    """Return texts, planted changes of them, and some of them again, in a mixed order."""
    texts = one_a_row(texts)
    changed = one_a_row(text for _, text in planted(texts))
    rows = [*texts, *changed, *texts[:50]]
    order = np.random.default_rng(3).permutation(len(rows))
    return [rows[at] for at in order]


@pytest.fixture
def mixed(demo_texts):
    return with_changes(demo_texts[:150])


def test_they_are_those_of_comparing_all_with_all(found, mixed):
    check_with_all(found, mixed, 60)


@pytest.mark.nightly
@pytest.mark.parametrize("rows", [60, 10_000])
def test_they_are_those_of_comparing_all_with_all_on_more_texts(found, real_sentences, rows):
    check_with_all(found, with_changes(one_a_row(real_sentences)[:400]), rows)


def check_with_all(found, mixed, rows):
    codes, texts = found(mixed, rows)
    twin = slow(mixed)
    kept = {text for text, code in zip(texts, codes, strict=True) if code == KEPT}
    wanted = {text for text, code in zip(mixed, twin, strict=True) if code == KEPT}
    assert wanted - kept == set()  # what is dropped is a duplicate
    assert len(kept - wanted) <= 0.03 * twin.count(NEAR)  # bands find 95 % at the least similarity


def test_the_kept_do_not_depend_on_the_portions(found, mixed):
    kept = []
    for rows in (37, 200, 10_000):
        codes, texts = found(mixed, rows)
        kept.append([text for text, code in zip(texts, codes, strict=True) if code == KEPT])
    assert kept[0] == kept[1] == kept[2]


def test_tasks_that_end_in_any_order_find_the_same(found, mixed):
    def backwards(function, tasks, finished):
        for result in reversed([function(task) for task in tasks]):
            finished(result)

    def from_the_end(function, tasks, finished):
        in_turn(function, tasks[::-1], finished)

    codes, _ = found(mixed, 60)
    assert np.count_nonzero(codes == NEAR) > 50
    for run_tasks in (backwards, from_the_end):
        assert found(mixed, 60, run_tasks=run_tasks)[0].tolist() == codes.tolist()


def test_a_chain_of_small_changes_does_not_remove_its_far_end(found):
    words = [f"{a}{b}ing" for a in "bdfgklmn" for b in ("a", "e", "i")]
    chain = [" ".join(words[at : at + 18]) for at in range(0, 7, 1)]
    forms = [normal_form(text) for text in chain]
    assert alike(forms[0], forms[1]) >= LEAST > alike(forms[0], forms[-1])
    codes, _ = found(chain, 10_000)
    assert codes[0] == KEPT
    assert (codes[1:] == KEPT).any()


def test_short_sentences_are_near_only_if_their_forms_are_equal(found):
    short = ["Information on them.", "Information on them he", "information ON them"]
    assert alike(*map(normal_form, short[:2])) > LEAST
    codes, texts = found(short, 1)
    assert [int(code) for code in codes] == [KEPT, KEPT, NEAR]
    assert texts == short


def test_links_join_the_first_members_of_a_bucket_and_the_one_before():
    keys = np.array([7, 7, 9, 7, 7, 7, 7, 3], np.uint64)
    places = np.array([10, 11, 12, 13, 14, 15, 16, 17])
    wanted = set()
    members = [10, 11, 13, 14, 15, 16]
    for number, later in enumerate(members):
        earlier = {*members[: min(number, duplicates.LINKS)], *members[number - 1 : number]}
        wanted |= {(later, one) for one in earlier}
    assert [tuple(pair) for pair in links(keys, places).tolist()] == sorted(wanted)
    assert links(keys[:0], places[:0]).shape == (0, 2)


def test_equal_forms_and_texts_are_told_apart():
    keys = np.array([5, 5, 5, 5, 8, 8], np.uint64)
    marks = np.array([1, 2, 1, 2, 3, 3], np.uint64)
    indices = np.array([3, 1, 2, 5, 0, 4], np.uint64)
    found = duplicates.equal(np.stack([keys, marks, indices]))
    assert dict(found.T.tolist()) == {2: NEAR, 3: DUPLICATE, 4: DUPLICATE, 5: DUPLICATE}


def test_what_cannot_be_read_is_not_removed_as_damaged(tmp_path):
    path = tmp_path / "keys.npy"
    path.mkdir()
    with (
        pytest.raises(OutputError, match=r"cannot read .*keys\.npy: Is a directory"),
        checked(path),
    ):
        path.read_bytes()
    assert path.exists()


def test_more_tasks_than_files_may_be_open(found):
    most = resource.getrlimit(resource.RLIMIT_NOFILE)
    texts = [f"{number * number:b} is the binary square of {number}" for number in range(200)]
    codes, _ = found(texts, 200)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len([*Path("/dev/fd").iterdir()]) + 40, most[1]))
    try:
        limited, _ = found(texts, 8, batch=BATCH, entries=25)  # 25 portions, 65 ranges
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, most)
    assert limited.tolist() == codes.tolist()
