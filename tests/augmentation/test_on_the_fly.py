"""Noise on the fly: the same for the same (seed, id, epoch), however rows reach it."""

import gc
import inspect
import pickle

import pyarrow as pa
import pytest
from runs import DEMO, augment, noisy_of, table

import noisegen
from noisegen import Collator, Mapper, Recipe
from noisegen.errors import UsageError
from noisegen.noising.engine import Engine
from noisegen.noising.mix import parse_step

STEP = "fing:rate=0.2"
TEXTS = [f"see you tomorrow at station number {number}" for number in range(40)]


def rows(**more):
    return [{"id": number, "text": text, **more} for number, text in enumerate(TEXTS)]


@pytest.fixture(scope="module")
def data():
    datasets = pytest.importorskip("datasets")
    return datasets.Dataset.from_dict({"text": TEXTS, "id": list(range(40))})


@pytest.fixture(scope="module")
def expected():
    return Mapper(STEP, seed=7).noise(TEXTS, range(40))


@pytest.mark.parametrize("batch_size", [1, 7, 1_000])
def test_the_batch_size_of_a_map_decides_nothing(data, expected, batch_size):
    mapped = data.map(Mapper(STEP, seed=7), batched=True, batch_size=batch_size)

    assert mapped["noisy"][:] == expected
    assert mapped.column_names == ["text", "id", "noisy"]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_the_processes_of_a_map_decide_nothing(data, expected):
    assert data.map(Mapper(STEP, seed=7), batched=True, num_proc=2)["noisy"][:] == expected
    # With Dask imported, errors that multiprocess passes on hold the buffers they came in. Python
    # 3.13 says so when they are freed, which is done here rather than in some later test.
    gc.collect()


def test_the_order_of_rows_decides_nothing(data, expected):
    mapped = data.shuffle(seed=1).map(Mapper(STEP, seed=7), batched=True, batch_size=9)

    assert {row["id"]: row["noisy"] for row in mapped} == dict(enumerate(expected))


def test_rows_without_ids_go_by_their_index(data, expected):
    bare = data.remove_columns("id")

    mapped = bare.map(Mapper(STEP, seed=7), batched=True, batch_size=11, with_indices=True)
    assert mapped["noisy"][:] == expected


def test_without_ids_a_text_is_its_own_id_as_in_noise(data):
    texts = [*TEXTS, TEXTS[3], ""]
    expected = noisegen.noise(texts, STEP, seed=7)
    assert expected[3] == expected[40] != TEXTS[3]
    mapped = type(data).from_dict({"text": texts}).map(Mapper(STEP, seed=7), batched=True)
    assert mapped["noisy"][:] == expected
    collator = Collator(STEP, seed=7)
    assert collator([{"text": text} for text in texts])["noisy"] == expected
    collator.set_epoch(1)
    assert collator([{"text": text} for text in texts])["noisy"] != expected
    assert Mapper(STEP)({"text": [None, "see you"]})["noisy"][0] is None


def test_a_column_of_ids_that_was_named_or_is_needed_says_how_to_name_it():
    remedy = "; name the column of ids with id_column=..."
    for batch in ({"text": ["a"], "number": [1]}, {"text": ["a"]}):
        with pytest.raises(UsageError, match=f"no column 'nr' among: .*{remedy}"):
            Mapper(STEP, id_column="nr")(batch)
    pairs = {"first": ["a"], "second": ["b"]}
    with pytest.raises(UsageError, match=f"no column 'id' among: first, second{remedy}"):
        Mapper(STEP, column=("first", "second"))(pairs)


def test_streamed_rows_get_the_same_noise(data, expected):
    streamed = data.to_iterable_dataset().map(Mapper(STEP, seed=7), batched=True, batch_size=6)

    assert [row["noisy"] for row in streamed] == expected


def test_epochs_and_seeds_give_other_noise(expected):
    assert Mapper(STEP, seed=7, epoch=1).noise(TEXTS, range(40)) != expected
    assert Mapper(STEP, seed=8).noise(TEXTS, range(40)) != expected


def test_epochs_are_the_copies_of_a_run(tmp_path):
    augment(DEMO, tmp_path / "out", copies=3, tagger="rule", lang="en")
    made = table(tmp_path / "out").to_pylist()

    for copy in range(3):
        part = [row for row in made if row["copy"] == copy]
        mapper = Mapper(seed=7, epoch=copy, tagger="rule")
        noisy = mapper.noise([row["clean"] for row in part], [row["id"] for row in part])
        assert noisy == [row["noisy"] for row in part]


def test_text_ids_are_those_of_a_run(tmp_path):
    (tmp_path / "in.tsv").write_text("key\ttext\na1\tsee you tomorrow\nb2\tat the station\n")
    augment(tmp_path / "in.tsv", tmp_path / "out", id_column="key", transforms=[STEP])
    mapper = Mapper(STEP, seed=7, id_column="key")
    batch = {"key": ["b2", "a1"], "text": ["at the station", "see you tomorrow"]}

    assert mapper(batch)["noisy"] == [noisy_of(tmp_path / "out")[key] for key in ("b2", "a1")]


def test_one_text_gets_the_noise_of_its_row(expected):
    assert noisegen.noise(TEXTS[3], STEP, seed=7, id=3) == expected[3]


def test_a_recipe_may_be_an_object(expected, monkeypatch):
    made = []
    of = Engine.__init__
    monkeypatch.setattr(Engine, "__init__", lambda *given: made.append(1) or of(*given))
    recipe = Recipe.of([parse_step(STEP)], "of this test")
    mapped = Mapper(recipe, seed=7)

    assert [mapped.noise([text], [n])[0] for n, text in enumerate(TEXTS)] == expected
    assert len(made) == 1  # not one engine per batch


