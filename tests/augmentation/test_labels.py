"""Labels of tokens over noise: equal lengths, nothing invented, identity without noise."""

import json
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from runs import augment, table

from noisegen.augmentation.shards import align, aligned_labels, carry
from noisegen.cli import run
from noisegen.data.features import class_names
from noisegen.data.labels import carried
from noisegen.data.rows import Columns
from noisegen.errors import SourceError, UsageError
from noisegen.noising.mix import parse_step
from noisegen.noising.recipe import Recipe

HEAVY = ("spac:drop_rate=0.4,add_rate=0.3", "fing:rate=0.3", "abr1:rate=1")
WORDS = [
    "see",
    "you",
    "tomorrow",
    "as",
    "soon",
    "possible",
    "I",
    "am",
    "New York",
    "",
    "a\u00a0b",
    "don't",
    "東京",
    "é",
    "x",
    "#tag",
    "@you",
    "https://example.org",
    "🇩🇪",
    "\t",
]
CARRIED = ("noisy_tokens", "noisy_labels", "owners")
LABELS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
ROWS = st.lists(
    st.lists(
        st.tuples(
            st.sampled_from(WORDS) | st.text(st.characters(codec="utf-8"), max_size=8),
            st.sampled_from(LABELS),
        ),
        max_size=12,
    ),
    min_size=1,
    max_size=6,
)


def edit(clean_start, clean_end, noisy_start, noisy_end):
    return {
        "transform": "x",
        "clean_start": clean_start,
        "clean_end": clean_end,
        "noisy_start": noisy_start,
        "noisy_end": noisy_end,
    }


def noised(rows, *steps):
    """Return tokens, labels, noisy text and carried columns of rows of (token, label)."""
    kind = pa.list_(pa.string())
    tokens = pa.chunked_array([pa.array([[token for token, _ in row] for row in rows], kind)])
    labels = pa.chunked_array([pa.array([[label for _, label in row] for row in rows], kind)])
    clean = pa.array([" ".join(row) for row in tokens.to_pylist()], pa.string())
    recipe = Recipe.of([parse_step(step) for step in steps])
    found = recipe.noise_batch(pa.table({"clean": clean}), seed=1, edits=True)
    noisy, edits = (found[name].combine_chunks() for name in ("noisy", "edits"))
    rows = pa.table({"tokens": tokens, "labels": labels, "noisy": noisy, "edits": edits})
    words, owners = align(rows, Columns(tokens="tokens", labels="labels"))
    made = (words, aligned_labels(rows, "tokens", "labels", owners), owners)
    return tokens, labels, noisy.to_pylist(), dict(zip(CARRIED, made, strict=True))


def test_a_split_token_goes_on_with_its_label():
    tokens, labels = ["see", "Paris"], ["O", "B-LOC"]

    assert carry(tokens, labels, "see Pa ris", [edit(6, 6, 6, 7)]) == (
        ["see", "Pa", "ris"],
        ["O", "B-LOC", "I-LOC"],
    )


def test_the_rest_of_a_split_token_keeps_other_labels():
    assert carry(["seen"], ["O"], "se en", [edit(2, 2, 2, 3)])[1] == ["O", "O"]
    assert carry(["seen"], ["I-X"], "se en", [edit(2, 2, 2, 3)])[1] == ["I-X", "I-X"]


def test_a_merged_token_has_the_first_label():
    tokens, labels = ["in", "New", "York"], ["O", "B-LOC", "I-LOC"]

    assert carry(tokens, labels, "in NewYork", [edit(6, 7, 6, 6)]) == (
        ["in", "NewYork"],
        ["O", "B-LOC"],
    )


def test_an_abbreviated_phrase_has_the_label_of_its_first_token():
    tokens = ["come", "as", "soon", "as", "possible", "Ann"]
    labels = ["O", "O", "B-X", "I-X", "I-X", "B-PER"]

    assert carry(tokens, labels, "come ASAP Ann", [edit(5, 24, 5, 9)]) == (
        ["come", "ASAP", "Ann"],
        ["O", "O", "B-PER"],
    )


