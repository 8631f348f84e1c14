"""Texts anywhere in a row, and annotations that follow the noise."""

import json
import re
from collections import Counter

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from annotated_rows import CONTRACTED, NOISY, TEXT, rows
from campaigns.borders import moved as slowly_moved
from hypothesis import given, settings
from hypothesis import strategies as st
from runs import augment, table

import noisegen
from noisegen import Collator
from noisegen.cli import run
from noisegen.data.columns import read_columns
from noisegen.data.pairs import stream_pairs
from noisegen.errors import UsageError
from noisegen.text.moves import Edit, Moves

CHAT = [
    {"role": "system", "content": "You are not known."},
    {"role": "user", "content": "I do not know it."},
    {"role": "assistant", "content": "It is not here."},
    {"role": "user", "content": "You are here."},
]


# Offsets.


def slow_move(clean, noisy, edits, start, end):
    """Return the span of the noisy text whose characters come from the span, by an obvious way.

    Each noisy character belongs to a clean index, or to the edit that wrote it.
    """
    owners, at = [], 0
    for edit in [*edits, Edit("", len(clean), len(clean), len(noisy), len(noisy))]:
        owners += range(at, edit.clean_start)
        owners += [edit] * (edit.noisy_end - edit.noisy_start)
        at = edit.clean_end
    inside = [
        place
        for place, owner in enumerate(owners)
        if (
            start <= owner < end
            if isinstance(owner, int)
            else start <= owner.clean_start
            and owner.clean_end <= end
            and owner.clean_start < owner.clean_end
        )
    ]
    return (inside[0], inside[-1] + 1) if inside else None


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_a_span_keeps_its_characters_and_the_edits_inside(data):
    texts = [
        "I do not know what you are going to do in Oslo",
        "because   we  do, you see!",
        "a b c",
    ]
    text = data.draw(st.sampled_from(texts))
    recipe = data.draw(st.sampled_from(["ugc-heavy", "ugc", "mix_all", "spac:drop_rate=0.3"]))
    noisy = noisegen.noise(text, recipe, seed=data.draw(st.integers(0, 500)), edits=True)
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    crossing = any(
        e.clean_start < place < e.clean_end or e.clean_start == place == e.clean_end
        for e in noisy.edits
        for place in (start, end)
    )
    moved = noisy.moved(start, end)
    if not crossing and not text[start].isspace() and not text[end - 1].isspace():
        want = slow_move(text, str(noisy), noisy.edits, start, end)
        got = moved and noisy.text[slice(*moved)]
        assert got == ((want and noisy.text[slice(*want)].strip()) or None)
    if moved:
        assert 0 <= moved[0] < moved[1] <= len(noisy.text)


SIGNS = st.text(st.sampled_from("aAbé 1\u0301🙂!\n"), max_size=4)


@settings(max_examples=500, deadline=None)
@given(st.lists(st.tuples(SIGNS.filter(len), SIGNS, SIGNS), min_size=1, max_size=4), st.data())
def test_spans_go_where_a_slow_and_obvious_way_puts_them(parts, data):
    clean, noisy, edits = "", "", []
    for kept, old, new in parts:  # unchanged text, then an edit
        clean, noisy = clean + kept, noisy + kept
        edit = Edit("x", len(clean), len(clean) + len(old), len(noisy), len(noisy) + len(new))
        edits += [edit] * (old != new)
        clean, noisy = clean + old, noisy + new
    borders = [0, *(edit.clean_start for edit in edits), *(edit.clean_end for edit in edits)]
    border = st.sampled_from(borders) | st.integers(0, len(clean))
    start, end = sorted(data.draw(st.tuples(border, border)))
    places = slowly_moved(clean, [edit._asdict() for edit in edits], noisy, (start, end))
    assert Moves(clean, noisy, edits).moved(start, end) in places


@pytest.mark.parametrize(
    ("clean", "noisy", "edit", "span", "reads"),
    [
        ("see Oslo now", "see Oslooo now", (8, 8, 8, 10), (4, 8), "Oslooo"),
        ("see Oslo now", "see Oslo!! now", (8, 8, 8, 10), (4, 8), "Oslo"),
        ("see Oslo now", "see xOslo now", (4, 4, 4, 5), (4, 8), "xOslo"),
        ("see Oslo now", "see  Oslo now", (4, 4, 4, 5), (4, 8), "Oslo"),
        ("see Oslo now", "seeOslo now", (3, 4, 3, 3), (4, 8), "Oslo"),
        ("see Oslo now", "sE oslo now", (2, 5, 1, 4), (4, 8), "oslo"),
        ("see Oslo now", "c Oslo now", (0, 3, 0, 1), (4, 8), "Oslo"),
        ("see New York", "see NY", (4, 12, 4, 6), (4, 12), "NY"),
        ("see New York", "see NY", (4, 12, 4, 6), (8, 12), "Y"),
        ("see Oslo now", "see now", (4, 9, 4, 4), (4, 8), None),
        ("I am Anna Keller", "Anna Keller", (0, 6, 0, 1), (5, 16), "Anna Keller"),
        ("I do not know", "Do not kno", (0, 3, 0, 1), (2, 8), "Do not"),
        ("see Oslo now", "SEE OSLO NOW", (0, 12, 0, 12), (4, 8), "OSLO"),
    ],
)
def test_borders_of_spans_in_edits(clean, noisy, edit, span, reads):
    moved = Moves(clean, noisy, [Edit("x", *edit)]).moved(*span)
    assert (moved and noisy[slice(*moved)]) == reads


