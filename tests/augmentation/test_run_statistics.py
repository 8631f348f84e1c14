"""The figures of a run agree with a slow count of the same rows; tables and pictures are whole."""

import io
import json
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein
from rich.cells import cell_len
from rich.console import Console
from runs import augment
from shard_files import MIX_ALL, ROWS, edits_column, shard

from noisegen.augmentation import statistics, statistics_report
from noisegen.augmentation.statistics import (
    EditKind,
    LengthBin,
    SampleSizes,
    Statistics,
    TransformFigures,
    TransformsPerRow,
    wilson,
)
from noisegen.cli import run
from noisegen.errors import NoisegenError
from noisegen.report.terminal import bar


def printed(found: Statistics, width: int = 80) -> str:
    file = io.StringIO()
    statistics_report.render(found, Console(file=file, width=width))
    return file.getvalue()


@pytest.fixture
def found(tmp_path: Path) -> Statistics:
    (tmp_path / "manifest.json").write_text(MIX_ALL)
    return statistics.measure(shard(tmp_path, ROWS, edits=edits_column()))


def test_rows_and_rates_are_exact(found: Statistics) -> None:
    assert (found.shards, found.rows, found.copies, found.changed) == (1, 5, 1, 3)
    assert (found.clean_characters, found.noisy_characters) == (58, 54)
    assert (found.character_errors, found.clean_words, found.word_errors) == (8, 12, 7)
    assert (found.cer, found.wer, found.changed_share) == (8 / 58, 7 / 12, 3 / 5)
    assert found.length_ratio == 54 / 58


def test_transforms_are_counted_alone_and_together(found: Statistics) -> None:
    assert found.transforms == (
        TransformFigures("abr1", 1, 1, 1, 1.0, 2, 5, 1),
        TransformFigures("leet", 1, 0, 0, None, 2, 2, 1),
        TransformFigures("spac", 3, 2, 1, 0.5, 2, 2, 2),
    )


def test_a_transform_that_is_never_alone_is_said_to_be_so(tmp_path: Path) -> None:
    text = printed(statistics.measure(shard(tmp_path, ROWS)))
    lines = {line.split()[0]: line.split() for line in text.splitlines() if line}
    assert lines["abr1"][1:6] == ["1", "1", "of", "1", "100.0%"]
    assert lines["leet"][1:] == ["1", "never", "alone"]


def test_edits_tell_of_transforms_that_are_never_alone(found: Statistics) -> None:
    lines = {line.split()[0]: line.split() for line in printed(found).splitlines() if line}
    assert lines["leet"][1:4] == ["1", "1", "2"]
    assert lines["spac"][1:4] == ["3", "2", "2"]


def test_edit_kinds_come_from_the_column(found: Statistics) -> None:
    assert (found.edit_kinds.source, found.edit_kinds.is_sample) == ("edits", False)
    assert found.edit_kinds.kinds == (
        EditKind("substitution", 3, 0),
        EditKind("insertion", 0, 1),
        EditKind("deletion", 0, 1),
    )


def test_edit_kinds_come_from_an_alignment_without_the_column(tmp_path: Path) -> None:
    found = statistics.measure(shard(tmp_path, ROWS[1:]))
    assert (found.edit_kinds.source, found.edit_kinds.rows) == ("alignment", 2)
    assert found.edit_kinds.kinds == (
        EditKind("substitution", 1, 0),
        EditKind("insertion", 0, 1),
        EditKind("deletion", 0, 1),
    )
    assert {line.edits for line in found.transforms} == {None}


def test_a_substituted_space_is_of_spaces() -> None:
    assert statistics.edit_kind(" ", "_") == ("substitution", True)
    assert statistics.edit_kind("_", " ") == ("substitution", True)
    assert statistics.edit_kind("a b", "ab") == ("substitution", False)


def test_the_edits_column_counts_only_if_every_shard_has_it(tmp_path: Path) -> None:
    shard(tmp_path, ROWS, edits=edits_column())
    assert statistics.measure(shard(tmp_path, ROWS, 1)).edit_kinds.source == "alignment"


def test_mix_all_lets_expect_a_binomial(found: Statistics) -> None:
    drawn = found.transforms_per_row
    assert [line.rows for line in drawn] == [1, 3, 1, *[0] * 10]
    assert [line.expected for line in drawn[:2]] == pytest.approx([5 * 0.9**12, 6 * 0.9**11])
    assert sum(line.expected or 0 for line in drawn) == pytest.approx(5)