def test_an_expanded_phrase_has_the_labels_of_equal_shares():
    tokens, labels = ["a", "b"], ["B-X", "B-Y"]

    words, carried = carry(tokens, labels, "one two three four", [edit(0, 3, 0, 18)])

    assert words == ["one", "two", "three", "four"]
    assert carried == ["B-X", "I-X", "B-Y", "I-Y"]


def test_a_dropped_token_takes_its_label_along():
    assert carry(["a", "b", "c"], ["O", "B-X", "O"], "a c", [edit(1, 3, 1, 1)]) == (
        ["a", "c"],
        ["O", "O"],
    )


def test_a_swapped_word_keeps_the_labels_around_it():
    tokens, labels = ["the", "week", "of", "Ann"], ["O", "O", "O", "B-PER"]

    assert carry(tokens, labels, "the weak of Ann", [edit(4, 8, 4, 8)])[1] == labels


def test_tokens_with_blanks_and_empty_tokens_stay_whole():
    tokens = ["New York", "", "is", "a\u00a0b"]
    labels = ["B-LOC", "O", "O", "O"]

    assert carry(tokens, labels, "New York  iz a\u00a0b", [edit(11, 12, 11, 12)]) == (
        ["New York", "", "iz", "a\u00a0b"],
        labels,
    )


def test_no_tokens_give_no_tokens():
    assert carry([], [], "", []) == ([], [])
    assert carry(["a"], ["O"], "", [edit(0, 1, 0, 0)]) == ([], [])


def test_text_out_of_nothing_is_outside_of_all():
    assert carry([], [], "well then", [edit(0, 0, 0, 9)]) == (["well", "then"], ["O", "O"])


@given(ROWS)
def test_heavy_noise_keeps_tokens_and_labels_together(rows):
    _, labels, noisy, made = noised(rows, *HEAVY)

    for row, text, given_labels in zip(range(len(rows)), noisy, labels.to_pylist(), strict=True):
        words = made["noisy_tokens"][row].as_py()
        carried = made["noisy_labels"][row].as_py()
        owners = made["owners"][row].as_py()
        assert len(words) == len(carried) == len(owners)
        assert not given_labels or owners == sorted(owners)
        assert " ".join(" ".join(words).split()) == " ".join(text.split())
        kinds = {label[2:] for label in given_labels if label != "O"}
        continued = {f"{letter}-{kind}" for letter in "BI" for kind in kinds}
        assert set(carried) <= {*given_labels, *continued}


@given(ROWS)
def test_without_noise_tokens_and_labels_are_those_given(rows):
    zero = ("spac:drop_rate=0,add_rate=0", "fing:rate=0", "abr1:rate=0")
    tokens, labels, _, made = noised(rows, *zero)

    assert made["noisy_tokens"].to_pylist() == tokens.to_pylist()
    assert made["noisy_labels"].to_pylist() == labels.to_pylist()


@given(ROWS)
def test_letters_alone_change_no_label(rows):
    words = [[(token, label) for token, label in row if token.strip() == token] for row in rows]
    _, labels, _, made = noised([row or [("x", "O")] for row in words], "fing:rate=0.5")

    assert made["noisy_labels"].to_pylist() == labels.to_pylist()