@pytest.mark.parametrize("span", [("1", 2), (None, 3), (1.0, 2.0)])
def test_offsets_that_are_no_whole_numbers_are_an_error(span):
    with pytest.raises(TypeError, match="offsets are whole numbers, not"):
        noisegen.noise("I do not", "cont", edits=True).moved(*span)


def test_offsets_outside_of_the_text_are_an_error():
    noisy = noisegen.noise(["see you"], edits=True)[0]
    assert noisy.moved(0, 0) == (0, 0)
    with pytest.raises(ValueError, match="no span 0:9 in a text of 7 characters"):
        noisy.moved(0, 9)


# Forms of spans.


FORMS = {
    "objects": (
        [{"start": 14, "end": 25, "label": "PER"}],
        [{"start": 13, "end": 24, "label": "PER"}],
    ),
    "names": ([{"startOffset": 29, "endOffset": 33}], [{"startOffset": 28, "endOffset": 32}]),
    "lists": ([[14, 25, "PER"], [29, 33, "LOC"]], [[13, 24, "PER"], [28, 32, "LOC"]]),
    "empty": ([], []),
    "nested": ([[14, 25, "PER"], [19, 25, "NAME"]], [[13, 24, "PER"], [18, 24, "NAME"]]),
    "squad": ({"text": ["Oslo"], "answer_start": [29]}, {"text": ["Oslo"], "answer_start": [28]}),
    "no answer": ({"text": [], "answer_start": []}, {"text": [], "answer_start": []}),
    "parallel": ({"start": [14], "end": [25]}, {"start": [13], "end": [24]}),
    "lengths": ([{"offset": 14, "length": 11}], [{"offset": 13, "length": 11}]),
    "tokens beside": (
        [{"start": 14, "end": 25, "token_start": 4, "token_end": 5}],
        [{"start": 13, "end": 24, "token_start": 4, "token_end": 5}],
    ),
    "covered": (
        [{"begin": 2, "end": 8, "text": "do not", "label": "do not"}],
        [{"begin": 2, "end": 7, "text": "don't", "label": "do not"}],
    ),
    "last character": (
        [{"start": 2, "end": 7, "text": "do not"}],
        [{"start": 2, "end": 6, "text": "don't"}],
    ),
    "label studio": (
        [{"result": [{"value": {"start": 14, "end": 25, "text": "Anna Keller", "labels": ["P"]}}]}],
        [{"result": [{"value": {"start": 13, "end": 24, "text": "Anna Keller", "labels": ["P"]}}]}],
    ),
    "spacy": ({"entities": [[14, 25, "PER"]]}, {"entities": [[13, 24, "PER"]]}),
    "twitter": ([{"indices": [14, 25]}], [{"indices": [13, 24]}]),
    "scores": (
        {"entities": [[14, 25, "PER"]], "label_scores": [0.25, 0.75]},
        {"entities": [[13, 24, "PER"]], "label_scores": [0.25, 0.75]},
    ),
    "numbers beside": (
        {"start": [14, 29], "end": [25, 33], "label": [3, 7]},
        {"start": [13, 28], "end": [24, 32], "label": [3, 7]},
    ),
    "JSON in a text": ('[[14, 25,  "PER"]]', '[[13, 24,  "PER"]]'),
}


@pytest.mark.parametrize("form", FORMS)
def test_spans_follow_in_every_form(noised, form):
    was, becomes = FORMS[form]
    given_rows = [{"text": TEXT, "s": was, "n": n} for n in range(2)]
    code, made, said = noised("a.jsonl", given_rows, "--spans", "s")
    want = [{"text": NOISY, "s": becomes, "n": n} for n in range(2)]
    assert (code, rows(made)) == (0, want), said


def test_labels_in_lists_that_read_as_covered_text_stay(noised):
    was = {"start": [2], "end": [8], "text": ["do not"], "label": ["do not"]}
    code, made, _ = noised("a.jsonl", [{"text": TEXT, "s": was}], "--spans", "s")
    assert (code, rows(made)[0]["s"]) == (0, was | {"end": [7], "text": ["don't"]})


def test_spans_with_equal_covered_texts_in_a_row_keep_their_own(noised):
    row = {"text": "see Oslo and Oslo", "head_start": 4, "head_end": 8, "head": "Oslo"}
    row |= {"tail_start": 13, "tail_end": 17, "tail": "Oslo"}
    spans = ("--spans", "head_start", "--spans", "tail_start", "-t", "fing:rate=0.5")
    code, made, _ = noised("a.jsonl", [row] * 20, *spans)
    assert code == 0
    for one in rows(made):
        covered = [one["text"][one[f"{n}_start"] : one[f"{n}_end"]] for n in ("head", "tail")]
        assert [one["head"], one["tail"]] == covered
    assert len({(one["head"], one["tail"]) for one in rows(made)}) > 5


def test_the_text_of_a_row_is_not_the_covered_text_of_its_spans(noised):
    row = {"text": "I do not!", "start": 0, "end": 8}
    code, made, _ = noised("a.jsonl", [row], "--spans", "start", "-t", "punc:drop_rate=1")
    assert (code, rows(made)) == (0, [{"text": "I don't", "start": 0, "end": 7}])
    _, made, _ = noised("b.jsonl", [row], "--spans", "start", "-t", "punc:drop_rate=1", out="out")
    assert [one["end"] for one in table(made).to_pylist()] == [7]


def test_spans_of_two_columns_follow_in_csv(noised):
    code, made, said = noised(
        "a.csv", f"id,text,start,end,word\n7,{TEXT},14,25,Anna Keller\n", "--spans", "start"
    )
    assert (code, made) == (0, f"id,text,start,end,word\n7,{NOISY},13,24,Anna Keller\n")
    assert "note: start: spans with start and end of text" in said


