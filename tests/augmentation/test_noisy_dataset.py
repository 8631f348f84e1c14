"""Noise made ahead in blocks is the noise of any other way, however a loop reads the rows."""

import copy
import inspect
import os
import pickle
import random
import subprocess
import sys
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from runs import DEMO, augment, table

import noisegen
from noisegen import Collator, Mapper, NoisyDataset
from noisegen.errors import UsageError

STEP = "fing:rate=0.2"
TEXTS = [f"see you tomorrow at station number {number}" for number in range(100)]
ROWS = [{"text": text, "label": number} for number, text in enumerate(TEXTS)]
EPOCHS = [Mapper(STEP, seed=7, epoch=epoch).noise(TEXTS, range(100)) for epoch in range(3)]


class Stream:
    """Rows that can be iterated again and again, and nothing else."""

    def __iter__(self):
        return iter(ROWS)


def noisy(rows=ROWS, **options):
    """Wrap rows with blocks small enough for several to be needed."""
    return NoisyDataset(rows, **{"recipe": STEP, "seed": 7, "block_rows": 16, **options})


def of(rows):
    return [row["noisy"] for row in rows]


def by_label(batches):
    """Return the noisy texts of a loader in the order of the rows; each row must come once."""
    rows = [row for batch in batches for row in batch]
    assert sorted(row["label"] for row in rows) == list(range(len(rows)))
    return of(sorted(rows, key=lambda row: row["label"]))


@pytest.fixture(scope="module")
def loading():
    return pytest.importorskip("torch.utils.data")


def loader(dataset, **options):
    from torch.utils.data import DataLoader

    return DataLoader(dataset, **{"batch_size": 7, "collate_fn": list, **options})


@settings(max_examples=30)
@given(st.lists(st.integers(-100, 99), max_size=70), st.integers(1, 120), st.integers(0, 2))
def test_any_order_and_size_of_block_gives_the_same_noise(indices, block_rows, epoch):
    dataset = noisy(block_rows=block_rows, epoch=epoch)

    assert of(dataset.__getitems__(indices)) == [EPOCHS[epoch][index] for index in indices]


@pytest.mark.parametrize("rows", [ROWS, Stream()])
def test_iteration_yields_every_row_with_its_noise(rows):
    made = list(noisy(rows))

    assert of(made) == EPOCHS[0]
    assert made == [{**row, "noisy": text} for row, text in zip(ROWS, EPOCHS[0], strict=True)]
    assert list(ROWS[0]) == ["text", "label"]


def test_a_row_is_found_by_any_index():
    dataset = noisy()

    assert len(dataset) == 100
    assert dataset[41]["noisy"] == EPOCHS[0][41] == dataset[-59]["noisy"]
    with pytest.raises(IndexError):
        dataset[100]


@pytest.mark.parametrize("rows", [ROWS, Stream()])
def test_an_epoch_may_be_set_or_given(rows):
    dataset = noisy(rows)
    for epoch in (0, 2, 1, 1):
        dataset.set_epoch(epoch)
        assert of(dataset) == EPOCHS[epoch] == of(noisy(rows, epoch=epoch))
        assert dataset.epoch == epoch


@pytest.mark.parametrize("rows", [ROWS, Stream()])
def test_rows_after_skipped_rows_have_their_noise(rows):
    assert of(islice(noisy(rows, epoch=1), 30, None)) == EPOCHS[1][30:]


def test_epochs_are_the_copies_of_a_run(tmp_path):
    augment(DEMO, tmp_path / "out", copies=2, tagger="rule", limit=200)
    made = table(tmp_path / "out").to_pylist()

    for copy_number in range(2):
        part = [row for row in made if row["copy"] == copy_number]
        rows = [{"id": row["id"], "text": row["clean"]} for row in part]
        dataset = NoisyDataset(rows, seed=7, epoch=copy_number, block_rows=100)
        assert of(dataset) == [row["noisy"] for row in part]