@pytest.fixture
def tagged(tmp_path):
    rows = [
        {"words": ["See", "New", "York"], "tags": ["O", "B-LOC", "I-LOC"], "n": 1},
        {"words": [], "tags": [], "n": 2},
        {"words": ["as", "soon", "as", "possible"], "tags": ["O"] * 4, "n": 3},
    ] * 20
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "in.parquet")
    (tmp_path / "in.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return tmp_path


@pytest.mark.parametrize("name", ["in.parquet", "in.jsonl"])
def test_a_run_with_labels_adds_both_columns_last(tagged, name):
    options = {"tokens": "words", "labels": "tags", "transforms": HEAVY}
    augment(tagged / name, tagged / "out", **options, copies=2, edits=True)
    rows = table(tagged / "out")

    assert rows.column_names == [
        "id",
        "clean",
        "noisy",
        "transforms",
        "copy",
        "words",
        "tags",
        "n",
        "edits",
        "noisy_tokens",
        "noisy_labels",
    ]
    for row in rows.to_pylist():
        assert row["clean"] == " ".join(row["words"])
        assert len(row["noisy_tokens"]) == len(row["noisy_labels"])
        assert " ".join(row["noisy_tokens"]) == " ".join(row["noisy"].split())
    assert rows["noisy_tokens"].to_pylist() != rows["words"].to_pylist()


def test_labels_do_not_change_the_noise(tagged):
    augment(tagged / "in.parquet", tagged / "a", tokens="words", labels="tags", transforms=HEAVY)
    noisy = table(tagged / "a")["noisy"]
    clean = table(tagged / "a").select(["id", "clean"])
    recipe = Recipe.of([parse_step(step) for step in HEAVY])

    assert recipe.noise_batch(clean, seed=7)["noisy"].to_pylist() == noisy.to_pylist()


def test_rows_with_unequal_lists_are_dropped_and_counted(tmp_path):
    rows = [{"words": ["a", "b"], "tags": ["O"]}, {"words": ["a"], "tags": ["O"]}]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "in.parquet")
    made = augment(tmp_path / "in.parquet", tmp_path / "out", tokens="words", labels="tags")

    assert made.totals["dropped"] == {"unequal_labels": 1}
    assert table(tmp_path / "out")["id"].to_pylist() == [1]


def test_tokens_need_no_labels(tagged):
    """Their noisy text is that of labelled tokens, in shards and in one file."""
    whole = augment(tagged / "in.parquet", tagged / "all", tokens="words", labels="tags")
    made = augment(tagged / "in.parquet", tagged / "out", tokens="words")
    assert made.totals["changed"] == whole.totals["changed"] > 0
    alone, labelled = table(tagged / "out"), table(tagged / "all")
    assert alone["noisy_tokens"] == labelled["noisy_tokens"]
    assert "noisy_labels" not in alone.column_names
    augment(tagged / "in.parquet", tagged / "out.jsonl", tokens="words")
    rows = [json.loads(line) for line in (tagged / "out.jsonl").read_text("utf-8").splitlines()]
    assert [row["words"] for row in rows] == alone["noisy_tokens"].to_pylist()
    with pytest.raises(
        UsageError,
        match="conll has a token per line, so it needs --tokens and --labels: for texts write txt",
    ):
        augment(tagged / "in.parquet", tagged / "out.conll", tokens="words")
    with pytest.raises(UsageError, match="--labels goes with --tokens"):
        augment(tagged / "in.parquet", tagged / "other", labels="tags")


def test_labels_in_a_column_of_numbers_are_refused(tmp_path):
    pq.write_table(pa.table({"words": [["a"]], "tags": [1]}), tmp_path / "in.parquet")

    with pytest.raises(SourceError, match="'tags' is not a list of strings"):
        augment(tmp_path / "in.parquet", tmp_path / "out", tokens="words", labels="tags")


def test_what_is_left_of_a_span_whose_beginning_merged_begins_it():
    gone = {"clean_start": 1, "clean_end": 2, "noisy_start": 1, "noisy_end": 1}
    given = ["O", "B-TIME", "I-TIME"]
    assert carry(["4", "me", "now"], given, "4me now", [gone]) == (["4me", "now"], ["O", "B-TIME"])
    loose = ["O", "I-TIME", "I-TIME"]
    assert carry(["4", "me", "now"], loose, "4me now", [gone])[1] == ["O", "I-TIME"]


def test_the_labels_of_a_long_row_are_carried_in_linear_time():
    count = 60_000
    edits = [edit(4 * n, 4 * n + 3, 4 * n, 4 * n + 3) for n in range(count)]
    began = time.process_time()
    words, labels = carry(["see"] * count, ["O"] * count, "s e " * count, edits)
    assert time.process_time() - began < 4  # with the square of the tokens it takes 60
    assert (len(words), set(labels)) == (2 * count, {"O"})


# Tags of entities, written and read here by the definitions of their schemes.