@pytest.mark.parametrize(
    "manifest",
    [
        "─" * 54,
        "{",
        "[]",
        '{"recipe": "fing"}',
        '{"recipe": {"name": "light", "steps": []}}',
        '{"recipe": {"name": "mix_all", "steps": []}}',
    ],
)
def test_another_recipe_lets_expect_nothing(tmp_path: Path, manifest: str) -> None:
    (tmp_path / "manifest.json").write_text(manifest)
    drawn = statistics.measure(shard(tmp_path, ROWS)).transforms_per_row
    assert drawn == (
        TransformsPerRow(0, 1, None),
        TransformsPerRow(1, 3, None),
        TransformsPerRow(2, 1, None),
    )


def test_chances_that_were_set_change_the_expectation(tmp_path: Path) -> None:
    steps = [{"shuffle": [{"fing": {"p": 1}}, {"spac": {"p": 0.5, "add_rate": 0.1}}]}]
    recipe = {"name": "mix_all", "steps": steps}
    (tmp_path / "manifest.json").write_text(json.dumps({"recipe": recipe}))
    drawn = statistics.measure(shard(tmp_path, ROWS)).transforms_per_row
    assert [line.expected for line in drawn] == [0, 2.5, 2.5]


def test_more_transforms_than_the_recipe_has_were_not_expected(tmp_path: Path) -> None:
    steps = [{"shuffle": [{"fing": {"p": 0.5}}]}]
    recipe = {"name": "mix_all", "steps": steps}
    (tmp_path / "manifest.json").write_text(json.dumps({"recipe": recipe}))
    assert statistics.measure(shard(tmp_path, ROWS)).transforms_per_row[2].expected == 0


def test_row_lengths_are_counted_on_both_sides(found: Statistics) -> None:
    assert found.row_lengths[:3] == (
        LengthBin(0, 10, 1, 1),
        LengthBin(10, 20, 4, 4),
        LengthBin(20, 40, 0, 0),
    )
    assert found.row_lengths[-1] == LengthBin(1280, None, 0, 0)


def test_the_cer_of_changed_rows_is_binned(tmp_path: Path) -> None:
    pairs = [("a" * 100, "a" * 99), ("ab", "xb"), ("ab", "xyz"), ("", "new"), ("same", "same")]
    rows = [{"clean": clean, "noisy": noisy, "transforms": []} for clean, noisy in pairs]
    bins = statistics.measure(shard(tmp_path, rows)).cer_of_changed_rows
    assert {place: rows for place, rows in enumerate(bins) if rows} == {1: 1, 50: 1, 100: 2}


def test_type_token_ratio_keeps_long_repeats(tmp_path: Path) -> None:
    rows = [{"clean": "soo so so", "noisy": "soo sooooo :-) @me", "transforms": []}]
    found = statistics.measure(shard(tmp_path, rows)).type_token_ratio
    assert (found.rows, found.is_sample) == (1, False)
    assert (found.clean, found.noisy, found.quotient) == (2 / 3, 1.0, 1.5)


def test_type_token_ratio_is_of_one_version_of_the_texts(tmp_path: Path) -> None:
    source = tmp_path / "news.txt"
    source.write_text("".join(f"The ship {n} left the harbour at noon.\n" for n in range(40)))
    ratios = []
    for name, versions in (("one", {}), ("more", {"copies": 3, "strength": "x1,x2"})):
        augment(source, tmp_path / name, transforms="fing:rate=0.1", seed=7, **versions)
        ratios.append(statistics.measure(tmp_path / name).type_token_ratio)
    assert ratios[0] == ratios[1]


def test_large_runs_are_sampled_evenly(tmp_path: Path) -> None:
    few = SampleSizes(aligned_rows=10, token_rows=10, batch_rows=7)
    rows = [{"clean": f"a{i} b", "noisy": f"a{i} bc", "transforms": ["x"]} for i in range(95)]
    shard(tmp_path, rows[:50])
    found = statistics.measure(shard(tmp_path, rows[50:], 1), few)
    assert (found.type_token_ratio.rows, found.type_token_ratio.is_sample) == (10, True)
    assert (found.edit_kinds.rows, found.edit_kinds.is_sample) == (6, True)
    assert found.edit_kinds.kinds[1] == EditKind("insertion", 6, 0)
    assert found.character_errors == 95
    text = printed(found)
    assert "a sample of 6 changed rows" in text
    assert "10 rows (a sample)" in text


def test_copies_are_counted(tmp_path: Path) -> None:
    found = statistics.measure(shard(tmp_path, ROWS, copy=pa.array([0, 1, 0, 1, 0], pa.int32())))
    assert found.copies == 2
    assert "5 in 1 shard, 2 copies of each" in printed(found)


