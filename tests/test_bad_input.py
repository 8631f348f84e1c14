"""What goes wrong for a user is one clear line and the right exit code, never a traceback."""

import gzip
import json
import os
import shutil
import struct
import subprocess
import sys
import zlib

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from runs import DEMO, command, left_over, table
from source_files import on_stdin

from noisegen.cli import run
from noisegen.runs import executors

FING = ("-t", "fing:rate=0.1")


@pytest.fixture
def failed(tmp_path, capfd):
    """Run `augment` and return its exit code and the lines of stderr."""

    def check(source, *options, out="out"):
        has_langs = source == DEMO and "--lang" not in options
        lang = ("--lang", "en") if has_langs else ()  # rows in one language: no hint
        words = ["augment", source, "-o", tmp_path / out, "--workers", "1", *lang, *options]
        code = run(list(map(str, words)))
        stdout, stderr = capfd.readouterr()
        assert "Traceback" not in stderr
        assert "Exception ignored" not in stderr
        assert stdout == ""
        if (tmp_path / out).is_dir():
            assert left_over(tmp_path / out) == []
        return code, stderr.splitlines()

    return check


@pytest.fixture
def file(tmp_path):
    def write(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.fixture
def plug_in(file):
    """Write a plug-in: a name (they stay registered), and the body of its function."""

    def write(name, body, head=""):
        return file(
            f"{name}.py",
            f"import noisegen\n{head}\n@noisegen.transform('{name}')\n"
            f"def f(text, draws, *, rate: float = 1.0):\n    {body}\n",
        )

    return write


def test_parquet_on_standard_input(failed, tmp_path, monkeypatch):
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table({"text": ["see you"]}), path)
    on_stdin(monkeypatch, path.read_bytes())
    code, lines = failed("-", *FING)

    said = "error: cannot read standard input: it is Parquet; save it and name the file"
    assert (code, lines) == (1, [said])


def test_a_missing_file(failed):
    assert failed("nowhere.txt", *FING) == (1, ["error: 'nowhere.txt': no such file or folder"])


def test_factors_that_are_taken_for_sources(failed):
    said = "error: '1': no such file or folder; --strength takes its factors joined by commas: x0.5"
    assert failed(DEMO, "--strength", "x0.5", "1", "2", *FING) == (2, [f"{said},1,2"])


def test_a_file_of_an_unknown_kind(failed, file):
    code, [line] = failed(file("a.docx", b"x"), *FING)

    assert code == 1
    assert "a.docx: unknown ending; .txt, .tsv" in line


def test_a_wrong_column(failed):
    code, [line] = failed(DEMO, *FING, "--text-column", "txet")

    assert code == 1
    assert "no column 'txet' among: text, kind, lang; did you mean 'text'?" in line


def test_a_wrong_id_column(failed):
    code, [line] = failed(DEMO, *FING, "--id-column", "knd")

    assert code == 1
    assert "did you mean 'kind'?" in line


@pytest.mark.parametrize("name", ["in.txt", "in.tsv", "in.jsonl", "in.csv"])
def test_an_empty_input(failed, file, tmp_path, name):
    code, [line] = failed(file(name, b""), *FING)

    assert code == 1
    assert line == f"error: no rows in {tmp_path / name}"
    assert not (tmp_path / "out").exists()


def test_a_parquet_file_without_rows(failed, tmp_path):
    pq.write_table(pa.table({"text": pa.array([], pa.string())}), tmp_path / "in.parquet")
    code, [line] = failed(tmp_path / "in.parquet", *FING)

    assert (code, "no rows" in line) == (1, True)


def test_an_empty_folder(failed, tmp_path):
    (tmp_path / "folder").mkdir()
    code, [line] = failed(tmp_path / "folder", *FING)

    assert code == 1
    assert line.startswith("error: nothing to read (searched: ")


def test_bytes_that_are_not_utf8_are_counted(failed, file, tmp_path):
    code, [line, hint] = failed(file("in.txt", b"see you\nna\xefve\nat the station\n"), *FING)

    assert code == 3
    assert hint.endswith("iconv -f WINDOWS-1252 -t UTF-8, or --encoding windows-1252")
    assert line.endswith("dropped or damaged: not_utf8 1")
    assert table(tmp_path / "out")["id"].to_pylist() == [0, 2]


