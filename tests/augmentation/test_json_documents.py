"""JSON documents, arrays and objects, are read and written back in their shape."""

import gzip
import json

import pytest
from annotated_rows import CONTRACTED, NOISY, TEXT, rows
from hypothesis import given, settings
from hypothesis import strategies as st
from runs import augment, table
from source_files import on_stdin

from noisegen.cli import run

ALPACA = '[\n  {"instruction": "I do not know.", "input": ""},\n\n  {"instruction": "é"}\n]\n'


@pytest.mark.parametrize("name", ["a.json", "a.jsonl", "-"])
def test_an_array_is_written_back_in_its_shape(noised, monkeypatch, capfd, name):
    options = ("--text-column", "instruction")
    want = ALPACA.replace("do not", "don't")
    if name == "-":
        on_stdin(monkeypatch, ALPACA.encode())
        assert run(["augment", "-", "-o", "-", *CONTRACTED, *options]) == 0
        assert capfd.readouterr().out == want
    else:
        assert noised(name, ALPACA, *options, out="out.json")[:2] == (0, want)


SQUAD = {
    "version": "1",
    "data": [
        {
            "title": "T",
            "paragraphs": [
                {"context": TEXT, "qas": [{"answers": [{"text": "Oslo", "answer_start": 29}]}]},
                {"context": "You are here.", "qas": [{"answers": []}]},
            ],
        }
    ],
    "end": [1, 2],
}


@pytest.mark.parametrize("indent", [None, 2])
def test_an_object_with_arrays_is_written_back_in_its_shape(noised, indent):
    text = json.dumps(SQUAD, indent=indent)
    options = ("--text-column", "data[].paragraphs[].context")
    spans = ("--spans", "data[].paragraphs[].qas[].answers")
    want = text.replace(TEXT, NOISY).replace("You are", "You're")
    code, made, said = noised("a.json", text, *options)
    assert (code, made) == (0, want)
    assert "warning: 'data[].paragraphs[].qas[].answers' looks like spans" in said
    assert noised("b.json", text, *options, *spans)[1] == want.replace("29", "28")


@pytest.mark.parametrize("gone", [(0,), (3,), (0, 1, 3)])
def test_a_document_whose_rows_are_dropped_stays_whole(noised, gone):
    texts = [{"text": TEXT, "s": [[0, 99 if number in gone else 1]]} for number in range(4)]
    whole = {"version": "1", "data": texts, "end": [1, 2]}
    options = ("--text-column", "data[].text", "--spans", "data[].s", "--spans-lost", "drop")
    code, made, said = noised("a.json", json.dumps(whole, indent=1), *options)
    kept = [{"text": NOISY, "s": [[0, 1]]} for _ in range(4 - len(gone))]
    assert (code, json.loads(made)) == (3, whole | {"data": kept}), said
    assert made == json.dumps(whole | {"data": kept}, indent=1)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_noise_that_changes_nothing_keeps_every_byte_of_a_document(tmp_path_factory, data):
    value = st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False)
        | st.text(max_size=4),
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
        ),
        max_leaves=5,
    )
    item = st.fixed_dictionaries({"text": st.just("some text")}, optional={"x": value, "y": value})
    items = data.draw(st.lists(item, min_size=1, max_size=5))
    layout = data.draw(
        st.sampled_from([{}, {"indent": 1}, {"separators": (",", ":")}, {"ensure_ascii": False}])
    )
    whole = (
        {"a": data.draw(value), "data": items, "b": data.draw(value)}
        if data.draw(st.booleans())
        else items
    )
    folder = tmp_path_factory.mktemp("json")
    (folder / "a.json").write_text(json.dumps(whole, **layout), "utf-8", "surrogatepass")
    path = "data[].text" if isinstance(whole, dict) else "text"
    augment(folder / "a.json", folder / "b.json", transforms=["leet:rate=0"], text_column=path)
    assert (folder / "b.json").read_bytes() == (folder / "a.json").read_bytes()


def test_copies_limits_and_other_formats_make_whole_documents(noised):
    made = noised("a.json", ALPACA, "--text-column", "instruction", "--copies", "2")[1]
    assert [row["copy"] for row in json.loads(made)] == [0, 1, 0, 1]
    text = json.dumps(SQUAD | {"data": SQUAD["data"] * 2})
    code, _, said = noised("b.json", text, "--text-column", "data[].title", "--limit", "1")
    assert (code, "--limit would cut off the end of the object" in said) == (2, True)
    few = noised("d.json", ALPACA, "--text-column", "instruction", "--limit", "1")[1]
    assert len(json.loads(few)) == 1
    made = noised("c.csv", f"text,n\n{TEXT},1\n", out="c.json")[1]
    assert json.loads(made) == [{"text": NOISY, "n": "1"}]