@given(
    st.lists(
        st.tuples(
            st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
            st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
            st.lists(st.sampled_from(["fing", "x:[red]", "京"]), max_size=3),
        ),
        max_size=12,
    )
)
def test_any_unicode_gives_the_slow_count(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str, list[str]]]
) -> None:
    names = ("clean", "noisy", "transforms")
    folder = tmp_path_factory.mktemp("run")
    found = statistics.measure(shard(folder, [dict(zip(names, row, strict=True)) for row in rows]))
    assert found.character_errors == sum(Levenshtein.distance(*row[:2]) for row in rows)
    words = [(row[0].split(), row[1].split()) for row in rows]
    assert found.word_errors == sum(Levenshtein.distance(*pair) for pair in words)
    assert found.changed == sum(row[0] != row[1] for row in rows) == sum(found.cer_of_changed_rows)
    assert sum(line.rows for line in found.transforms_per_row) == found.rows == len(rows)
    assert sum(line.clean for line in found.row_lengths) == len(rows)
    assert sum(line.rows for line in found.transforms) == sum(len(set(row[2])) for row in rows)
    assert json.loads(json.dumps(found.to_dict()))["changed"] == found.changed
    assert "row lengths" in printed(found)


@pytest.mark.parametrize("width", [80, 120])
def test_the_tables_fit_the_terminal(found: Statistics, width: int) -> None:
    text = printed(found, width)
    assert all(cell_len(line) <= width for line in text.splitlines())
    assert "…" not in text


def test_the_tables_look_like_this(found: Statistics) -> None:
    lines = [line.rstrip() for line in printed(found).splitlines()]
    assert lines[:11] == [
        "the run",
        "rows        5 in 1 shard",
        "changed     3 (60.0%)",
        "CER         13.79% of 58 characters",
        "WER         58.33% of 12 words",
        "length      noisy / clean 0.9310 in characters",
        "type/token  clean 0.9167, noisy 0.9167, noisy / clean 1.0000; 5 rows",
        "",
        "transforms per row",
        "    rows   share   expected",
        "─" * 54,
    ]
    assert "abr1      1         1            5   ████████████████████████" in lines


def test_a_bar_shows_what_is_not_nothing() -> None:
    assert bar(1, 10_000) == "▏"
    assert bar(0, 10_000) == bar(0, 0) == ""
    assert bar(1, 1) == "█" * 24


def test_an_empty_run_has_no_rates(tmp_path: Path) -> None:
    found = statistics.measure(shard(tmp_path, []))
    assert (found.rows, found.cer, found.wer, found.changed_share) == (0, None, None, None)
    assert "CER         - of 0 characters" in printed(found)
    for name in ("plot.png", "plot.html"):
        statistics_report.plot(found, tmp_path / name)