def test_only_damaged_rows(failed, file, tmp_path):
    code, [line] = failed(file("in.txt", b"\xff\n\xfe\n"), *FING)

    assert code == 3
    assert line.endswith(
        "0 rows in 1 shard; 0.0% changed, CER 0.00%, WER 0.00%; dropped or damaged: not_utf8 2"
    )
    assert table(tmp_path / "out").num_rows == 0


def test_a_row_of_ten_megabytes(failed, file, tmp_path):
    row = "see you tomorrow " * (10 * 2**20 // 17)
    code, [*_, line] = failed(file("in.txt", f"short\n{row}\nshort\n"), *FING)

    assert code == 0
    assert 0.06 < float(line.split("CER ")[1].split("%")[0]) / 100 < 0.1  # 13 of 16 are letters
    assert table(tmp_path / "out")["clean"].to_pylist() == ["short", row, "short"]
    assert table(tmp_path / "out")["noisy"][1].as_py() != row


def test_a_truncated_parquet_file(failed, file, tmp_path):
    pq.write_table(pa.table({"text": ["a"] * 1000}), tmp_path / "whole.parquet")
    content = (tmp_path / "whole.parquet").read_bytes()
    path = file("in.parquet", content[:-20])

    assert failed(path, *FING) == (
        1,
        [f"error: cannot read {path}: damaged, or not a Parquet file; get the file again"],
    )


def test_a_parquet_file_damaged_in_the_middle(failed, file, tmp_path):
    rows = [f"row {number}" * 9 for number in range(5_000)]
    pq.write_table(pa.table({"text": rows}), tmp_path / "whole.parquet", use_dictionary=False)
    content = bytearray((tmp_path / "whole.parquet").read_bytes())
    content[5_000:9_000] = bytes(4_000)
    code, [line] = failed(file("in.parquet", bytes(content)), *FING)

    assert code == 1
    assert line.endswith("in.parquet: damaged, or not a Parquet file; get the file again")


@pytest.mark.parametrize("new", [pa.ipc.new_stream, pa.ipc.new_file])
@pytest.mark.parametrize(("offset", "wild"), [(6, 2**30), (6, -4), (3, 2**31 - 1)])
def test_offsets_of_an_arrow_file_that_lead_out_of_it(failed, file, new, offset, wild):
    rows, sink = pa.table({"text": ["see", "you", "now"] * 9}), pa.BufferOutputStream()
    with new(sink, rows.schema) as to:
        to.write_table(rows)
    content = sink.getvalue().to_pybytes()
    offsets = struct.pack("<4i", 0, 3, 6, 9)
    damaged = content.replace(
        offsets, offsets.replace(*(struct.pack("<i", n) for n in (offset, wild)))
    )
    assert damaged != content

    code, [line] = failed(file("in.arrow", damaged), *FING)

    assert code == 1
    assert line.endswith("in.arrow: damaged, or not an Arrow file; get the file again")


def test_a_text_that_is_not_utf8_costs_an_arrow_file_a_row(failed, file, tmp_path):
    rows, sink = pa.table({"text": ["see you", "l\u00e4ter", "bye"]}), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as to:
        to.write_table(rows)
    content = sink.getvalue().to_pybytes().replace("\u00e4".encode(), b"\xc3\xc3")
    code, [line] = failed(file("in.arrow", content), *FING)

    assert code == 3
    assert line.endswith("dropped or damaged: not_utf8 1")
    assert table(tmp_path / "out")["clean"].to_pylist() == ["see you", "bye"]


WIDE = ["utf-16", "utf-32", "utf-16le", "utf-16be", "utf-32le", "utf-32be"]


@pytest.mark.parametrize("wide", WIDE)
@pytest.mark.parametrize("ending", ["txt", "tsv", "csv", "jsonl", "conll", "norm", "txt.gz"])
def test_text_in_another_encoding_is_named(failed, file, ending, wide):
    content = "text\n".encode(wide)
    path = file(f"in.{ending}", gzip.compress(content) if ending == "txt.gz" else content)
    name = wide.upper()

    assert failed(path, *FING) == (
        1,
        [f"error: cannot read {path}: it is {name}; convert it first: iconv -f {name} -t UTF-8"],
    )


def test_a_pipe_or_a_device_is_not_waited_for(failed, tmp_path, capfd):
    (tmp_path / "zero.txt").symlink_to("/dev/zero")
    os.mkfifo(tmp_path / "pipe.tsv")
    os.mkfifo(tmp_path / "pipe.parquet")
    for name in ("zero.txt", "pipe.tsv", "pipe.parquet"):
        said = f"{tmp_path / name}: it is a pipe or device; save it as a file first"
        assert failed(tmp_path / name, *FING) == (1, [f"error: cannot read {said}"])
    for step in ("wiki:dictionary", "codeswitch:dictionary"):
        for path in ("/dev/zero", tmp_path / "pipe.tsv", tmp_path / "pipe.parquet"):
            assert run(["preview", "see you", "-t", f"{step}={path}"]) == 1
            [line] = capfd.readouterr().err.splitlines()
            assert line.endswith("it is a pipe or device; save it as a file first")


def test_a_closed_standard_input(tmp_path):
    words = [sys.executable, "-m", "noisegen", "augment", "-", "-o", str(tmp_path / "out")]
    done = subprocess.run(
        ["bash", "-c", '"$@" <&-', "bash", *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr == (
        "error: standard input is closed: name a file, or pipe text into noisegen\n"
    )


@pytest.mark.parametrize("name", ["json", "csv", "parquet", "text"])
def test_a_format_of_datasets_is_no_dataset(failed, file, monkeypatch, tmp_path, name):
    pytest.importorskip("datasets")
    file(f"secret.{name}", '{"text": "found in the current folder"}\n')
    monkeypatch.chdir(tmp_path)
    assert failed(f"hf:{name}", *FING) == (
        1,
        [f"error: hf:{name}: {name} is a format, not a dataset; name the files themselves"],
    )


@pytest.mark.parametrize("ending", ["txt", "csv", "jsonl", "conll"])
def test_compressed_text_without_the_ending_is_named(failed, file, ending):
    path = file(f"in.{ending}", gzip.compress(b"text\nsee you\n"))

    assert failed(path, *FING) == (
        1,
        [f"error: cannot read {path}: it is gzip; convert it first: gzip -d"],
    )


def test_marks_of_another_encoding_within_a_file_are_bytes_as_others(failed, file, tmp_path):
    lines = [b"see you\n"] * 3 + [b"\xff\xfe\n"] + [b"see you\n"] * 2
    code, [line] = failed(file("in.txt", b"".join(lines)), *FING, "--rows-per-shard", "3")

    assert code == 3
    assert line.endswith("dropped or damaged: not_utf8 1")
    assert len(table(tmp_path / "out")) == 5


def test_a_truncated_gzip_file_is_salved(failed, file, tmp_path):
    lines = "".join(f"{zlib.crc32(b'%d' % number)} see you\n" for number in range(20_000))
    content = gzip.compress(lines.encode())
    code, [line] = failed(file("in.txt.gz", content[: len(content) // 2]), *FING)

    assert code == 3
    assert line.endswith("dropped or damaged: truncated 1")
    rows = table(tmp_path / "out")
    assert rows["clean"].to_pylist() == lines.splitlines()[: len(rows)]
    assert len(rows) > 5_000


def test_a_file_that_is_no_gzip(failed, file):
    code, [line] = failed(file("in.txt.gz", b"plain text\n"), *FING)

    assert code == 1
    assert line.endswith(
        "in.txt.gz: damaged before its first line, or not gzip; get the file again"
    )


def test_json_lines_that_are_none_are_counted(failed, file, tmp_path):
    code, [line] = failed(
        file("in.jsonl", '{"text": "see you"}\n{"text": \n{"text": null}\n'), *FING
    )

    assert code == 3
    assert "bad_json 1" in line
    assert table(tmp_path / "out")["id"].to_pylist() == [0]


def test_rows_with_a_field_too_many_are_counted(failed, file):
    code, [line] = failed(file("in.tsv", "text\tn\na b\t1\nc d\t2\t3\n"), *FING)

    assert code == 3
    assert line.endswith("dropped or damaged: wrong_columns 1")


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet", "arrow"])
def test_a_header_of_endless_columns_is_refused(failed, file, ending):
    names = ["text", *map(str, range(99_999))]
    path = file(f"in.{ending}", {"csv": ",", "tsv": "\t"}.get(ending, "").join(names) + "\n")
    if ending == "parquet":
        pq.write_metadata(pa.schema([(name, pa.string()) for name in names]), path)
    elif ending == "arrow":
        pa.ipc.new_file(str(path), pa.schema([(name, pa.string()) for name in names])).close()

    said = f"error: {path}: 100,000 columns, over 50,000; keep those you need"
    assert failed(path, *FING) == (1, [said])


def test_duplicate_ids_are_kept_and_counted(failed, file, tmp_path):
    path = file("in.tsv", "key\ttext\na\tone\nb\ttwo\na\tthree\n")
    code, [line] = failed(path, *FING, "--id-column", "key", "--rows-per-shard", "1")

    assert code == 3
    assert line.endswith("dropped or damaged: duplicate_id 1")
    assert table(tmp_path / "out").num_rows == 3


def test_inputs_with_other_columns(failed, file, tmp_path):
    (tmp_path / "data").mkdir()
    file("data/a.tsv", "text\tn\na\t1\n")
    file("data/b.tsv", "text\tm\na\t1\n")
    code, [line] = failed(tmp_path / "data", *FING)

    assert code == 1
    assert "differ: column 'n'" in line


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-t", "fign"], "no transform named 'fign'; did you mean 'fing'?"),
        (["-t", "ugc"], "'ugc' is a recipe, not a transform: --recipe ugc"),
        (["-t", "keybord"], "did you mean 'keyboard'?"),
        (["-t", "mine"], "a transform of your own needs --code FILE.py"),
        (["-t", "fing:rat=0.1"], "fing has no parameter 'rat'; did you mean 'rate'?"),
        (["-t", "fing:rate=1.5"], "fing.rate = 1.5 is outside 0 to 1"),
        (["-t", "fing:rate=-0.1"], "outside 0 to 1"),
        (["-t", "fing:rate=nan"], "fing.rate"),
        (["-t", "fing:rate=much"], "fing.rate = 'much' is not a float"),
        (["-t", "fing:rate"], "fing:rate"),
        (["-t", ""], "--transform is empty: give a value, or leave it out"),
        (["--recipe", "mix_all", "--set", "leet.rate=2"], "leet.rate = 2 is outside 0 to 1"),
        (["--recipe", "mix_all", "--set", "leeet.rate=1"], "did you mean 'leet'?"),
        (["--set", "clip.rate=2"], "outside 0 to 1"),
        (["--set", "clipp.rate=1"], "did you mean 'clip'?"),
        (["--set", "leet.rate=1"], "recipe ugc has no such step; its steps: init, join, "),
        (["--set", "leet"], "write TRANSFORM.PARAM=VALUE"),
        (["-t", "abr1", "--lang", "sw"], "abr1 has no data for language 'sw'; it has en"),
        (["--part", "0/3"], "write I/N with I from 1 to N"),
        (["--part", "4/3"], "write I/N with I from 1 to N"),
        (["--rows-per-shard", "0"], "'--rows-per-shard': 0 is not in the range x>=1"),
        (["--rows-per-shard", "many"], "'many' is not a valid integer"),
        (["--copies", "0"], "'--copies': 0 is not in the range x>=1"),
        (["--limit", "0"], "'--limit': 0 is not in the range x>=1"),
        (["--seed", "-1"], "seed -1 is not a whole number from 0 to 2^64 - 1"),
        (["--seed", str(1 << 64)], "is not a whole number from 0 to 2^64 - 1"),
        (["-t", "leet:rate=1,rate=0"], "cannot read 'leet:rate=1,rate=0': it gives a parameter"),
        (["--workers", "0"], "'--workers': 0 is not in the range x>=1"),
        (["--labels", "kind"], "--labels goes with --tokens"),
        (["--protect", "urls"], "url"),
        (["--executor", "threads"], "write serial, processes or dask:ADDRESS"),
        (["--force", "--resume"], "choose one"),
        (["--force", "--part", "1/2"], "choose one"),
        (["--code", "nowhere.py"], "nowhere.py"),
        (["--nowhere"], "no such option '--nowhere'; did you mean"),
        (["--tagger", "best"], "is not one of"),
    ],
)
def test_wrong_usage_is_code_2(failed, tmp_path, options, message):
    code, lines = failed(DEMO, *options)

    assert code == 2
    assert message in lines[-1]
    assert not (tmp_path / "out").exists()


def test_no_source_and_no_out_are_wrong_usage(capfd):
    assert run(["augment"]) == 2
    assert "name at least one SOURCE" in capfd.readouterr().err
    assert run(["augment", str(DEMO)]) == 2
    assert "-o FOLDER" in capfd.readouterr().err


def test_out_may_be_no_file(failed, file):
    file("out", b"a file")
    code, lines = failed(DEMO, *FING)

    assert code == 1
    assert "is a file" in lines[-1]


def test_an_unknown_recipe(failed):
    code, [line] = failed(DEMO, "--recipe", "mix_al")

    assert code == 2
    assert "no recipe or transform named 'mix_al'; did you mean 'mix_all'?" in line


def test_a_profile_is_no_recipe(failed, tmp_path):
    (tmp_path / "profile").mkdir()
    (tmp_path / "profile" / "profile.json").write_text("{}")
    code, [line] = failed(DEMO, "--recipe", tmp_path / "profile")

    assert code == 2
    assert f"use it as -t channel:profile={tmp_path / 'profile'}" in line


def test_a_run_that_changes_nothing_says_so(failed, file, tmp_path):
    head = "# name: none\n# lang: en\n# source: mine\n# license: CC0-1.0\nclean\tnoisy\tcount\n"
    file("none.tsv", f"{head}xylem\txilem\t1\n")
    code, lines = failed(DEMO, "-t", f"wiki:dictionary={tmp_path / 'none.tsv'}")

    assert code == 0
    assert lines[-1].startswith("hint: no row changed: ")
    assert "noisegen dictionary show" in lines[-1]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("steps: [fing", "is not YAML"),
        ("just text", "a recipe is a mapping with name and steps"),
        ("steps: []", "steps must be a list"),
        ("steps:\n- fign: {}", "step 1: no transform named 'fign'; did you mean 'fing'?"),
        ("steps:\n- fing: {p: 2}", "p = 2 is outside 0 to 1"),
        ("stps:\n- fing", "unknown key 'stps'"),
        ("steps:\n- fing: {rate: 1, rate: 0}", "'rate' is given twice"),
        ("steps:\n- fing\nstrength: {a: b}", "strength"),
        (b"\xff\xfe", "cannot read recipe"),
        ("steps:\n- fing: {rate: [1]}", "fing.rate"),
        ("steps:\n- one_of: fing", "one_of must be a list"),
    ],
)
def test_a_broken_recipe(failed, file, content, message):
    code, [line] = failed(DEMO, "--recipe", file("r.yaml", content))

    assert code == 1
    assert message in line


def test_a_recipe_that_is_not_there(failed):
    code, [line] = failed(DEMO, "--recipe", "nowhere.yaml")

    assert code == 1
    assert "cannot read recipe 'nowhere.yaml'" in line


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("def broken(:", "SyntaxError"),
        ("import nothing_of_this_name", "ModuleNotFoundError: No module named 'nothing_of"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        (
            "import noisegen\nnoisegen.transform('fing')(lambda text, draws, *, rate=1.0: text)",
            "'fing' is registered already",
        ),
    ],
)
def test_a_plug_in_file_with_an_error(failed, file, content, message):
    code, [line] = failed(DEMO, "--code", file("plugin.py", content), *FING)

    assert code == 2
    assert message in line


def test_a_plug_in_that_raises_on_a_row(failed, plug_in):
    path = plug_in("picky", "return text[100]")
    code, [line] = failed(DEMO, "--code", path, "-t", "picky")

    assert code == 1
    assert line.startswith("error: transform 'picky' failed on '")
    assert line.endswith("IndexError: string index out of range")


@pytest.mark.parametrize(("name", "value"), [("five", "5"), ("nil", "None"), ("raw", "b'x'")])
def test_a_plug_in_that_returns_no_text(failed, plug_in, name, value):
    path = plug_in(name, f"return {value}")
    code, [line] = failed(DEMO, "--code", path, "-t", name)

    assert code == 1
    assert line.startswith(f"error: transform {name!r} failed on '")


def test_a_plug_in_that_returns_half_a_character(failed, plug_in):
    path = plug_in("half", r"return text + '\ud83d'")
    code, [line] = failed(DEMO, "--code", path, "-t", "half")

    assert code == 1
    assert "transform 'half' failed" in line


def test_a_plug_in_works(failed, plug_in, tmp_path):
    path = plug_in("loud", "return text.upper()")
    code, _ = failed(DEMO, "--code", path, "-t", "loud", "--protect", "none")

    assert code == 0
    rows = table(tmp_path / "out").to_pylist()
    assert all(row["noisy"] == row["clean"].upper() for row in rows)


def test_a_dask_address_where_nobody_listens(failed, monkeypatch):
    monkeypatch.setattr(executors, "DASK_SECONDS", 0.5)
    code, [line] = failed(DEMO, *FING, "--executor", "dask:tcp://127.0.0.1:1")

    assert code == 1
    assert line.startswith("error: no Dask scheduler answers at 'tcp://127.0.0.1:1'")


@pytest.mark.parametrize(
    "content", ["text\n", "{}", "[1, 2]", '{"command": "noisegen mine-wiki"}', b"\xff"]
)
def test_from_a_file_that_is_no_manifest(failed, file, tmp_path, content, capfd):
    path = file("manifest.json", content)
    code = run(["augment", "--from", str(path), "-o", str(tmp_path / "out")])
    [line] = capfd.readouterr().err.splitlines()

    assert code == 1
    assert "is not the manifest of an augment run" in line


@pytest.mark.parametrize("more", [["--seed", "3"], ["--set", "leet.rate=1"], [str(DEMO)]])
def test_from_a_manifest_nothing_else_can_be_asked(failed, tmp_path, more, capfd):
    failed(DEMO, *FING, "--limit", "5")
    made = str(tmp_path / "out" / "manifest.json")

    assert run(["augment", "--from", made, "-o", str(tmp_path / "two"), *more]) == 2
    assert "--from makes the same rows again: leave out" in capfd.readouterr().err


def test_from_a_manifest_whose_source_changed_says_so(failed, file, tmp_path, capfd):
    source = file("in.txt", "see you\n")
    failed(source, *FING)
    file("in.txt", "see you tomorrow\n")

    made = str(tmp_path / "out" / "manifest.json")
    assert run(["augment", "--from", made, "-o", str(tmp_path / "two"), "--workers", "1"]) == 0
    assert "hint: the rows may differ, for this has changed: " in capfd.readouterr().err


def test_unread_files_of_a_folder_are_named(failed, tmp_path):
    (tmp_path / "data").mkdir()
    shutil.copy(DEMO, tmp_path / "data" / "a.tsv")
    (tmp_path / "data" / "b.pdf").write_bytes(b"x")
    code, lines = failed(tmp_path / "data", *FING, "--lang", "en")

    assert code == 0
    assert lines[0] == f"skipped {tmp_path / 'data' / 'b.pdf'}: unknown ending"


def test_the_count_of_dropped_rows_is_in_the_json(failed, file, tmp_path, capfd):
    source = file("in.txt", b"see you\n\xff\n")
    code = run(["augment", str(source), "-o", str(tmp_path / "out"), "--json", *FING])

    assert code == 3
    assert json.loads(capfd.readouterr().out)["dropped"] == {"not_utf8": 1}


REMEDY = "correct these rows, or the options that name their columns and encoding"
CHAT = '{"messages": [{"role": "%s", "content": "see you"}]}\n'


@pytest.mark.parametrize("kind", ["-q", "--json"])
@pytest.mark.parametrize(
    ("words", "name", "content", "said"),
    [
        (
            "augment in.jsonl -o out --text-column messages[role=system].content -t fing",
            "in.jsonl",
            CHAT % "system" + CHAT % "user",
            f"warning: out: dropped or damaged: missing_text 1; {REMEDY}",
        ),
        (
            "normalize in.txt -o out",
            "in.txt",
            b"see you\n\xff\n",
            f"warning: out: dropped or damaged: not_utf8 1; {REMEDY}",
        ),
        (
            "prepare in.txt -o out --identify no",
            "in.txt",
            b"The harbour lay still. Nobody spoke.\n\xff\n",
            f"warning: out: damaged rows: not_utf8 1; {REMEDY}",
        ),
        (
            "mine-pairs in.tsv -o out",
            "in.tsv",
            b"noisy\tclean\nteh cat\tthe cat\n\xff\tabc\n",
            "damaged: {tmp_path}/in.tsv: 1 rows not_utf8",
        ),
    ],
    ids=["augment", "normalize", "prepare", "mine-pairs"],
)
def test_skipped_input_is_one_line_without_the_summary(
    file, tmp_path, monkeypatch, capfd, words, name, content, said, kind
):
    file(name, content)
    monkeypatch.chdir(tmp_path)

    assert run([*words.split(), "--workers", "1", kind]) == 3
    assert said.format(tmp_path=tmp_path) in capfd.readouterr().err.splitlines()


def test_a_failure_in_a_process_of_its_own_prints_one_line_too():
    result = command("augment", "nowhere.txt", "-o", "out")

    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == "error: 'nowhere.txt': no such file or folder\n"


def test_two_text_columns_of_one_name(failed, file):
    code, [line] = failed(file("in.csv", "text,text\na,b\n"), *FING)

    assert code == 1
    assert line.endswith("two columns are named 'text'")


def test_an_argument_that_is_not_utf8(capfd):
    assert run(["preview", "a\udcff do", "-t", "fing:rate=1"]) == 2
    assert capfd.readouterr().err == "error: an argument is not valid UTF-8\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("augment bad.parquet -o out", "cannot read bad.parquet: damaged"),
        ("augment in.txt -o full", "full is not empty; add --resume"),
        ("augment in.txt -o ours --resume --seed 3", "ours was made with another configuration"),
        ("augment in.txt -o full --force", "noisegen did not write full/manifest.json; move it"),
        ("prepare bad.parquet -o out --identify no", "cannot read bad.parquet: damaged"),
        ("prepare in.txt -o full --identify no", "full is not empty; add --resume"),
        ("mine-pairs in.tsv -o full --lang en", "full is not empty; add --resume"),
    ],
)
def test_paths_in_errors_are_those_that_were_given(tmp_path, monkeypatch, capfd, words, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.parquet").write_bytes(b"PAR1")
    (tmp_path / "in.txt").write_text("see you\n")
    (tmp_path / "in.tsv").write_text("noisy\tclean\nteh\tthe\n")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "manifest.json").write_text("{}")
    if "ours" in words:
        assert run(["augment", "in.txt", "-o", "ours", "-t", "spac", "-q", "--workers", "1"]) == 0

    assert run([*words.split(), "--workers", "1"]) == 1

    assert capfd.readouterr().err.splitlines()[-1].startswith(f"error: {said}")