@pytest.mark.parametrize("text", ['[{"text": "a"}, {"text": ', '[{"text": "a"}, {]'])
def test_a_broken_document_is_an_error(noised, text):
    code, made, said = noised("a.json", text)
    assert code == 1
    assert "is not a JSON document that can be read" in said
    assert not made.exists()


def test_documents_are_compressed_and_take_two_sources(tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"{name}.json.gz").write_bytes(gzip.compress(ALPACA.encode()))
    sources = [tmp_path / "a.json.gz", tmp_path / "b.json.gz"]
    augment(sources, tmp_path / "c.json.gz", transforms=["cont"], text_column="instruction")
    made = json.loads(gzip.decompress((tmp_path / "c.json.gz").read_bytes()))
    assert [row["instruction"] for row in made] == ["I don't know.", "é"] * 2


def test_lists_as_rows_have_paths_too(noised):
    text = json.dumps([[TEXT, {"entities": [[29, 33, "LOC"]]}]])
    options = ("--text-column", "[][0]", "--spans", "[][1].entities")
    assert noised("a.json", text, *options)[1] == text.replace(TEXT, NOISY).replace(
        "29, 33", "28, 32"
    )


def test_rows_get_the_same_noise_in_a_document_and_in_lines(noised):
    chats = [{"m": [{"t": f"you are going to see it {n} {k}"} for k in range(3)]} for n in range(9)]
    options = ("-t", "spel:rate=0.5", "-t", "fing:rate=0.1")
    lines = table(noised("a.jsonl", chats, *options, "--text-column", "m[].t", out="a")[1])
    whole = json.dumps({"data": chats})
    made = table(noised("b.json", whole, *options, "--text-column", "data[].m[].t", out="b")[1])
    assert made.select(["paths", "noisy"]).equals(lines.select(["paths", "noisy"]))


def test_an_object_with_an_array_gives_lines_with_its_fields(noised):
    made = noised("a.json", json.dumps(SQUAD), "--text-column", "data[].title", out="a.jsonl")[1]
    assert rows(made)[0].keys() == {"title", "paragraphs"}
    out = noised("b.json", json.dumps(SQUAD), "--text-column", "data[].title", out="out")[1]
    assert "paragraphs" in table(out).column_names


def test_lines_and_documents_become_each_other_with_all_their_values(noised, tmp_path):
    spans = [{"text": TEXT, "s": [[29, 33, "LOC"]], "n": 1}, {"text": TEXT, "s": [], "n": "x"}]
    whole = noised("a.jsonl", spans, "--spans", "s", out="b.json")[1]
    assert json.loads(whole)[0] == {"text": NOISY, "s": [[28, 32, "LOC"]], "n": 1}
    assert whole.startswith("[\n{")
    assert len(whole.splitlines()) == 4
    lines = noised("c.json", json.dumps(spans, indent=1), "--spans", "s", out="d.jsonl")[1]
    assert rows(lines)[0] == {"text": NOISY, "s": [[28, 32, "LOC"]], "n": 1}


def test_a_document_names_its_ids_languages_and_copies(noised):
    items = [{"id": 9, "text": "Ich habe es.", "lang": "de"}, {"id": 8, "text": TEXT, "lang": "en"}]
    text = json.dumps({"data": items, "v": 1})
    code, made, said = noised("a.json", text, "--text-column", "data[].text")
    assert "no_data_for_language 1" in said
    assert json.loads(made)["data"][1]["text"] == NOISY
    taken = json.dumps({"data": [{"text": TEXT, "copy": 5}]})
    code, _, said = noised("b.json", taken, "--text-column", "data[].text", "--copies", "2")
    assert (code, "has a column 'copy'" in said) == (1, True)


@pytest.mark.parametrize(
    "text", ['{"data": [{"t": "a"}, {"t": "I', '[{"t": "a"},]', '[{"t": "a"}] x']
)
def test_a_document_that_is_not_json_is_an_error(noised, text):
    path = "data[].t" if text.startswith("{") else "t"
    code, _, said = noised("a.json", text, "--text-column", path)
    assert (code, "is not a JSON document that can be read" in said) == (1, True), said


@pytest.mark.parametrize(
    "text", ['{"d": [\n{"t": "I do not"}\n]}', '{"d":\n [{"t": "I do not"}]}\n']
)
def test_an_object_over_lines_is_a_document(noised, text):
    made = noised("a.json", text, "--text-column", "d[].t")[1]
    assert made == text.replace("do not", "don't")