def test_spans_that_are_named_twice_get_one_note(noised):
    row = {"text": TEXT, "spans": [[14, 25]]}
    code, made, said = noised("a.jsonl", [row], "--spans", "spans", "--spans", "spans")
    assert (code, rows(made)[0]["spans"]) == (0, [[13, 24]])
    assert said.count("note: spans: ") == 1


def test_covered_texts_of_digits_are_texts_in_csv(noised):
    text = f"id,text,answer_start,answer\n7,{TEXT} 1990,35,1990\n"
    code, made, said = noised("a.csv", text, "--spans", "answer_start")
    want = text.replace("do not", "don't").replace(",35,", ",34,")
    assert (code, made) == (0, want), said


def test_spans_follow_into_shards_and_the_noise_stays_the_same(noised):
    given_rows = [{"text": TEXT, "s": [{"start": 29, "end": 33}]}] * 3
    *_, plain = noised("a.jsonl", given_rows, "--copies", "2", out="plain")[:2]
    *_, moved = noised("a.jsonl", given_rows, "--copies", "2", "--spans", "s", out="moved")[:2]
    with_spans = table(moved).to_pylist()
    assert [row.pop("s") for row in with_spans] == [[{"start": 28, "end": 32}]] * 6
    assert with_spans == table(plain).drop_columns(["s"]).to_pylist()


def test_a_lost_span_keeps_its_row_clean_or_drops_it(noised):
    given_rows = [{"text": "a b", "s": [[1, 2, "gap"]]}, {"text": "c d", "s": [[0, 1, "c"]]}]
    spaces = ("-t", "spac:drop_rate=1,add_rate=0", "--spans", "s")
    kept = [{"text": "a b", "s": [[1, 2, "gap"]]}, {"text": "cd", "s": [[0, 1, "c"]]}]
    code, made, said = noised("a.jsonl", given_rows, *spaces)
    assert (code, rows(made)) == (3, kept)
    assert "left as is: span_lost 1" in said
    code, made, said = noised("b.jsonl", given_rows, *spaces, "--spans-lost", "drop")
    assert (code, rows(made)) == (3, kept[1:])
    assert "left out: span_lost 1" in said
    code, made, said = noised("c.jsonl", given_rows, *spaces, out="shards")
    assert [row["noisy"] for row in table(made).to_pylist()] == ["a b", "cd"]
    assert (code, "dropped or damaged: span_lost 1" in said) == (3, True)


def test_rows_that_are_dropped_for_lost_spans_are_no_rows(tmp_path):
    given_rows = [{"id": n, "text": "a b", "s": [[1, 2]][: n % 2]} for n in range(40)]
    source = tmp_path / "a.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in given_rows))
    options = {"transforms": ["spac:drop_rate=0.5,add_rate=0"], "spans": "s", "copies": 2}
    one = augment(source, tmp_path / "b.jsonl", spans_lost="drop", **options)
    count = len((tmp_path / "b.jsonl").read_text().splitlines())
    lost = 80 - count
    assert lost > 10
    assert (one.totals["rows"], one.totals["dropped"]) == (count, {"span_lost": lost})
    made = augment(source, tmp_path / "out", spans_lost="drop", **options)
    assert (made.totals["rows"], made.totals["dropped"]) == (count, {"span_lost": lost})


def test_a_span_outside_of_its_text_is_counted(noised):
    given_rows = [{"text": TEXT, "s": [[0, 99, "x"]]}, {"text": TEXT, "s": [[0, 1, "x"]]}]
    code, made, said = noised("a.jsonl", given_rows, "--spans", "s")
    assert (code, [row["text"] for row in rows(made)]) == (3, [TEXT, NOISY])
    assert "left as is: wrong_span 1" in said


def test_a_reason_that_copies_share_is_counted_once_a_row(noised):
    wrong = [{"m": [{"t": TEXT}], "s": [[0, 999]]}, {"m": [{"t": TEXT}], "s": [[0, 1]]}]
    given_rows = [*wrong, {"m": []}, {"m": None, "s": []}]
    options = ("--text-column", "m[].t", "--spans", "s=m[].t", "--copies", "3")
    code, made, said = noised("a.jsonl", given_rows, *options)
    assert "left as is: missing_text 2, wrong_span 1" in said
    texts = [(0, TEXT), (1, TEXT), (2, TEXT), (0, NOISY), (1, NOISY), (2, NOISY)]
    copies = [(row["copy"], row["m"][0]["t"]) for row in rows(made) if row["m"]]
    assert (code, copies) == (3, texts)
    assert made.splitlines()[6:] == [json.dumps(row) for row in given_rows[2:]]  # once, as they are
    lines = """m,n\n"[{""t"": ""I do not""}]",1\n[],2\n"""
    made = noised("d.csv", lines, *options[:2], "--copies", "2")[1]
    assert [line.rpartition(",")[2] for line in made.splitlines()] == ["copy", "0", "1", "0"]
    said = noised("b.jsonl", given_rows, *options, "--spans-lost", "drop")[2]
    assert "left as is: missing_text 2; left out: wrong_span 1" in said
    _, out, said = noised("c.jsonl", given_rows, *options, "--with-clean", out="out")
    assert "dropped or damaged: missing_text 2, wrong_span 1" in said
    assert table(out).num_rows == 8