@pytest.mark.parametrize("kind", [list, iter])
@pytest.mark.parametrize(("column", "named"), [("id", None), ("key", "key")])
def test_ids_come_from_a_column(kind, column, named):
    keys = [f"k{number}" for number in range(100)]
    rows = [{**row, column: key} for row, key in zip(ROWS, keys, strict=True)]
    random.Random(1).shuffle(rows)
    dataset = noisy(kind(rows), id_column=named)

    assert {row[column]: row["noisy"] for row in dataset} == {
        key: noisegen.noise(text, STEP, seed=7, id=key)
        for key, text in zip(keys, TEXTS, strict=True)
    }


def test_names_of_columns_may_differ():
    rows = [{"sentence": text} for text in TEXTS]
    dataset = NoisyDataset(rows, STEP, 7, "sentence", noisy_column="dirty")

    assert [row["dirty"] for row in dataset] == EPOCHS[0]


def test_a_row_without_text_stays_without():
    rows = [{"text": None}, *ROWS[1:3]]

    assert of(noisy(rows)) == [None, *EPOCHS[0][1:3]] == of(noisy(iter(rows)))


def test_a_text_that_changes_gets_its_own_noise():
    rows = [dict(row) for row in ROWS]
    dataset = noisy(rows)
    assert of(dataset) == EPOCHS[0]
    rows[5]["text"] = "an entirely different sentence about the weather"

    expected = noisegen.noise(rows[5]["text"], STEP, seed=7, id=5)
    assert dataset[5]["noisy"] == expected
    assert dataset[6]["noisy"] == EPOCHS[0][6]


def test_no_rows_are_no_batches():
    assert list(noisy([])) == list(noisy(iter([]))) == noisy().__getitems__([]) == []


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda made: pickle.loads(pickle.dumps(made))])
@pytest.mark.parametrize("rows", [ROWS, Stream()])
def test_a_copy_has_its_own_epoch(copied, rows):
    first = noisy(rows, epoch=1)
    second = copied(first)
    first.set_epoch(0)

    assert of(second) == EPOCHS[1]
    assert of(first) == EPOCHS[0]


def test_the_folder_holds_one_epoch_and_goes_with_the_dataset():
    dataset = noisy()
    folder = dataset._store.folder
    for epoch in (0, 1):
        dataset.set_epoch(epoch)
        list(dataset)
        assert {path.name for path in folder.glob("*.arrow")} == {
            f"{epoch}-{number}.arrow" for number in range(7)
        }
    del dataset
    assert not folder.exists()


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("rows", [ROWS, Stream()])
def test_the_workers_of_a_loader_decide_nothing(loading, workers, rows):
    options = {"shuffle": True} if rows is ROWS else {}
    dataset = noisy(rows)
    for epoch in (0, 2):
        dataset.set_epoch(epoch)
        assert by_label(loader(dataset, num_workers=workers, **options)) == EPOCHS[epoch]


@pytest.mark.parametrize(("rows", "start"), [(ROWS, "fork"), (Stream(), "fork"), (ROWS, "spawn")])
def test_persistent_workers_follow_the_epoch(loading, rows, start):
    dataset = noisy(rows)
    options = {"num_workers": 2, "persistent_workers": True, "multiprocessing_context": start}
    batches = loader(dataset, **options)
    for epoch in (0, 2):
        dataset.set_epoch(epoch)
        assert by_label(batches) == EPOCHS[epoch]


def test_the_workers_of_a_loader_make_a_block_once(loading, tmp_path):
    class Counted:
        def __len__(self):
            return 100

        def __getitem__(self, index):
            with (tmp_path / "reads").open("a") as file:
                file.write(".")
            return ROWS[index]

    dataset = noisy(Counted(), block_rows=100)
    assert by_label(loader(dataset, num_workers=2)) == EPOCHS[0]

    # One read of row 0 when the dataset is wrapped, then one per row for the block and the batches.
    assert len((tmp_path / "reads").read_text()) == 1 + 100 + 100