def test_a_report_without_a_name_is_one_line(tmp_path, capfd):
    review = str(tmp_path / "r.sqlite")
    words = ["review", "make", str(DEMO), "-o", review, "-t", "fing", "--rows", "2", "--quiet"]
    assert run([*words, "--strengths", "0.1", "--lang", "en"]) == 0
    assert run(["review", "report", review, "-o", ""]) == 1
    [line] = capfd.readouterr().err.splitlines()
    assert line == "error: '.' is not the name of a file"


def test_a_field_whose_name_or_value_holds_a_nul(failed, file, tmp_path):
    source = file("in.jsonl", '{"text": "see you", "a\\u0000b": 1, "c": "x\\u0000"}\n')
    code, _ = failed(source, *FING)
    assert code == 0
    assert table(tmp_path / "out")["clean"].to_pylist() == ["see you"]


def test_text_that_standard_output_cannot_spell_blames_no_argument():
    words = [sys.executable, "-m", "noisegen", "preview", "na\u00efve", "-t", "fing:rate=0"]
    done = subprocess.run(
        words,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONIOENCODING": "ascii"},
    )
    assert done.returncode == 1
    assert done.stderr == (
        "error: standard output is ascii, which lacks a character of the text; "
        "set PYTHONIOENCODING=utf-8\n"
    )