def test_links_and_languages_that_copies_share_are_counted_once_a_row(noised):
    options = ("--text-column", "1", "--align", "3", "--copies", "2")
    said = noised("a.tsv", BITEXT * 10 + "I do not\tIch\t0-9\n", *options)[2]
    assert "left as is: wrong_alignment 1" in said
    given_rows = [{"text": TEXT, "lang": lang} for lang in ("en", "en", "xx")]
    said = noised("b.jsonl", given_rows, "--copies", "3", "--with-clean")[2]
    assert "left as is: unknown_language 1" in said


def test_a_wrong_span_is_told_before_a_lost_one(noised):
    spaces = ("-t", "spac:drop_rate=1,add_rate=0", "--spans", "s", "--copies", "2")
    said = noised("a.jsonl", [{"text": "a b", "s": [[1, 2], [0, 9]]}, {"text": "a"}], *spaces)[2]
    assert "left as is: wrong_span 1" in said


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_spans_follow_in_another_encoding(tmp_path, name):
    text = "I do not know Zoë of Köln"
    lines = {"a.csv": f"text,start,end,x\n{text},21,25,é\n"}
    lines["a.jsonl"] = f'{{"text": "{text}", "start": 21, "end": 25, "x": "é"}}\n'
    (tmp_path / name).write_bytes(lines[name].encode("cp1252"))
    options = {"spans": "start", "encoding": "cp1252", "transforms": ["cont"]}
    augment(tmp_path / name, tmp_path / f"b.{name}", **options)
    want = lines[name].replace("do not", "don't").replace("21", "20").replace("25", "24")
    assert (tmp_path / f"b.{name}").read_bytes() == want.encode("cp1252")


def test_rows_whose_noise_an_encoding_lacks_keep_text_and_spans(tmp_path):
    lines = [{"text": f"I am so happy à Noël {n}.", "s": [[14, 20]]} for n in range(40)]
    content = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in lines)
    (tmp_path / "a.jsonl").write_bytes(content.encode("cp1252"))
    options = {"spans": "s", "encoding": "cp1252", "transforms": ["emot:rate=1", "week:rate=1"]}
    made = augment(tmp_path / "a.jsonl", tmp_path / "b.jsonl", **options)
    after = rows((tmp_path / "b.jsonl").read_bytes().decode("cp1252"))
    kept = sum(new == row for new, row in zip(after, lines, strict=True))
    assert 0 < kept < 40
    assert made.totals["as_is"] == {"not_in_encoding": kept}
    assert not made.totals["dropped"]


@pytest.mark.parametrize("end", ["", "x", None])
def test_a_span_whose_end_is_missing_is_not_left_behind(noised, end):
    table_of = "text,start,end\n{},14,25\n{},2,{}\n".format
    code, made, said = noised("a.csv", table_of(TEXT, TEXT, end or ""), "--spans", "start")
    want = table_of(NOISY, TEXT, end or "").replace("14,25", "13,24")
    assert (code, made, "wrong_span 1" in said) == (3, want, True), said
    given_rows = [{"text": TEXT, "s": [{"start": 29, "end": end}]}, {"text": TEXT, "s": [[29, 33]]}]
    code, made, said = noised("b.jsonl", given_rows, "--spans", "s")
    assert (rows(made)[0], "wrong_span 1" in said) == (given_rows[0], True)
    covered = [{"text": TEXT, "s": [{"start": 29, "end": end, "text": "Oslo"}]}]
    made = rows(noised("c.jsonl", covered, "--spans", "s")[1])
    assert made[0]["s"] == [{"start": 28, "end": end, "text": "Oslo"}]


# Several and nested texts.


def test_chats_get_noise_in_the_turns_that_a_path_chooses(noised):
    line = '{"id":"c","messages" : ' + json.dumps(CHAT) + ', "x": 1.50}\n'
    code, made, _ = noised("a.jsonl", line, "--text-column", "messages[role=user].content")
    want = line.replace("I do not know it", "I don't know it").replace(
        'user", "content": "You are', 'user", "content": "You\'re'
    )
    assert (code, made) == (0, want)


def test_a_chat_has_one_writer_and_each_turn_its_own_noise(noised):
    turns = [{"role": "user", "content": "you are going to see what people do"}] * 40
    given_rows = [{"messages": turns}, {"messages": turns}]
    options = ("--text-column", "messages[].content", "--workers", "2", "--rows-per-shard", "1")
    run_rows = []
    for count in ("0", "2"):
        more = options[: 2 + int(count)]
        made = noised("a.jsonl", given_rows, *more, "-t", "spel:rate=0.5", out=f"out-{count}")[1]
        run_rows.append(table(made).to_pylist())
    first, second = run_rows[0]
    assert run_rows[0] == run_rows[1]
    assert len(set(first["noisy"])) > 5
    assert first["noisy"] != second["noisy"]
    assert [turn["content"] for turn in first["messages"]] == first["noisy"]
    assert first["paths"] == [f"messages[{n}].content" for n in range(40)]


def test_two_columns_and_nested_fields(noised):
    code, made, _ = noised(
        "nli.tsv",
        "premise\thypothesis\tlabel\nI do not.\tYou are not.\t2\n",
        *("--text-column", "premise", "--text-column", "hypothesis"),
    )
    assert (code, made) == (0, "premise\thypothesis\tlabel\nI don't.\tYou're not.\t2\n")
    pairs = [{"translation": {"en": "I do not", "de": "Ich"}}]
    assert rows(noised("a.jsonl", pairs, "--text-column", "translation.en")[1]) == [
        {"translation": {"en": "I don't", "de": "Ich"}}
    ]
    code, made, said = noised("b.jsonl", pairs, "--text-column", "translation.fr")
    assert code == 1
    assert "nothing at 'translation.fr'; there is: translation.de, translation.en" in said


