"""JSON documents, arrays and objects, are read and written back in their shape."""

import codecs
import gzip
import json

import pyarrow.parquet as pq
import pytest
from annotated_rows import CONTRACTED, NOISY, TEXT, rows
from hypothesis import given, settings
from hypothesis import strategies as st
from runs import augment, table
from source_files import on_stdin

import noisegen
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
    limited = noised("b.json", text, "--text-column", "data[].title", "--limit", "1")[1]
    assert limited == json.dumps(SQUAD)
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


# Items that are no objects, prefixes, limits and encodings.


@pytest.mark.parametrize("path", ["data[].t", "data[].m[].t"])
def test_items_that_are_no_objects_stay_where_they_are_and_add_no_column(noised, path):
    item = {"t": "I do not"} if path == "data[].t" else {"m": [{"t": "I do not"}]}
    text = json.dumps({"data": [item, None, 3], "v": 1})
    code, made, said = noised("a.json", text, "--text-column", path)
    assert (code, made) == (3, text.replace("do not", "don't")), said
    assert "left as is: bad_json 2" in said
    names = [*item]
    out = noised("b.json", text, "--text-column", path, out="out")[1]
    assert table(out).num_rows == 1
    assert not [name for name in table(out).column_names if "[]" in name]
    made = noised("c.json", text, "--text-column", path, out="c.parquet")[1]
    assert pq.read_schema(made).names == names
    made = noised("d.json", text, "--text-column", path, out="d.csv")[1]
    assert made.splitlines()[0] == ",".join(names)


def test_parquet_names_the_fields_of_an_inner_array_as_other_formats_do(noised):
    text = json.dumps({"a": {"b": [{"t": "I do not", "n": 1}]}, "z": 1})
    options = ("--text-column", "a.b[].t", "--copies", "2")
    assert noised("a.json", text, *options, out="a.csv")[1].startswith("t,n,copy\n")
    made = pq.read_table(noised("b.json", text, *options, out="b.parquet")[1])
    assert made.column_names == ["t", "n", "copy"]


@pytest.mark.parametrize("name", ["json", "jsonl"])
@pytest.mark.parametrize("options", [("--copies", "2"), ("--with-clean",), ("--edits",)])
def test_texts_without_fields_have_no_column_to_tell_copies_apart(noised, name, options):
    texts = json.dumps(["I do not", "You are not"])
    code, _, said = noised("a.json", texts, "--text-column", "[]", *options, out=f"b.{name}")
    problem = f"an array of texts in {name} has no column for {options[0]}"
    assert (code, f"{problem}: write parquet, csv or tsv" in said) == (2, True)
    assert noised("c.json", texts, "--text-column", "[]")[1] == '["I don\'t", "You\'re not"]'
    made = noised("d.json", texts, "--text-column", "[]", "--copies", "2", out="d.csv")[1]
    assert made.splitlines()[:3] == ["[],copy", "I don't,0", "I don't,1"]


@pytest.mark.parametrize("limit", [1, 2, 3, 9])
def test_a_limit_leaves_out_items_and_keeps_what_follows_them(noised, limit):
    texts = [{"t": "I do not"}, {"t": "It is"}, {"t": "You are"}]
    whole = {"v": 1, "data": texts, "end": [2]}
    options = ("--text-column", "data[].t", "--limit", str(limit), "-t", "leet:rate=0")
    code, made, _ = noised("a.json", json.dumps(whole, indent=1), *options)
    kept = whole | {"data": [{"t": noisegen.noise(row["t"], "cont")} for row in texts[:limit]]}
    assert (code, made) == (0, json.dumps(kept, indent=1))
    array = json.dumps(texts, indent=1)
    made = noised("b.json", array, "--text-column", "t", *options[2:])[1]
    assert made == json.dumps(kept["data"], indent=1)


def test_a_limit_that_ends_in_a_second_document_closes_it(noised, tmp_path):
    text = json.dumps({"data": [{"t": "I do not"}] * 2, "end": 2})
    (tmp_path / "0.json").write_text(text)
    options = (str(tmp_path / "0.json"), "--text-column", "data[].t", "--limit", "3")
    made = json.loads(noised("a.json", text, *options)[1])
    assert made == {"data": [{"t": "I don't"}] * 3, "end": 2}


@pytest.mark.parametrize("form", ["array", "object", "-"])
def test_documents_keep_their_encoding_and_their_spans_follow(
    tmp_path, monkeypatch, capfdbinary, form
):
    row = {"text": "I do not know Zoë of Köln.", "s": [[21, 25]], "x": "é"}
    head = "" if form == "array" else "data[]."
    whole = json.dumps([row] if form == "array" else {"data": [row]}, ensure_ascii=False, indent=1)
    (tmp_path / "a.json").write_bytes(whole.encode("cp1252"))
    source, out = (str(tmp_path / name) if form != "-" else "-" for name in ("a.json", "b.json"))
    on_stdin(monkeypatch, whole.encode("cp1252"))
    names = ("--text-column", f"{head}text", "--spans", f"{head}s", "--encoding", "cp1252")
    assert run(["augment", source, "-o", out, *CONTRACTED, *names]) == 0
    made = capfdbinary.readouterr().out if form == "-" else (tmp_path / "b.json").read_bytes()
    want = whole.replace("do not", "don't").replace("21", "20").replace("25", "24")
    assert made == want.encode("cp1252")


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("data[][].t", "nothing at 'data[][].t'; there is: data[].t"),
        ("x[].words", "nothing at 'x[].words'; there is: data[].t"),
        ("text", "no column 'text' among: v, data; name it: --text-column NAME or PATH: data[].t"),
    ],
)
def test_a_path_that_leads_nowhere_in_a_document_names_its_texts(noised, path, said):
    text = json.dumps({"v": 1, "data": [{"t": "a"}]})
    code, _, told = noised("a.json", text, "--text-column", path)
    assert (code, said in told) == (1, True), told


@pytest.mark.parametrize("indent", [None, 1])
def test_copies_of_an_object_without_an_array_are_an_array(noised, tmp_path, indent):
    text = json.dumps({"text": "I do not"}, indent=indent) + "\n"
    made = noised("a.json", text, "--copies", "2")[1]
    assert json.loads(made) == [{"text": "I don't", "copy": copy} for copy in (0, 1)]
    (tmp_path / "0.json").write_text(text)
    made = noised("b.json", text, str(tmp_path / "0.json"))[1]
    assert json.loads(made) == [{"text": "I don't"}] * 2
    assert noised("c.json", text)[1] == text.replace("do not", "don't")


@pytest.mark.parametrize("kind", ["json", "jsonl"])
def test_a_byte_order_mark_stays_in_the_same_format(tmp_path, kind):
    texts = {"json": '[{"text": "I do not know."}]\n', "jsonl": '{"text": "I do not know."}\n'}
    (tmp_path / f"a.{kind}").write_text(texts[kind], "utf-8-sig")
    for other in texts:
        augment(tmp_path / f"a.{kind}", tmp_path / f"b.{other}", transforms="cont")
        has_mark = (tmp_path / f"b.{other}").read_bytes().startswith(codecs.BOM_UTF8)
        assert has_mark == (other == kind)
    expected = texts[kind].replace("do not", "don't")
    assert (tmp_path / f"b.{kind}").read_text("utf-8-sig") == expected