SCHEMES = {
    "IOB1": "BI",
    "IOB2": "BI",
    "IO": "I",
    "BIOES": "BIES",
    "BILOU": "BILU",
    "BMES": "BMES",
}
SENTENCES = st.lists(st.tuples(st.sampled_from(["", "PER", "LOC"]), st.integers(1, 4)), min_size=1)


def tags_of(entities, scheme):
    """Return the tags of a sentence of (type, count of tokens); the type of other tokens is ''."""
    tags = []
    for kind, count in entities:
        before = tags[-1][2:] if tags else ""
        if not kind:
            letters = ["O"] * count
        elif scheme in ("IOB1", "IO"):
            is_marked = scheme == "IOB1" and before == kind
            letters = ["B" if is_marked else "I"] + ["I"] * (count - 1)
        elif scheme == "IOB2":
            letters = ["B"] + ["I"] * (count - 1)
        else:
            _, inside, end, lone = {"BIOES": "BIES", "BILOU": "BILU", "BMES": "BMES"}[scheme]
            letters = ["B", *[inside] * (count - 2), end] if count > 1 else [lone]
        tags += [f"{letter}-{kind}" if kind else "O" for letter in letters]
    return tags


def spans_of(tags, scheme):
    """Return [type, begin, end] of the entities in tags; fails if the tags are not of the scheme.

    The entities are written again: a sentence of a scheme has one way to tag them.
    """
    spans = []
    for at, tag in enumerate(tags):
        letter, kind = tag[0], tag[2:]
        before = tags[at - 1] if at else "O"
        begins = letter in "BSU" or (letter == "I" and before[2:] != kind)
        if begins and kind:
            spans.append([kind, at, at + 1])
        elif kind:
            spans[-1][2] = at + 1
    at, pieces = 0, []
    for kind, begin, end in [*spans, ["", len(tags), len(tags)]]:
        pieces += [("", begin - at)] * (begin > at) + [(kind, end - begin)] * bool(kind)
        at = end
    assert tags_of(pieces, scheme) == tags
    return spans


def moved(entities, owners):
    """Return [type, begin, end] of each clean entity among the noisy tokens."""
    kinds = [(number, kind) for number, (kind, count) in enumerate(entities) for _ in range(count)]
    spans, last = [], None
    for at, owner in enumerate(owners):
        number, kind = kinds[owner]
        if kind and number == last:
            spans[-1][2] = at + 1
        elif kind:
            spans.append([kind, at, at + 1])
        last = number
    return spans


@pytest.mark.parametrize("scheme", SCHEMES)
@given(SENTENCES, st.lists(st.integers(0, 99)))
def test_entities_stay_whole_in_every_scheme(scheme, entities, places):
    tags = tags_of(entities, scheme)
    owners = sorted(place % len(tags) for place in places)
    made = carried(tags, owners, SCHEMES[scheme])
    wanted = moved(entities, owners)
    if scheme == "IO":  # neighbours of one type are one entity
        wanted = spans_of([f"I-{kind}" if kind else "O" for kind in kinds_of(made)], "IO")
    assert spans_of(made, scheme) == wanted
    assert kinds_of(made) == [tags[owner][2:] for owner in owners]
    if scheme in ("IOB2", "BIOES", "BILOU"):
        assert carried(tags, owners) == made, "these are known by the sentence alone"
    assert carried(tags, range(len(tags)), SCHEMES[scheme]) == tags


def kinds_of(tags):
    return [tag[2:] for tag in tags]


@given(SENTENCES, st.lists(st.integers(0, 99)))
def test_tags_may_have_no_type(entities, places):
    typed = tags_of([("PER" if kind else "", count) for kind, count in entities], "IOB2")
    owners = sorted(place % len(typed) for place in places)
    letters = [tag[0] for tag in carried(typed, owners, "BI")]
    assert carried([tag[0] for tag in typed], owners, "BI") == letters