def test_a_path_that_leads_to_no_text_says_what_is_there(noised):
    chat = [{"messages": CHAT}]
    code, _, said = noised("a.jsonl", chat, "--text-column", "messages")
    assert (code, "texts in it: messages[].content, messages[].role" in said) == (1, True)
    code, _, said = noised("b.jsonl", chat, "--text-column", "messages[role=usr].content")
    end = "no text there in the first rows; role: assistant, system, user\n"
    assert (code, said[-len(end) :]) == (2, end)
    code, _, said = noised("c.jsonl", chat, "--text-column", "messages[0.content")
    assert (code, "write .NAME for a field" in said) == (2, True)


def test_parquet_keeps_its_shape(tmp_path):
    kind = pa.list_(pa.struct({"role": pa.string(), "content": pa.string()}))
    source = pa.table({"messages": pa.array([CHAT], kind), "n": pa.array([1], pa.int16())})
    pq.write_table(source, tmp_path / "a.parquet")
    augment(
        tmp_path / "a.parquet",
        tmp_path / "b.parquet",
        transforms=["cont"],
        text_column="messages[role=user].content",
    )
    made = pq.read_table(tmp_path / "b.parquet")
    assert made.schema.equals(source.schema)
    assert [turn["content"] for turn in made["messages"][0].as_py()] == [
        "You are not known.",
        "I don't know it.",
        "It is not here.",
        "You're here.",
    ]


def test_rows_that_json_can_say_and_text_cannot_stay_as_they_are(noised):
    lines = ['{"m": [{"t": "\\ud800 do not"}]}\n', '{"m": null}\n', '{"m": [{"t": 5}]}\n']
    lines.append('{"m": [{"t": "I do not"}], "deep": ' + "[" * 100 + "]" * 100 + "}\n")
    code, made, said = noised("a.jsonl", "".join(lines), "--text-column", "m[].t")
    assert (code, made) == (3, "".join(lines).replace("I do not", "I don't"))
    assert "missing_text 3" in said
    code, _, said = noised("b.jsonl", lines[3], "--text-column", "m[].t", out="a.txt")
    assert (code, "txt holds one text per row" in said) == (2, True)


# Alignments.


BITEXT = "We do not know it .\tWir wissen es nicht .\t0-0 1-3 2-3 3-1 4-2 5-4\n"


def test_alignments_follow_the_noised_side(noised):
    code, made, said = noised("a.tsv", BITEXT, "--text-column", "1", "--align", "3")
    assert (code, made) == (0, "We don't know it .\tWir wissen es nicht .\t0-0 1-3 2-1 3-2 4-4\n")
    code, made, said = noised("b.tsv", BITEXT, "--text-column", "1")
    assert "warning: '3' looks like alignments of the text" in said


def test_an_alignment_that_does_not_fit_is_counted(noised):
    code, made, said = noised(
        "a.tsv", BITEXT * 10 + "I do not\tIch\t0-9\n", "--text-column", "1", "--align", "3"
    )
    assert (code, made.splitlines()[10]) == (3, "I do not\tIch\t0-9")
    assert "left as is: wrong_alignment 1" in said


def test_the_texts_of_an_alignment_are_found_or_asked_for(noised):
    one = {"translation": {"en": "We do not know it .", "de": "Wir wissen es gar nicht ."}}
    one["alignment"] = "0-0 1-4 2-4 3-1 4-2 5-5"
    path = ("--text-column", "translation.en", "--align", "alignment")
    code, _, said = noised("a.jsonl", [one], *path)
    assert (code, "name its texts: alignment=SOURCE,TARGET" in said) == (2, True)
    code, _, said = noised("b.jsonl", [one], *path[:2], "--align", "alignment=translation.en")
    assert (code, "name two texts: alignment=SOURCE,TARGET" in said) == (2, True)
    sides = "alignment=translation.en,translation.de"
    made = rows(noised("b.jsonl", [one], *path[:2], "--align", sides)[1])
    assert made[0]["alignment"] == "0-0 1-4 2-1 3-2 4-5"
    columns = [{"domain": "news", "en": "I do not", "de": "Ich nicht", "a": "0-0 1-1 2-1"}]
    made = rows(noised("c.jsonl", columns, "--text-column", "en", "--align", "a")[1])
    assert made[0]["a"] == "0-0 1-1"


# What is not named.


@pytest.mark.parametrize("form", [form for form in FORMS if form not in ("empty", "no answer")])
def test_spans_that_are_not_named_end_in_a_warning(noised, form):
    code, made, said = noised("a.jsonl", [{"text": TEXT, "s": FORMS[form][0]}])
    assert (code, rows(made)[0]["text"]) == (0, NOISY)
    assert said.rstrip().splitlines()[-1].startswith("warning: 's"), said
    assert "looks like spans of the text, which the noise moves: add --spans s" in said


@pytest.mark.parametrize(
    "value", [{"x": 3, "y": 5}, [900, 950], {"start": 2001, "end": 2005}, "10-12", 7]
)
def test_other_columns_are_not_warned_of(noised, value):
    assert "warning" not in noised("a.jsonl", [{"text": TEXT, "other": value}])[2]


def test_a_class_per_token_is_no_span(noised):
    given_rows = [{"text": TEXT, "ner": classes} for classes in ([0, 1], [0, 1, 1], [])]
    assert "warning" not in noised("a.jsonl", given_rows)[2]


def test_the_manifest_keeps_the_warning(noised):
    out = noised("a.jsonl", [{"text": TEXT, "s": [[14, 25, "x"]]}], out="out")[1]
    assert "--spans s" in json.loads((out / "manifest.json").read_text())["totals"]["warnings"][0]


