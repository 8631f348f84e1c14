"""Mapper, Collator and NoisyDataset give the rows of `augment`, wherever their texts are."""

import json
import pickle
import random
import warnings

import numpy as np
import pytest
from runs import augment, table

import noisegen
from noisegen import Collator, Mapper, NoisyDataset
from noisegen.errors import UsageError

SEED, RECIPE = 3, "ugc-heavy"
ENGLISH = "Anna and I do not know what you are going to do because of them"
GERMAN = "Ich weiß nicht, was du morgen in Wien machst, weil wir zu spät sind"
FRENCH = "Je ne sais pas pourquoi tu es parti hier soir avec tous mes amis"


def chat(number):
    return [
        {"role": role, "content": f"{ENGLISH} {number}"}
        for role in ("system", "user", "assistant", "user")[: 2 + number % 3]
    ]


def spoken(number):
    return [
        {"text": ENGLISH, "lang": "en"},
        {"text": GERMAN, "lang": "de-AT"},
        {"text": FRENCH, "lang": "French"},
        {"text": ENGLISH, "lang": None},
        {"text": ENGLISH, "lang": "xx-xx"},
    ][number % 5]


# Name: a row by its number, the options of the classes, the columns that the noise changes or adds
CASES = {
    "path": (
        lambda n: {"messages": chat(n)},
        {"column": "messages[role=user].content"},
        ["messages"],
    ),
    "columns": (
        lambda n: {"premise": f"{ENGLISH} {n}", "hypothesis": f"{n} {ENGLISH}"},
        {"column": ["premise", "hypothesis"]},
        ["premise", "hypothesis"],
    ),
    "spans": (
        lambda n: {"text": f"{n} {ENGLISH}", "entities": [[len(str(n)) + 1, len(str(n)) + 5]]},
        {"spans": "entities"},
        ["noisy", "entities"],
    ),
    "nested spans": (
        lambda n: {
            "doc": {"text": ENGLISH, "spans": [{"start": 0, "end": 4}, {"start": n, "end": 20}]}
        },
        {"column": "doc.text", "spans": ["doc.spans"]},
        ["doc"],
    ),
    "JSON": (
        lambda n: {"turns": json.dumps([{"t": f"{ENGLISH} {n}"}])},
        {"column": "turns[].t"},
        ["turns"],
    ),
    "languages": (spoken, {}, ["noisy"]),
    "languages of chats": (
        lambda n: {"m": [{"t": spoken(n)["text"]}, {"t": "x"}], "lang": spoken(n)["lang"]},
        {"column": "m[].t"},
        ["m"],
    ),
    "a named column of languages": (
        lambda n: {"text": spoken(n)["text"], "tongue": spoken(n)["lang"]},
        {"lang_column": "tongue"},
        ["noisy"],
    ),
}


@pytest.fixture(scope="module", params=CASES)
def case(request, tmp_path_factory):
    """Return rows, options, and for epochs 0 and 1 the rows that augment makes, by id."""
    make, options, names = CASES[request.param]
    folder = tmp_path_factory.mktemp("case")
    rows = [{"id": f"r{number}", **make(number), "label": number} for number in range(20)]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    named = {"text_column": options["column"]} if "column" in options else {}
    named |= {name: value for name, value in options.items() if name != "column"}
    augment(folder / "rows.jsonl", folder / "out", recipe=RECIPE, seed=SEED, copies=2, **named)
    made = table(folder / "out").to_pylist()
    expected = [
        {row["id"]: {name: row[name] for name in names} for row in made if row["copy"] == copy}
        for copy in (0, 1)
    ]
    assert expected[0] != expected[1]
    return rows, {"recipe": RECIPE, "seed": SEED, **options}, expected