def run(code):
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(noisegen.__file__).parents[1])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_process_that_ends_leaves_the_folder():
    run(
        "import noisegen, os, sys; data = noisegen.NoisyDataset([{'text': 'see you'}]);"
        "child = os.fork() or sys.exit(0); os.waitpid(child, 0);"
        "assert data._store.folder.exists(); list(data)"
    )


def test_ranks_share_the_rows_out(loading):
    batches = []
    for rank in range(2):
        dataset = noisy(epoch=1)
        sampler = loading.DistributedSampler(dataset, num_replicas=2, rank=rank)
        sampler.set_epoch(1)
        batches += loader(dataset, sampler=sampler)

    assert by_label(batches) == EPOCHS[1]


def test_a_torch_dataset_is_read_by_its_rows(loading):
    class Rows(loading.Dataset):
        def __len__(self):
            return 100

        def __getitem__(self, index):
            return ROWS[index]

    assert by_label(loader(noisy(Rows()), shuffle=True)) == EPOCHS[0]
    assert by_label(loader(loading.Subset(noisy(), range(9)))) == EPOCHS[0][:9]


@pytest.mark.parametrize("workers", [0, 2])
def test_a_stream_that_shares_itself_out_needs_ids(loading, workers):
    class Shares(loading.IterableDataset):
        def __init__(self, rows):
            self.rows = rows

        def __len__(self):
            return len(self.rows)

        def __iter__(self):
            worker = loading.get_worker_info()
            share = (worker.id, None, worker.num_workers) if worker else (None,)
            return islice(self.rows, *share)

    with_ids = Shares([{"key": number, **row} for number, row in enumerate(ROWS)])
    batches = loader(noisy(with_ids, id_column="key"), num_workers=workers)
    assert by_label(batches) == EPOCHS[0]
    if workers:
        with pytest.raises(UsageError, match="name an id_column"):
            list(loader(noisy(Shares(ROWS)), num_workers=workers))


def test_datasets_are_read_by_their_rows_and_shards(loading):
    datasets = pytest.importorskip("datasets")
    rows = datasets.Dataset.from_list([{**row, "id": row["label"]} for row in ROWS])

    assert by_label(loader(noisy(rows.remove_columns("id")), shuffle=True)) == EPOCHS[0]
    assert of(noisy(rows.shuffle(seed=1))) == [EPOCHS[0][n] for n in rows.shuffle(seed=1)["id"]]
    assert by_label(loader(noisy(rows.with_format("torch")), num_workers=2)) == EPOCHS[0]
    stream = rows.to_iterable_dataset(num_shards=4).shuffle(seed=1, buffer_size=10)
    dataset = noisy(stream)
    orders = []
    for epoch in (0, 1):
        dataset.set_epoch(epoch)
        batches = list(loader(dataset, num_workers=2))
        assert by_label(batches) == EPOCHS[epoch]
        orders.append([row["label"] for batch in batches for row in batch])
    assert orders[0] != orders[1]  # the epoch reaches the stream, which shuffles anew


def test_columns_that_noise_does_not_need_are_not_read():
    datasets = pytest.importorskip("datasets")
    rows = datasets.Dataset.from_list(ROWS)
    computed = rows.with_transform(lambda batch: {"text": [f"{t}!" for t in batch["text"]]})
    read = []
    original = datasets.Dataset.__getitems__

    class Watched(datasets.Dataset):
        def __getitems__(self, keys):
            read.append(self.column_names)
            return original(self, keys)

    rows.__class__ = Watched
    dataset = noisy(rows)
    read.clear()
    dataset[3]
    assert ["text"] in read
    assert noisy(computed)[3]["noisy"] == noisegen.noise(TEXTS[3] + "!", STEP, seed=7, id=3)