def test_spans_that_fit_several_texts_need_a_name(noised):
    given_rows = [{"a": TEXT, "b": TEXT, "s": [[14, 25, "x"]]}]
    both = ("--text-column", "a", "--text-column", "b")
    code, _, said = noised("a.jsonl", given_rows, *both, "--spans", "s")
    assert (code, "--spans s: of 'a' or 'b'? Write --spans s=PATH" in said) == (2, True)
    assert rows(noised("b.jsonl", given_rows, *both, "--spans", "s=b")[1])[0]["s"] == [
        [13, 24, "x"]
    ]


def test_tokens_go_with_one_text(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"t": ["a"], "l": ["O"], "s": [[0, 1]]}\n')
    with pytest.raises(UsageError, match="--tokens goes with one text"):
        augment(tmp_path / "a.jsonl", tmp_path / "o.jsonl", tokens="t", labels="l", spans="s")


# Shards of rows with several texts, and other readers of paths.


def test_commands_read_each_text_of_a_shard(noised, capfd, tmp_path):
    chats = [
        {"messages": [{"role": "user", "content": f"I do not know {n} {k}"} for k in range(3)]}
        for n in range(9)
    ]
    out = noised("a.jsonl", chats, "--text-column", "messages[].content", "--edits", out="out")[1]
    assert run(["stats", str(out), "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["rows"] == 27
    assert run(["learn", str(out), "-o", str(tmp_path / "p.json")]) == 0
    assert "27 pairs" in capfd.readouterr().err
    assert run(["review", "make", str(out), "-o", str(tmp_path / "r.sqlite"), "--rows", "2"]) == 0
    pairs = list(stream_pairs([str(out)], Counter()))
    assert pairs[4] == ("I don't know 1 1", "I do not know 1 1")


def test_texts_at_paths_are_previewed_prepared_and_paired(noised, capfd, tmp_path):
    source = tmp_path / "a.jsonl"
    edits = [{"s": {"t": "I don't know it."}, "c": {"t": "I do not know it."}}] * 2
    source.write_text(json.dumps({"e": edits}) + "\n")
    assert run(["preview", str(source), "--text-column", "e[].c.t", *CONTRACTED]) == 0
    assert capfd.readouterr().out.count("I don't") == 2
    rows_read = read_columns(str(source), [("e[].s.t", "e[].c.t")], "a test")
    assert rows_read.columns["e[].c.t"] == ["I do not know it."] * 2
    made = noisegen.prepare(source, tmp_path / "p", text_column="e[].c.t", lang="en")
    assert made.totals["sentences"] == 2
    options = ("--noisy-column", "e[].s.t", "--clean-column", "e[].c.t", "--lang", "en")
    assert run(["mine-pairs", str(source), "-o", str(tmp_path / "m"), *options]) == 0
    assert run(["mine-pairs", str(source), "-o", str(tmp_path / "n"), "--lang", "en"]) == 1
    assert "among: e[].c.t, e[].s.t; name the paths" in capfd.readouterr().err


def test_a_mapper_noises_texts_at_paths_and_moves_spans():
    batch = {"m": [[{"r": "u", "t": "I do not know"}, {"r": "s", "t": "I do not"}]], "id": [7]}
    mapper = noisegen.Mapper("cont", column="m[r=u].t")
    assert mapper(batch) == {"m": [[{"r": "u", "t": "I don't know"}, {"r": "s", "t": "I do not"}]]}
    assert batch["m"][0][0]["t"] == "I do not know"
    spans = noisegen.Mapper("cont", spans=["s"])
    made = spans({"text": [TEXT, None], "s": [[[29, 33, "LOC"]], []]}, [0, 1])
    assert made == {"s": [[[28, 32, "LOC"]], []], "noisy": [NOISY, None]}
    with pytest.raises(UsageError, match="no column 'x' among: text"):
        noisegen.Mapper("cont", spans="x")({"text": ["a"]}, [0])


def test_a_mapper_gives_the_noise_of_augment(tmp_path):
    chats = [
        {"id": n, "m": [{"t": f"you are going to see it {n} {k}"} for k in range(4)]}
        for n in range(9)
    ]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in chats))
    augment(tmp_path / "a.jsonl", tmp_path / "out", text_column="m[].t", recipe="ugc-heavy", seed=3)
    made = noisegen.Mapper("ugc-heavy", seed=3, column="m[].t")(
        {name: [row[name] for row in chats] for name in ("id", "m")}
    )
    assert made["m"] == table(tmp_path / "out")["m"].to_pylist()


def test_chats_with_images_get_noise_in_all_their_texts(noised):
    parts = [{"type": "text", "text": "I do not"}, {"type": "image_url", "url": "x"}]
    chats = [
        {"messages": [{"role": "user", "content": content}]} for content in (parts, "I do not")
    ]
    text = "messages[role=user].content"
    both = ("--text-column", text, "--text-column", f"{text}[type='text'].text")
    code, made, said = noised("a.jsonl", chats, *both)
    assert (code, made.count("don't")) == (0, 2), said


def test_a_wrong_name_of_spans_names_the_columns(noised):
    code, _, said = noised("a.jsonl", [{"text": TEXT, "label": [[14, 25]]}], "--spans", "labels")
    assert (code, "no column 'labels' among: text, label; did you mean 'label'?" in said) == (
        1,
        True,
    )