@pytest.fixture(autouse=True)
def quiet():
    """Leave out the warnings of rows that stay clean, which come once per process."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


def shuffled(rows):
    return random.Random(1).sample(rows, len(rows))


def batches(rows, size):
    return [rows[first : first + size] for first in range(0, len(rows), size)]


def mapped(rows, options, epoch):
    mapper = Mapper(**options, epoch=epoch)
    for batch in batches(shuffled(rows), 20):
        columns = {name: [row[name] for row in batch] for name in batch[0]}
        made = columns | mapper(columns)
        yield from (dict(zip(made, row, strict=True)) for row in zip(*made.values(), strict=True))


def collated(rows, options, epoch):
    collator = Collator(**options, collate=list)
    collator.set_epoch(epoch)
    workers = [pickle.loads(pickle.dumps(collator)) for _ in range(2)]
    for number, batch in enumerate(batches(shuffled(rows), 3)):
        yield from workers[number % 2](batch)


def indexed(rows, options, epoch):
    dataset = NoisyDataset(rows, **options, block_rows=8)
    list(dataset)
    dataset.set_epoch(epoch)
    for indices in batches(shuffled(range(len(rows))), 3):
        yield from dataset.__getitems__(indices)


def streamed(rows, options, epoch):
    yield from NoisyDataset(iter(shuffled(rows)), **options, block_rows=8, epoch=epoch)


def loaded(rows, options, epoch):
    loading = pytest.importorskip("torch.utils.data")
    dataset = NoisyDataset(rows, **options, block_rows=8, epoch=epoch)
    for batch in loading.DataLoader(dataset, 7, shuffle=True, num_workers=2, collate_fn=list):
        yield from batch


def of_datasets(rows, options, epoch):
    datasets = pytest.importorskip("datasets")
    data = datasets.Dataset.from_list(shuffled(rows))
    yield from NoisyDataset(data, **options, block_rows=8, epoch=epoch)
    yield from data.map(Mapper(**options, epoch=epoch), batched=True, batch_size=20)


@pytest.mark.parametrize("epoch", [0, 1])
@pytest.mark.parametrize("way", [mapped, collated, indexed, streamed, loaded, of_datasets])
def test_each_way_gives_the_rows_of_augment(case, way, epoch):
    rows, options, expected = case
    before = json.dumps(rows)
    made = list(way(rows, options, epoch))

    assert {row["id"] for row in made} == expected[epoch].keys()
    for row in made:
        wanted = expected[epoch][row["id"]]
        assert {name: row[name] for name in wanted} == wanted
        assert row["label"] == int(row["id"][1:])
    assert json.dumps(rows) == before


def test_a_row_that_changes_gets_its_own_noise():
    rows = [{"id": n, "m": [{"t": ENGLISH}], "lang": "en"} for n in range(9)]
    dataset = NoisyDataset(rows, RECIPE, SEED, "m[].t")
    list(dataset)
    rows[5]["m"][0]["t"], rows[6]["lang"] = ENGLISH[::2], "de"

    mapper = Mapper(RECIPE, SEED, "m[].t")
    assert [row["m"] for row in dataset] == mapper({k: [r[k] for r in rows] for k in rows[0]})["m"]


def test_objects_beside_the_texts_are_neither_copied_nor_stored():
    image = object()
    rows = [{"m": [{"image": image}, {"t": "I do not know"}]}]

    for made in (
        NoisyDataset(rows, "cont", column="m[].t")[0],
        Collator("cont", column="m[].t", collate=list)([{"id": 0, **rows[0]}])[0],
    ):
        assert made["m"][0]["image"] is image
        assert made["m"][1]["t"] == "I don't know"


def test_rows_that_stay_clean_are_named_in_a_warning():
    run = Collator("abr1:rate=1", lang_column="speech")
    rows = [{"id": 0, "text": ENGLISH, "speech": "??"}, {"id": 1, "text": GERMAN, "speech": "de"}]
    with pytest.warns(UserWarning, match="stay clean") as seen:
        assert run(rows)["noisy"] == [ENGLISH, GERMAN]
    assert sorted(str(warning.message) for warning in seen) == [
        "rows in a language of column 'speech' stay clean: the recipe has no data for it",
        "rows without a known language in column 'speech' stay clean: lang='en' noises all rows "
        "in English",
    ]
    spans = NoisyDataset(
        [{"text": ENGLISH, "s": [[0, 4]]}, {"text": "Hi", "s": [[0, 40]]}], recipe="ugc", spans="s"
    )
    with pytest.warns(UserWarning, match="rows with spans that do not fit their text stay clean"):
        assert spans[1]["noisy"] == "Hi"


@pytest.mark.parametrize("options", [{"lang": "en"}, {"lang_column": "none"}])
def test_one_language_for_all_rows_switches_the_column_off(options):
    rows = [{"id": 0, "text": GERMAN, "lang": "de"}]
    expected = noisegen.noise(GERMAN, RECIPE, seed=SEED, id=0)

    assert Collator(RECIPE, SEED, **options)(rows)["noisy"] == [expected]
    assert NoisyDataset(rows, recipe=RECIPE, seed=SEED, **options)[0]["noisy"] == expected


def test_a_column_of_numbers_is_no_default_column_of_languages():
    rows = [{"id": 0, "text": ENGLISH, "lang": 7}]

    expected = noisegen.noise(ENGLISH, RECIPE, seed=SEED, id=0)
    assert NoisyDataset(rows, recipe=RECIPE, seed=SEED)[0]["noisy"] == expected
    with pytest.raises(UsageError, match="column 'lang' holds int, not languages"):
        Collator(RECIPE, lang_column="lang")(rows)


def test_a_recipe_without_english_serves_rows_in_its_language():
    assert Collator("kana:rate=1")([{"id": 0, "text": "カタカナ", "lang": "ja"}])["noisy"] != []
    with pytest.raises(UsageError, match="no data for language 'en'"):
        Collator("kana:rate=1")([{"id": 0, "text": "カタカナ"}])
    with pytest.raises(UsageError, match="no data for language 'en'"):
        Mapper("kana:rate=1", lang_column="none")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"column": "mesages[].t"}, "row 0: no column 'mesages.*did you mean 'messages'"),
        ({"column": "messages[x"}, "row 0: cannot read the path 'messages"),
        ({"column": ["text", "nope"]}, "row 0: no column 'nope' among: id, text, messages"),
        ({"spans": "nope"}, "row 0: no column 'nope' among"),
        ({"spans": "messages"}, "spans messages: no start and end there in the first rows"),
        ({"lang_column": "tongue"}, "row 0: no column 'tongue' among"),
        ({"lang": "de", "lang_column": "lang"}, "lang is for all rows, lang_column for each row"),
    ],
)
def test_a_wrong_name_is_refused_when_the_rows_are_wrapped(options, message):
    rows = [{"id": 0, "text": ENGLISH, "messages": [{"t": ENGLISH}]}]
    with pytest.raises(UsageError, match=message):
        NoisyDataset(rows, **options)
    if "first rows" not in message:
        with pytest.raises(UsageError, match=message.replace("row 0", "a row")):
            Collator(**options)(rows)


def test_a_row_without_the_language_that_others_have_is_refused():
    rows = [{"id": 0, "text": ENGLISH}, {"id": 1, "text": GERMAN, "lang": "de"}]
    with pytest.raises(UsageError, match="row 0: no column 'lang' among: id, text"):
        list(NoisyDataset(rows))


# Paths and values that a loop cannot use, or only in another form.


TALK = {"id": 0, "messages": [{"role": "user", "content": "I do not know Oslo."}]}
TALK |= {"text": "I do not know Oslo.", "meta": {"entz": [[14, 18]]}}


def each_way(rows, **options):
    """Return the rows of each class of a loop."""
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    yield lambda: [columns | Mapper("cont", **options)(columns)]
    yield lambda: [Collator("cont", **options)(rows)]
    yield lambda: list(NoisyDataset(rows, recipe="cont", **options))
    yield lambda: list(NoisyDataset(iter(rows), recipe="cont", **options))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"column": "messages[].contnt"},
            r"column messages\[\].contnt: no text there in the first rows; texts: "
            r"messages\[\].role, messages\[\].content",
        ),
        ({"column": "messages[role=user]"}, "no text there in the first rows; texts: messages"),
        ({"column": "messages.content"}, "no text there in the first rows; texts: messages"),
        ({"spans": "meta.ents"}, "^spans meta.ents: nothing there in the first rows"),
    ],
)
def test_a_path_that_leads_to_nothing_is_refused(options, message):
    for run in each_way([TALK], **options):
        with pytest.raises(UsageError, match=message):
            run()


def test_errors_name_options_as_python_does():
    row = TALK | {"other": TALK["text"], "s": [[14, 18]]}
    message = "^spans s: of 'text' or 'other'. Write spans s=PATH$"
    with pytest.raises(UsageError, match=message):
        Collator("cont", column=["text", "other"], spans="s")([row])


@pytest.mark.parametrize("way", range(4))
def test_items_that_a_filter_does_not_find_are_warned_of(way):
    run = list(each_way([TALK], column=f"messages[role=nobody{way}].content"))[way]
    with pytest.warns(UserWarning, match=f"nobody{way}.*in the first rows; role: user$"):
        run()


def test_only_the_first_rows_must_have_the_path():
    other = TALK | {"messages": [{"role": "user"}], "meta": {}}
    collator = Collator("cont", column="messages[].content")
    collator([TALK])
    assert collator([other])["messages"] == [other["messages"]]
    assert len(list(NoisyDataset([TALK, other], column="messages[].content"))) == 2


def forms_of(span):
    start, end = span
    yield [(start, end, "LOC")], [[start, end, "LOC"]]
    yield ([start, end],), [[start, end]]
    yield np.array([[start, end]]), [[start, end]]
    yield [[np.int64(start), np.int64(end), "LOC"]], [[start, end, "LOC"]]
    yield (
        {"start": np.array([start]), "end": np.array([end])},
        {
            "start": [start],
            "end": [end],
        },
    )


def test_offsets_in_tuples_and_arrays_come_back_in_lists():
    plain = {"id": 0, "text": "I do not know Oslo.", "s": [[14, 18]]}
    wanted = [made for _, made in forms_of((13, 17))]
    given = [plain | {"s": value} for value, _ in forms_of((14, 18))]
    for rows, made in [([row], [want]) for row, want in zip(given, wanted, strict=True)]:
        for run in each_way(rows, spans="s"):
            spans = [row["s"] for row in run()]
            assert spans in (made, [made])
    assert [row["s"] for row in NoisyDataset([plain, *given], spans="s", recipe="cont")] == [
        [[13, 17]],
        *wanted,
    ]


def test_texts_in_tuples_get_noise():
    for run in each_way([{"id": 0, "t": ("I do not", "We do not")}], column="t[]"):
        assert run()[0]["t"] in ([["I don't", "We don't"]], ["I don't", "We don't"])


@pytest.mark.parametrize("form", ["torch", "numpy", "pandas"])
def test_formats_of_datasets_give_lists(form):
    datasets = pytest.importorskip("datasets")
    pytest.importorskip(form)
    for spans, made in (([[14, 18]], [[13, 17]]), ({"start": [14]}, {"start": [13]})):
        values = spans | {"end": [18]} if isinstance(spans, dict) else spans
        rows = [{"id": n, "text": "I do not know Oslo.", "s": values} for n in range(3)]
        data = datasets.Dataset.from_list(rows).with_format(form)
        made = made | {"end": [17]} if isinstance(made, dict) else made
        assert NoisyDataset(data, recipe="cont", spans="s")[0]["s"] == made
        mapped_rows = data.map(Mapper("cont", spans="s"), batched=True).with_format(None)
        assert mapped_rows[0]["s"] == made


def test_a_format_without_rows_is_refused():
    datasets = pytest.importorskip("datasets")
    data = datasets.Dataset.from_list([TALK]).with_format("arrow")
    with pytest.raises(UsageError, match="in format 'arrow' has no rows that are dicts"):
        NoisyDataset(data, column="messages[].content")


def test_a_mapper_that_has_seen_rows_is_the_same_mapper():
    mapper = Mapper("cont", column="messages[].content")
    before = pickle.dumps(mapper)
    mapper({name: [value] for name, value in TALK.items()})
    assert pickle.dumps(mapper) == before