@pytest.mark.parametrize(
    ("scheme", "kind"), [*((name, "jsonl") for name in SCHEMES), ("BMES", "conll")]
)
def test_noise_leaves_valid_tags_in_a_file(tmp_path, scheme, kind):
    entities = [("PER", 1), ("", 2), ("LOC", 3), ("", 1), ("LOC", 1), ("LOC", 2), ("PER", 2)]
    words = ["Anna", "moved", "to", "New", "York", "City", "because", "Oslo", "Los", "Angeles"]
    words += ["Ben", "Lee"]
    short = [("PER", 1), ("", 1)]
    rows = [(words, tags_of(entities, scheme)), (words[:2], tags_of(short, scheme))] * 40
    rows.insert(0, (["so"], ["O"]))
    source, out = tmp_path / f"in.{kind}", tmp_path / f"out.{kind}"
    source.write_text("".join(written_as(kind, *row) for row in rows))
    heavy = ["init:rate=0.3", "spac:add_rate=0.2,drop_rate=0.3"]
    augment(source, out, tokens="tokens", labels="labels", transforms=heavy, rows_per_shard=7)
    noisy = [*read_again(kind, out.read_text())]
    assert len(noisy) == len(rows)
    assert sum(new != old for new, old in zip(noisy, rows, strict=True)) > 40
    for (tokens, tags), (_, clean) in zip(noisy, rows, strict=True):
        assert len(tokens) == len(tags)
        kinds = [span[0] for span in spans_of(tags, scheme)]
        left = iter(span[0] for span in spans_of(clean, scheme))
        assert all(each in left for each in kinds), "no entity is split, and their order stays"


def written_as(kind, tokens, labels):
    if kind == "jsonl":
        return json.dumps({"tokens": tokens, "labels": labels}) + "\n"
    return "".join(f"{token} {label}\n" for token, label in zip(tokens, labels, strict=True)) + "\n"


def read_again(kind, text):
    if kind == "jsonl":
        for row in map(json.loads, text.splitlines()):
            yield row["tokens"], row["labels"]
        return
    for block in text.rstrip().split("\n\n"):
        yield tuple(map(list, zip(*(line.split(" ") for line in block.split("\n")), strict=True)))


def test_the_scheme_of_a_file_is_said(tmp_path, capfd):
    source = tmp_path / "a.jsonl"
    for scheme, name in (("BMES", "BMES"), ("BILOU", "BILOU"), ("IOB2", "IOB1 or IOB2")):
        source.write_text(written_as("jsonl", list("abc"), tags_of([("LOC", 3)], scheme)))
        assert (
            run(["augment", str(source), "-o", "-", "--tokens", "tokens", "--labels", "labels"])
            == 0
        )
        assert f"hint: the labels in column 'labels' are {name} tags" in capfd.readouterr().err


# Labels that are numbers of classes without names.


NUMBERED = ["O", "B-PER", "I-PER", "B-LOC"]
SPLITS = ("spac:add_rate=0.4,drop_rate=0",)


@pytest.fixture
def numbered(tmp_path):
    row = {"tokens": ["Anna", "Keller", "lives", "in", "Berlin"], "ner_tags": [1, 2, 0, 0, 3]}
    (tmp_path / "in.jsonl").write_text(f"{json.dumps(row)}\n" * 20)
    return tmp_path


OPTIONS = {"tokens": "tokens", "labels": "ner_tags", "transforms": SPLITS}


def test_numbers_without_names_stop_a_run_before_it_writes(numbered):
    for out in ("out", "out.jsonl"):
        with pytest.raises(UsageError, match="'ner_tags' has numbers without names: --label-names"):
            augment(numbered / "in.jsonl", numbered / out, **OPTIONS)
        assert not (numbered / out).exists()


@pytest.mark.parametrize("given_as", ["list", "text", "file"])
def test_numbers_with_names_continue_their_entity(numbered, given_as):
    (numbered / "names.txt").write_text("\n".join(NUMBERED) + "\n")
    names = {"list": NUMBERED, "text": ", ".join(NUMBERED), "file": numbered / "names.txt"}
    made = augment(numbered / "in.jsonl", numbered / "out", **OPTIONS, label_names=names[given_as])
    assert made.options["label_names"] == NUMBERED
    shards = table(numbered / "out")
    assert class_names(shards.schema) == dict.fromkeys(["ner_tags", "noisy_labels"], (*NUMBERED,))
    rows = shards["noisy_labels"].to_pylist()
    assert any(row.count(2) > 1 for row in rows)
    assert all(row.count(1) <= 1 for row in rows)
    assert any(row.count(3) > 1 for row in rows), "I-LOC is no class"
    manifest = str(numbered / "out" / "manifest.json")
    assert run(["augment", "--from", manifest, "-o", str(numbered / "again"), "-q"]) == 0
    assert table(numbered / "again").equals(shards)