def test_nested_columns_keep_their_types(tmp_path):
    kinds = {
        "m": pa.list_(
            pa.struct([("t", pa.large_string()), ("n", pa.int16()), ("w", pa.float32())])
        ),
        "s": pa.struct([("text", pa.list_(pa.string())), ("answer_start", pa.list_(pa.int32()))]),
    }
    row = {"m": [{"t": TEXT, "n": 7, "w": 0.5}], "s": {"text": ["Oslo"], "answer_start": [29]}}
    source = pa.table({name: pa.array([row[name]], kind) for name, kind in kinds.items()})
    pq.write_table(source, tmp_path / "a.parquet")
    for out in ("b.parquet", "out"):
        augment(
            tmp_path / "a.parquet",
            tmp_path / out,
            transforms=["cont"],
            text_column="m[].t",
            spans="s=m[].t",
        )
    rows_made = [pq.read_table(tmp_path / "b.parquet"), table(tmp_path / "out")]
    for made in rows_made:
        assert made["m"].type == kinds["m"]
        assert made["m"][0].as_py() == [{"t": NOISY, "n": 7, "w": 0.5}]
        assert made["s"][0].as_py() == {"text": ["Oslo"], "answer_start": [28]}


@pytest.mark.parametrize(
    ("was", "becomes"),
    [
        ({"start": "29", "end": "33"}, {"start": "28", "end": "32"}),
        ({"start": 29.0, "end": 33.0}, {"start": 28.0, "end": 32.0}),
        ([29.0, 33.0, "LOC"], [28.0, 32.0, "LOC"]),
    ],
)
def test_offsets_may_be_other_whole_numbers(noised, was, becomes):
    given_rows = [{"text": TEXT, "s": [was]}, {"text": TEXT, "s": [was]}]
    assert rows(noised("a.jsonl", given_rows, "--spans", "s")[1])[0]["s"] == [becomes]


@pytest.mark.parametrize(
    "wrong",
    [
        [[-3, 2, "X"]],
        [{"start": 2}],
        "[(2, 8)]",
        [[2, 900]],
        [["14", "25", "X"]],
        [["X", 14, 25]],
        [[14.5, 25, "X"]],
        [[-5, -1, "X"]],
        [[14, None, "X"]],
        5,
        [{"start": "x", "end": "y"}],
        [14.5, 25, "X"],
        ["14:25"],
        {"start": [14], "end": [25, 33]},
        {"start": [14, "x"], "end": [25, "y"]},
        {"start": 29, "end": 33, "text": "Rome"},
        {"start": [29], "end": [33], "text": ["Rome"]},
    ],
)
def test_spans_that_cannot_be_moved_are_counted(noised, wrong):
    given_rows = [{"text": TEXT, "s": wrong}, {"text": TEXT, "s": [[29, 33]]}]
    code, made, said = noised("a.jsonl", given_rows, "--spans", "s")
    assert (code, rows(made)[0]) == (3, given_rows[0]), said
    assert "wrong_span 1" in said


def test_an_alignment_without_one_of_its_texts_is_counted(noised):
    one = {"t": {"en": "We do not", "de": None}, "a": "0-0"}
    two = {"t": {"en": "We do not", "de": "Wir nicht"}, "a": "0-0"}
    options = ("--text-column", "t.en", "--align", "a=t.en,t.de")
    code, _, said = noised("a.jsonl", [one, *[two] * 9], *options)
    assert (code, "wrong_alignment 1" in said) == (3, True)


# Spans belong to the text of their item.


TURNS = [
    {"text": "I do not know Oslo.", "entities": [[14, 18]]},
    {"text": "You are in Rome.", "entities": [[11, 15]]},
]


@pytest.mark.parametrize("spans", ["turns[].entities", "turns"])
def test_spans_of_items_whose_text_gets_no_noise_stay(noised, spans):
    options = ("--text-column", "turns[0].text", "--spans", spans)
    code, made, _ = noised("a.jsonl", [{"turns": TURNS}], *options)
    want = [{"text": "I don't know Oslo.", "entities": [[13, 17]]}, TURNS[1]]
    assert (code, rows(made)) == (0, [{"turns": want}])
    assert Collator("cont", column="turns[0].text", spans=spans)([{"id": 0, "turns": TURNS}]) == {
        "id": [0],
        "turns": [want],
    }


PAIR = {"premise": TURNS[0]["text"], "hypothesis": TURNS[1]["text"]}
PAIR |= {"p": TURNS[0]["entities"], "h": TURNS[1]["entities"]}
ITEM = [["I do not know Oslo.", {"entities": [[14, 18, "LOC"]]}]]


@pytest.mark.parametrize(
    ("given", "texts", "spans"),
    [
        (PAIR, "premise", ["h=hypothesis", "p"]),
        (PAIR, "hypothesis", ["h", "p=premise"]),
        ({"turns": TURNS[:1]}, "turns[].text", ["turns[0].entities"]),
        ({"a": [{"t": PAIR["premise"], "v": [{"s": [[14, 18]]}]}]}, "a[].t", ["a[0].v[].s"]),
        ({"data": ITEM}, "data[][0]", ["data[][1].entities"]),
    ],
)
def test_spans_that_are_named_are_not_warned_of(noised, given, texts, spans):
    named = [part for one in spans for part in ("--spans", one)]
    code, made, said = noised("a.jsonl", [given], "--text-column", texts, *named)
    assert (code, "warning" in said) == (0, False), said
    assert rows(made) != [given]


def test_spans_of_texts_without_noise_are_noted(noised):
    options = ("--text-column", "premise", "--spans", "h=hypothesis", "--spans", "p")
    said = noised("a.jsonl", [PAIR], *options)[2]
    assert "note: h=hypothesis: spans of texts without noise stay as they are" in said