def test_a_row_without_text_stays_without():
    assert Mapper(STEP).noise([None, "see you"], [1, 2])[0] is None


def test_protected_spans_stay():
    text = "see https://example.org/abcdefgh"

    assert "https://example.org/abcdefgh" in Mapper("fing:rate=1").noise([text], [0])[0]
    assert Mapper("fing:rate=1", protect="none").noise([text], [0])[0].count("example") == 0


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        ({"text": "a"}, "a Mapper takes a batch of columns, not a row: map with batched=True"),
        ({"Text": ["a"], "id": [1]}, "did you mean 'Text'"),
        ({"text": ["a"], "id": [None]}, "ids are integers or strings"),
        ({"text": ["a"], "id": [1.5]}, "ids are integers or strings"),
        ([{"text": "a", "id": 1}], "a Mapper takes a dict of columns, not list"),
        (pa.table({"text": ["a"], "id": [1]}), "a Mapper takes a dict of columns, not Table"),
        (None, "a Mapper takes a dict of columns, not NoneType"),
    ],
)
def test_a_batch_that_cannot_be_used_says_why(batch, message):
    with pytest.raises(UsageError, match=message):
        Mapper(STEP)(batch)


@pytest.mark.parametrize("epoch", [-1, True, 1.0, "1", None])
def test_an_epoch_that_is_no_count_is_refused(epoch):
    message = f"epoch {epoch!r} is not a whole number of at least 0"
    with pytest.raises(UsageError, match=message):
        Mapper(STEP, epoch=epoch)
    with pytest.raises(UsageError, match=message):
        Collator(STEP).set_epoch(epoch)


@pytest.mark.parametrize("made", [Mapper, Collator])
def test_a_wrong_option_shows_when_it_is_given(made):
    name = made.__name__
    with pytest.raises(UsageError, match=f"{name} has no .* 'colum'; did you mean 'col"):
        made("ugc", colum="x")
    with pytest.raises(UsageError, match="no recipe or transform named 'nope'"):
        made("nope")
    with pytest.raises(UsageError, match="lang 5 is not text"):
        made("ugc", lang=5)
    assert list(inspect.signature(made).parameters)[:2] == ["recipe", "seed"]


def test_a_map_of_single_rows_names_what_it_lacks(data):
    for options in ({}, {"with_indices": True}):
        with pytest.raises(UsageError, match="map with batched=True"):
            data.map(Mapper(STEP), **options)


def load(collator, rows, batch_size, workers):
    """Do what a loader does: each worker has a copy of the collator and every n-th batch."""
    batches = [rows[first : first + batch_size] for first in range(0, len(rows), batch_size)]
    copies = [pickle.loads(pickle.dumps(collator)) for _ in range(workers)]
    return [copies[number % workers](batch) for number, batch in enumerate(batches)]


@pytest.mark.parametrize(("batch_size", "workers"), [(40, 1), (7, 1), (7, 2), (3, 4)])
def test_the_workers_of_a_loader_decide_nothing(expected, batch_size, workers):
    batches = load(Collator(STEP, seed=7), rows(label=1), batch_size, workers)

    assert [text for batch in batches for text in batch["noisy"]] == expected
    assert list(batches[0]) == ["id", "text", "label", "noisy"]


def test_each_epoch_of_a_collator_is_that_of_a_mapper():
    collator = Collator(STEP, seed=7)
    for epoch in (0, 1, 2):
        collator.set_epoch(epoch)
        assert collator(rows())["noisy"] == Mapper(STEP, seed=7, epoch=epoch).noise(
            TEXTS, range(40)
        )


def test_a_collator_hands_rows_to_the_next(expected):
    collator = Collator(STEP, seed=7, noisy_column="x", collate=lambda rows: [r["x"] for r in rows])

    assert collator(rows()) == expected


def test_a_collator_takes_rows_one_by_one():
    assert Collator(STEP)(iter(rows())) == Collator(STEP)(rows())


def test_a_collator_leaves_the_rows_alone():
    given = rows()
    Collator(STEP)(given)

    assert given == rows()


def test_an_empty_batch_is_empty():
    assert Collator(STEP)([]) == {}
    assert Mapper(STEP).noise([], []) == []
    assert Mapper(STEP)({"text": [], "id": []}) == {"noisy": []}


def test_numbers_of_other_libraries_are_ids(expected):
    import numpy as np

    assert Mapper(STEP, seed=7).noise(TEXTS, np.arange(40, dtype=np.uint16)) == expected
    assert Mapper(STEP, seed=7).noise(TEXTS, pa.array(range(40)).to_pylist()) == expected


def test_a_collator_names_the_column_that_a_row_lacks():
    with pytest.raises(UsageError, match="a row: no column 'id' among: text"):
        Collator(STEP)([{"text": "see you", "id": 1}, {"text": "see you"}])


def test_a_dataset_is_no_source_of_augment(data, tmp_path):
    for given in (data, [data], data.select([]), data.to_iterable_dataset()):
        with pytest.raises(UsageError, match=r"save_to_disk and name .* noisegen\.Mapper$"):
            noisegen.augment(given, tmp_path / "out")
    data.save_to_disk(tmp_path / "saved")
    assert noisegen.augment(tmp_path / "saved", tmp_path / "out", limit=2).totals["rows"] == 2


@pytest.mark.parametrize("kind", [Collator, Mapper])
def test_what_is_no_recipe_is_refused_at_once(kind):
    with pytest.raises(UsageError, match="None is not a recipe: give a name"):
        kind(None)