def failing(tmp_path: Path) -> str:
    with pytest.raises(NoisegenError) as caught:
        statistics.measure(tmp_path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_no_folder_and_no_shard_are_told_apart(tmp_path: Path) -> None:
    assert "there is no folder" in failing(tmp_path / "none")
    (tmp_path / "file.txt").write_text("see you\n")
    assert "file.txt' is a file, no folder of a run" in failing(tmp_path / "file.txt")
    assert "no part-*.parquet in" in failing(tmp_path)


def test_a_shard_that_is_not_parquet_is_named(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "part-00000.parquet").write_text("text")
    assert "part-00000.parquet: " in failing(tmp_path)


def test_a_shard_damaged_inside_is_named(tmp_path: Path) -> None:
    rows = [{"clean": os.urandom(200).hex(), "noisy": "x", "transforms": []} for _ in range(50)]
    path = shard(tmp_path, rows) / "data" / "part-00000.parquet"
    content = bytearray(path.read_bytes())
    content[4:4000] = b"\xff" * 3996
    path.write_bytes(content)
    assert "part-00000.parquet: " in failing(tmp_path)


@pytest.mark.parametrize("column", ["id", "clean", "noisy", "transforms"])
def test_a_shard_that_lacks_a_column_is_named(tmp_path: Path, column: str) -> None:
    path = shard(tmp_path, ROWS) / "data" / "part-00000.parquet"
    pq.write_table(pq.read_table(path).drop_columns([column]), path)
    assert f"part-00000.parquet' has no column '{column}'" in failing(tmp_path)


@pytest.mark.parametrize("column", ["clean", "noisy", "transforms", "copy", "edits"])
def test_a_column_of_another_type_is_named(tmp_path: Path, column: str) -> None:
    shard(tmp_path, ROWS, **{column: pa.array([0.5] * len(ROWS))})
    assert f"column '{column}' of" in failing(tmp_path)


def large(kind: pa.DataType) -> pa.DataType:
    """Return a type as polars writes it."""
    if kind == pa.string():
        return pa.large_string()
    if kind == pa.int32():
        return pa.int64()
    if isinstance(kind, pa.ListType):
        return pa.large_list(large(kind.value_type))
    if isinstance(kind, pa.StructType):
        return pa.struct([(field.name, large(field.type)) for field in kind])
    return kind


def test_shards_that_pandas_or_polars_wrote_again_count_alike(tmp_path: Path) -> None:
    folder = shard(tmp_path, ROWS, edits=edits_column())
    before = statistics.measure(folder)
    [path] = folder.glob("data/part-*.parquet")
    table = pq.read_table(path)
    schema = pa.schema([(field.name, large(field.type)) for field in table.schema])
    pq.write_table(table.cast(schema), path)
    assert pq.read_schema(path).field("transforms").type != table.schema.field("transforms").type
    assert statistics.measure(folder) == before


def test_edits_without_their_fields_are_named(tmp_path: Path) -> None:
    shard(tmp_path, ROWS, edits=pa.array([[{"transform": "fing"}]] * len(ROWS)))
    assert "column 'edits' of" in failing(tmp_path)


def test_a_row_without_a_text_is_an_error(tmp_path: Path) -> None:
    shard(tmp_path, [{"clean": "a", "noisy": None, "transforms": []}])
    assert "column 'noisy' of" in failing(tmp_path)
    text = pa.array([b"\xff"]).cast(pa.binary()).view(pa.string())
    shard(tmp_path, [{"clean": "a", "noisy": "b", "transforms": []}], noisy=text)
    assert "part-00000.parquet: " in failing(tmp_path)


# The interval of a share: by the literature, and by the equation that defines it.


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    # Newcombe (1998), table I, method 3: the score method without correction.
    [
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilsons_interval_is_that_of_the_literature(successes, n, low, high):
    assert wilson(successes / n, n) == pytest.approx((low, high), abs=5e-5)


# The bounds satisfy |p - bound| = z sqrt(bound (1 - bound) / n), which defines them.
@pytest.mark.parametrize(("hits", "n"), [(0, 15), (1, 15), (14, 15), (71, 75), (75, 75), (1, 2)])
def test_wilson_solves_its_equation(hits, n):
    for bound in wilson(hits / n, n):
        assert abs(hits / n - bound) == pytest.approx(
            1.959964 * (bound * (1 - bound) / n) ** 0.5, abs=1e-6
        )


def test_wilson_of_nothing_is_everything():
    assert wilson(0.0, 0) == (0.0, 1.0)


def test_a_huge_row_is_measured(tmp_path: Path) -> None:
    clean = "see you tomorrow " * 4_000 + "1" * 20_000  # a run of digits takes nltk its square
    columns = {"id": [0], "clean": [clean], "noisy": [clean.replace("you", "yuo", 100)]}
    (tmp_path / "data").mkdir()
    rows = pa.table(columns | {"transforms": pa.array([["x"]])})
    pq.write_table(rows, tmp_path / "data" / "part-00000.parquet")
    found = statistics.measure(tmp_path)
    assert found.clean_words == 12_001
    assert sum(kind.characters for kind in found.edit_kinds.kinds) == 200
    assert found.type_token_ratio.rows == 1


def test_several_texts_of_a_row_are_counted_as_texts(tmp_path, capsys):
    (tmp_path / "a.tsv").write_text("a\tb\nI do not know\tyou are here\n")
    columns = ["--text-column", "a", "--text-column", "b"]
    augment(tmp_path / "a.tsv", tmp_path / "out", text_column=["a", "b"], transforms="cont")
    assert run(["stats", str(tmp_path / "out")]) == 0
    told = capsys.readouterr().out
    assert "texts       2 in 1 shard" in told
    assert "row" not in told
    assert run(["preview", str(tmp_path / "a.tsv"), *columns, "-t", "cont"]) == 0
    assert "2 texts, 2 changed" in capsys.readouterr().out


def test_a_run_that_has_not_ended_is_said_to_be_so(tmp_path: Path) -> None:
    source, out = tmp_path / "clean.txt", tmp_path / "out"
    source.write_text("".join(f"a row of the number {number}\n" for number in range(40)))
    for part, end in (("1/2", "; the run is incomplete"), ("2/2", "")):
        augment(source, out, rows_per_shard=10, part=part)
        found = statistics.measure(out)
        assert found.has_ended == (not end)
        shards = found.shards
        line = printed(found, 120).splitlines()[1]
        assert line.rstrip().endswith(f"{found.rows} in {shards} shards{end}")
    assert shards == 4