def test_blocks_are_made_once_and_not_row_by_row(monkeypatch):
    made = []
    original = Mapper.noise
    monkeypatch.setattr(Mapper, "noise", lambda *all: made.append(len(all[1])) or original(*all))
    dataset = noisy()
    for index in random.Random(1).sample(range(100), 100):
        dataset[index]
    list(dataset)

    assert sorted(made) == [4, 16, 16, 16, 16, 16, 16]


def test_torch_is_not_imported():
    run(
        "import sys, noisegen; rows = [{'text': 'see you'}];"
        "list(noisegen.NoisyDataset(rows)); list(noisegen.NoisyDataset(iter(rows)));"
        "assert 'torch' not in sys.modules"
    )


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("a.txt", "takes a dataset or a list of dicts, not a str"),
        ({"train": ROWS}, "takes a dataset or a list of dicts, not a dict"),
        (7, "takes a dataset or a list of dicts, not a int"),
        (["see you"], "row 0 is of type str: give rows that are dicts"),
        ([{"Text": "see you"}], "row 0: no column 'text' among: Text; did you mean 'Text'"),
        ([{"body": "see you"}], "no column 'text' among: body; name the column of text: column="),
    ],
)
def test_rows_that_cannot_be_used_are_refused_at_once(rows, message):
    with pytest.raises(UsageError, match=message):
        NoisyDataset(rows)


def test_a_frame_is_refused_with_advice():
    pandas = pytest.importorskip("pandas")
    with pytest.raises(UsageError, match="a DataFrame has no row 0: give a list of dicts"):
        NoisyDataset(pandas.DataFrame(ROWS))


def test_tokens_are_refused_with_advice():
    with pytest.raises(UsageError, match=r"not a string; noise tokens .*augment\(..., tokens="):
        NoisyDataset([{"tokens": ["see", "you"], "tags": [0, 1]}], column="tokens")[0]


def test_a_row_of_a_block_that_cannot_be_used_is_named():
    rows = [*ROWS[:20], {"text": 5}, {"label": 1}]
    with pytest.raises(UsageError, match="from row 16 on, text 4 is 5, not a string"):
        noisy(rows[:21])[16]
    with pytest.raises(UsageError, match="row 21: no column 'text' among: label"):
        noisy(rows)[16]
    with pytest.raises(UsageError, match="row 21: no column 'text' among: label"):
        list(noisy(iter([*ROWS[:21], rows[21]])))


def test_a_wrong_option_shows_when_it_is_given():
    with pytest.raises(UsageError, match="NoisyDataset has no option 'recip'; did you"):
        NoisyDataset(ROWS, recip="ugc")
    with pytest.raises(UsageError, match="no recipe or transform named 'nope'"):
        NoisyDataset(ROWS, recipe="nope")
    with pytest.raises(UsageError, match="row 0: no column 'uid' among: text, label"):
        NoisyDataset(ROWS, id_column="uid")
    for wrong in (0, True, 1.5):
        with pytest.raises(UsageError, match=r"block_rows .* is not a whole number of at least 1"):
            NoisyDataset(ROWS, block_rows=wrong)
    for wrong in (-1, True, "1"):
        with pytest.raises(UsageError, match=r"epoch .* is not a whole number of at least 0"):
            NoisyDataset(ROWS, epoch=wrong)
        with pytest.raises(UsageError, match=r"epoch .* is not a whole number of at least 0"):
            noisy().set_epoch(wrong)
    names = list(inspect.signature(NoisyDataset).parameters)
    assert names[1:4] == list(inspect.signature(Mapper).parameters)[:3]


def test_a_collator_over_the_same_rows_gives_the_same_noise(loading):
    rows = [{"id": number, **row} for number, row in enumerate(ROWS)]

    assert Collator(STEP, seed=7)(rows)["noisy"] == of(noisy(rows))