def test_numbers_stay_numbers_where_the_format_stays(numbered):
    for kind in ("jsonl", "conll"):
        augment(numbered / "in.jsonl", numbered / f"out.{kind}", **OPTIONS, label_names=NUMBERED)
    rows = [json.loads(line) for line in (numbered / "out.jsonl").read_text().splitlines()]
    assert {label for row in rows for label in row["ner_tags"]} == {0, 1, 2, 3}
    lines = (numbered / "out.conll").read_text().split("\n")
    assert {line.split("\t")[1] for line in lines if line} == {*NUMBERED}


def test_rows_with_a_number_that_has_no_name_are_counted(numbered):
    with (numbered / "in.jsonl").open("a") as file:
        file.write(json.dumps({"tokens": ["so", "Bo"], "ner_tags": [-100, 4]}) + "\n")
    made = augment(numbered / "in.jsonl", numbered / "out", **OPTIONS, label_names=NUMBERED)
    assert (made.totals["rows"], made.totals["dropped"]) == (20, {"unknown_label": 1})
    made = augment(numbered / "in.jsonl", numbered / "o.jsonl", **OPTIONS, label_names=NUMBERED)
    assert made.totals["as_is"] == {"unknown_label": 1}
    assert json.loads((numbered / "o.jsonl").read_text().splitlines()[-1])["ner_tags"] == [-100, 4]


def test_names_of_labels_with_names_are_refused(tagged):
    options = {"tokens": "words", "labels": "tags", "label_names": NUMBERED}
    with pytest.raises(UsageError, match="'tags' has names of its labels: leave out --label-names"):
        augment(tagged / "in.jsonl", tagged / "out", **options)
    with pytest.raises(UsageError, match="goes with --tokens and --labels"):
        augment(tagged / "in.jsonl", tagged / "out", text_column="n", label_names=NUMBERED)


def test_names_that_cannot_be_read_stop_a_run(numbered):
    for names, problem in (("O,,B-x", "name 1 is empty"), ("O,x,O", "name 2 'O' is repeated")):
        with pytest.raises(UsageError, match=problem):
            augment(numbered / "in.jsonl", numbered / "out", **OPTIONS, label_names=names)
    with pytest.raises(SourceError, match="cannot read none"):
        augment(numbered / "in.jsonl", numbered / "out", **OPTIONS, label_names="none.txt")


@pytest.mark.parametrize("form", ["{0}_{1}", "{1}-{0}", "{1}_{0}"])
def test_the_letter_of_a_tag_may_be_at_its_end(tmp_path, capfd, form):
    tags = [form.format(*pair) for pair in (("B", "PER"), ("I", "PER"))]
    row = {"tokens": ["Anna", "Keller", "sleeps"], "tags": [*tags, "O"]}
    (tmp_path / "a.jsonl").write_text(json.dumps(row) + "\n" + json.dumps(row))
    files = [str(tmp_path / "a.jsonl"), "-o", str(tmp_path / "b.jsonl")]
    named = ["--tokens", "tokens", "--labels", "tags", "-t", "spac:add_rate=0.5,drop_rate=0"]
    assert run(["augment", *files, *named, "--seed", "2"]) == 0
    assert "the labels in column 'tags' are IOB1 or IOB2 tags" in capfd.readouterr().err
    for line in (tmp_path / "b.jsonl").read_text().splitlines():
        made = json.loads(line)["tags"]
        entity = [tag for tag in made if tag != "O"]
        assert entity == [tags[0], *[tags[1]] * (len(entity) - 1)]
        assert len(entity) > 2