def test_spans_beside_the_turns_of_a_chat_are_refused(noised):
    given = {"m": [{"t": TEXT}, {"t": "Where is it?"}], "s": [[14, 25]]}
    for name, spans in (("a.jsonl", "s"), ("b.jsonl", "s=m[].t")):
        code, _, said = noised(name, [given], "--text-column", "m[].t", "--spans", spans)
        assert (code, f"--spans {spans}: of m[0].t ('I do not know Anna" in said) == (2, True)
        assert "m[1].t ('Where is it?') in one row? Put the spans into the items" in said
        assert "or name a text, as in --spans s=m[0].t" in said
    options = ("--text-column", "m[].t", "--spans", "s=m[0].t")
    code, made, _ = noised("c.jsonl", [given], *options)
    assert (code, rows(made)[0]["s"]) == (0, [[13, 24]])


NO_SPANS = [
    -1,
    [[-1, -1]],
    {"entities": [], "cats": {"news": 1.0}},
    [{"id": 1, "completed_by": 5, "result": []}],
    {"start": -1, "end": -1, "text": ""},
]


@pytest.mark.parametrize("empty", NO_SPANS)
def test_rows_whose_annotations_have_no_spans_get_noise(noised, empty):
    given_rows = [{"text": TEXT, "s": empty}, {"text": TEXT, "s": [[29, 33]]}]
    code, made, said = noised("a.jsonl", given_rows, "--spans", "s")
    assert (code, rows(made)[0]) == (0, {"text": NOISY, "s": empty}), said


@pytest.mark.parametrize("spans", ["label[5]", "label[t=x]"])
def test_a_path_to_spans_that_no_row_has_is_refused(noised, spans):
    given = {"text": TEXT, "label": [{"t": "y", "start": 14, "end": 25}]}
    code, _, said = noised("a.jsonl", [given] * 2, "--spans", spans)
    assert (code, f"--spans {spans}: nothing there in the first rows" in said) == (2, True)


@pytest.mark.parametrize("links", [[[0, 0], [1, 3]], ["0-0", "1-3"], "0-0, 1-3"])
def test_alignments_in_another_form_are_refused(noised, links):
    given = [{"en": TEXT, "de": "Ich kenne sie nicht .", "a": links}]
    for name, align in (("a.jsonl", "a"), ("b.jsonl", "a=en,de")):
        code, _, said = noised(name, given, "--text-column", "en", "--align", align)
        assert (code, f"--align {align}: no links there in the first rows" in said) == (2, True)


def test_covered_texts_that_are_elsewhere_in_all_first_rows_are_refused(noised):
    given = [{"text": TEXT, "s": [{"start": 29, "end": 33, "text": "Rome"}]}] * 2
    code, _, said = noised("a.jsonl", given, "--spans", "s")
    assert (code, "none fits text in the first rows" in said) == (2, True)


def test_an_alignment_with_one_text_is_refused(noised):
    given = [{"en": TEXT, "a": "0-0"}]
    code, _, said = noised("a.jsonl", given, "--text-column", "en", "--align", "a=en")
    assert (code, "--align a=en: name two texts: a=SOURCE,TARGET" in said) == (2, True)


def test_a_number_among_texts_is_the_same_in_every_output(tmp_path):
    rows = [{"a": "I do not know", "b": "You are here"}, {"a": 3, "b": "I do not go"}]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    options = {"text_column": ["a", "b"], "transforms": "cont"}
    for out in ("b.tsv", "b.jsonl", "b.parquet", "out"):
        made = noisegen.augment(tmp_path / "a.jsonl", tmp_path / out, **options)
        assert made.totals["dropped"] == {}
    assert (tmp_path / "b.tsv").read_text().endswith("3\tI don't go\n")
    assert json.loads((tmp_path / "b.jsonl").read_text().splitlines()[1])["a"] == 3
    last = pq.read_table(tmp_path / "out" / "data").to_pylist()[-1]
    assert (last["a"], last["clean"]) == ("3", ["I do not go"])


def test_a_value_that_is_kept_as_text_is_not_left_out(tmp_path):
    lines = [json.dumps({"text": "see " * 30, "n": 1})] * 20_000 + ['{"text": "see", "n": "one"}']
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    made = noisegen.augment(tmp_path / "a.jsonl", tmp_path / "b.tsv", transforms="leet:rate=0")
    assert made.summary().endswith("; damaged: unexpected_field 1")


def test_the_card_says_which_columns_changed(tmp_path):
    row = {"a": "I do not know", "b": "you", "ents": [[9, 13, "X"]], "n": 1}
    (tmp_path / "a.jsonl").write_text(json.dumps(row) + "\n")
    options = {"text_column": ["a", "b"], "spans": "ents=a", "transforms": "cont"}
    noisegen.augment(tmp_path / "a.jsonl", tmp_path / "out", **options)
    card = (tmp_path / "out" / "README.md").read_text()
    assert "| a | string, with noise |" in card
    assert "| n | int64, as it came |" in card
    assert re.search(r"\| ents \| .*, moved with the noise \|", card)
    assert "| paths | list<element: string>, the places of the texts in their row |" in card
    assert "| clean | the texts as given, in the order of `paths` |" in card


def test_the_card_says_that_an_alignment_moved(tmp_path):
    (tmp_path / "a.tsv").write_text("en\tde\tlinks\nwe do not\twir nicht\t0-0 2-1\n")
    options = {"text_column": "en", "align": "links", "transforms": "cont"}
    noisegen.augment(tmp_path / "a.tsv", tmp_path / "out", **options)
    card = (tmp_path / "out" / "README.md").read_text()
    assert "| links | string, moved with the noise |" in card
    assert "| de | string, as it came |" in card
