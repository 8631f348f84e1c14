"""What strangers put into files reaches neither the terminal nor a spreadsheet as a command.

`docs/development/threats.md` names the test of each of its lines; the last test here compares the
page with this file.
"""

import ast
import csv
import json
import lzma
import pickle
import re
import shutil
import struct
import zipfile
import zlib
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from runs import DEMO, table

import noisegen
from noisegen.cli import run
from noisegen.data.bitext import find_bitext, stream_bitext
from noisegen.data.decoders import salvage
from noisegen.errors import LINE_MAX, one_line, printable
from noisegen.evaluation.evaluate import write_csv

RED = "\x1b[31mX\x9b2JY\x07\r\u202e"  # colours, clears, rings, returns, turns
LINE = RED.replace("\r", "")  # what may be within a line
CONTROLS = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]")


@pytest.fixture
def shown(tmp_path, monkeypatch, capfd):
    """Run a command in a folder of hostile files; return its exit code and all that it printed."""
    monkeypatch.chdir(tmp_path)

    def check(*words):
        code = run(list(map(str, words)))
        stdout, stderr = capfd.readouterr()
        assert "Traceback" not in stderr
        assert not CONTROLS.search(stdout + stderr)
        return code, stdout + stderr

    return check


def dictionary(path: Path, **columns: object) -> Path:
    row = {
        "lang": "en",
        "clean": f"you{LINE}",
        "noisy": f"yu{LINE}",
        "count": 1,
        "pages": 1,
        "reverse_count": 0,
        "prob": 1.0,
    }
    pq.write_table(pa.table({name: [value] for name, value in (row | columns).items()}), path)
    return path


# Terminals.


def test_words_of_a_dictionary_are_only_shown(shown, tmp_path):
    path = dictionary(tmp_path / "d.parquet")
    code, text = shown("dictionary", "show", path)

    assert code == 0
    assert "you\ufffd[31mX\ufffd2JY" in text
    assert "has no wrong form of" in shown("dictionary", "show", path, "-w", RED)[1]
    as_json = shown("dictionary", "show", path, "--json")[1]
    assert json.loads(as_json)["rows"][0]["noisy"] == f"yu{LINE}"


def test_translations_are_only_shown(shown, tmp_path):
    words = f"light li{RED[:9]}cht\nlight [link=http://evil.example]:smile:\n"
    (tmp_path / "muse.txt").write_text(words)
    code, text = shown("dictionary", "translations", "muse.txt", "--lang", "en", "--into", "de")

    assert code == 0
    assert "li\ufffd[31mX\ufffd2Jcht, [link=http://evil.example]:smile:" in text


def test_texts_and_words_of_a_lexicon_are_only_shown(shown, tmp_path):
    head = "clean\tnoisy\tcount\n"
    (tmp_path / "d.tsv").write_text(f"{head}you\ty\x1b[31mu\t1\n")
    (tmp_path / "in.txt").write_bytes(f"see you {RED}\n".encode())
    recipe = ("-t", "wiki:dictionary=d.tsv,rate=1")

    for words in (["preview", "in.txt"], ["augment", "in.txt", "--dry-run"]):
        for form in ([], ["--json"]):
            code, text = shown(*words, *recipe, *form)
            assert code == 0
            assert "[31mu" in text


def test_names_of_files_and_folders_are_only_shown(shown, tmp_path):
    folder = tmp_path / f"in{RED[:9]}"
    folder.mkdir()
    (folder / f"a{RED}.docx").write_text("x")
    (folder / "a\nerror: b.pdf").write_text("x")
    (folder / f"b{RED}.parquet").write_bytes(b"PAR1")
    shutil.copy(DEMO, folder / "c.tsv")

    code, text = shown("augment", folder / f"a{RED}.docx", "-o", "out")
    assert (code, "unknown ending" in text) == (1, True)
    code, text = shown("augment", folder, "-o", "out")
    assert (code, "damaged, or not a Parquet file" in text) == (1, True)
    (folder / f"b{RED}.parquet").unlink()
    code, text = shown("augment", folder, "-o", f"out{RED}", "-t", "spac", "--workers", "1")
    assert code == 0
    assert re.search(r"^skipped .*a error: b\.pdf: unknown ending$", text, re.MULTILINE)
    assert "out\ufffd[31mX" in text


def test_names_of_columns_are_only_shown(shown, tmp_path):
    pq.write_table(pa.table({f"te{RED}xt": ["see you"]}), tmp_path / "in.parquet")
    (tmp_path / "in.tsv").write_text("te\x1b[31mxt\tb\nsee\tyou\n")

    for name in ("in.parquet", "in.tsv"):
        code, text = shown("augment", name, "-o", "out")
        assert (code, "no column 'text' among: te" in text) == (1, True)
    code, text = shown("preview", "-t", "wiki:dictionary=in.parquet,rate=1")
    assert (code, "no column 'clean' among: te\ufffd[31mX" in text) == (1, True)


def test_transforms_of_a_run_are_only_shown(shown, tmp_path):
    few = ("--limit", "9", "--workers", "1", "--lang", "en")
    assert shown("augment", DEMO, "-o", "out", "-t", "fing", *few)[0] == 0
    [path] = (tmp_path / "out" / "data").iterdir()
    rows = pq.read_table(path)
    hostile = pa.array([[f"fi{RED}ng"]] * len(rows))
    at = rows.column_names.index("transforms")
    changed = rows.set_column(at, "transforms", hostile)
    pq.write_table(changed.replace_schema_metadata(rows.schema.metadata), path)

    code, text = shown("stats", "out")
    assert code == 0
    assert "fi\ufffd[31mX" in text


def test_names_in_recipes_and_errors_of_code_are_only_shown(shown, tmp_path):
    (tmp_path / "r.yaml").write_text('name: "a\\e[31mred"\nsteps: [fing]\n')
    (tmp_path / "code.py").write_text("raise ValueError('\\x1b[31mred\\n\\nmore')\n")

    for words in (["recipes", "r.yaml"], ["augment", DEMO, "--recipe", "r.yaml", "--dry-run"]):
        code, text = shown(*words)
        assert code == 0
        assert "a\ufffd[31mred" in text
    code, text = shown("preview", "--code", "code.py")
    assert code == 2
    assert text == "error: --code code.py failed: ValueError: \ufffd[31mred more\n"


def test_what_was_learned_is_only_shown(shown, tmp_path):
    lines = [f"se{RED[:9]}e you {number}\tsee you {number}" for number in range(60)]
    (tmp_path / "pairs.tsv").write_text("\n".join(["noisy\tclean", *lines]))

    assert shown("learn", "pairs.tsv", "-o", "profile", "--lang", "en")[0] == 0
    code, text = shown("learn", "show", "profile")
    assert code == 0
    assert "\ufffd[31mX" in text


def test_a_message_is_one_line_of_bounded_length():
    assert printable(f"a\tb\n{RED}") == "a\tb\n\ufffd[31mX\ufffd2JY\ufffd\ufffd\ufffd"
    assert one_line("a\r\n\nb\u2028c\x85d") == "a b c d"
    long = one_line("a" * 100_000 + "b" * 100_000)
    assert len(long) < LINE_MAX + 10
    assert long.startswith("aaa")
    assert long.endswith("bbb")


def test_an_error_line_is_bounded(shown, tmp_path):
    (tmp_path / "in.tsv").write_text("\t".join(f"column{n}" for n in range(30_000)) + "\n1\n")
    code, text = shown("augment", "in.tsv", "-o", "out")

    assert code == 1
    assert len(text) < LINE_MAX + 20
    assert text.endswith("or its number if there is no header line\n")


# Archives, folders, columns, words.


def test_names_in_archives_are_never_paths(tmp_path, monkeypatch):
    inside = tmp_path / "a" / "b"
    inside.mkdir(parents=True)
    monkeypatch.chdir(inside)
    with zipfile.ZipFile("evil.zip", "w") as packed:
        for lang in ("de", "en"):
            packed.writestr(f"../../evil.de-en.{lang}", f"see you {lang}\n")
            packed.writestr(f"{tmp_path}/absolute.de-en.{lang}", f"see you {lang}\n")
    before = sorted(tmp_path.rglob("*"))

    assert len(list(stream_bitext(find_bitext("evil.zip"), Counter()))) == 2
    assert sorted(tmp_path.rglob("*")) == before


def test_links_to_folders_are_not_followed(shown, tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "secret.txt").write_text("secret\n")
    (folder / "a.txt").write_text("see you\n")
    (folder / "loop").symlink_to(folder)
    (folder / "other").symlink_to(tmp_path / "other")

    assert shown("augment", folder, "-o", "out", "-t", "fing", "--workers", "1")[0] == 0
    assert table(tmp_path / "out")["clean"].to_pylist() == ["see you"]


def test_a_decoder_that_asks_for_gigabytes_is_refused(tmp_path):
    content = bytearray(lzma.compress(b"see you\n" * 1000))
    size = (content[12] + 1) * 4  # of the header of the block: flags, filter 0x21, its properties
    assert content[14:16] == b"\x21\x01"
    content[16] = 40  # a window of 4 GiB
    content[8 + size : 12 + size] = struct.pack("<I", zlib.crc32(content[12 : 8 + size]))
    (tmp_path / "a.xz").write_bytes(content)
    notes: list[str] = []

    assert b"".join(salvage(tmp_path / "a.xz", notes.append)) == b""
    assert "Memory usage limit exceeded" in notes[0]


def test_metadata_of_parquet_are_data(shown, tmp_path):
    ran = tmp_path / "ran"

    class Payload:
        def __reduce__(self):
            return Path.touch, (ran,)

    hostile = [
        {b"huggingface": b"[" * 100_000},
        {b"huggingface": b'{"info": {"features": {"text": {"feature": [[[[{}]]]]}}}}'},
        {b"huggingface": b'{"info": {"features": {"text": {"_type": "ClassLabel"}}}}'},
        {b"noisegen": b"{", b"pandas": b"[" * 9_000, RED.encode(): RED.encode()},
        {b"ARROW:schema": b"\xff" * 99},
    ]
    kind = {b"ARROW:extension:name": b"arrow.py_extension_type"}
    pickled = kind | {b"ARROW:extension:metadata": pickle.dumps(Payload())}
    fields = [pa.field("text", pa.string(), metadata=pickled)]
    for number, metadata in enumerate(hostile):
        rows = pa.table([["see you"]], schema=pa.schema(fields, metadata=metadata))
        pq.write_table(rows, tmp_path / "in.parquet")
        words = ("augment", "in.parquet", "-o", f"out{number}", "-t", "fing", "--workers", "1")
        code, text = shown(*words)
        assert (code, text.count("\n")) in ((0, 1), (1, 1)), text
    assert not ran.exists()


def test_words_of_dictionaries_are_no_patterns(shown, tmp_path):
    rows = {"clean": ["a.c", "x'*", "you"], "noisy": ["Z", "Z", r"\g<0>\1$&"], "count": [1, 1, 1]}
    pq.write_table(pa.table(rows), tmp_path / "d.parquet")
    (tmp_path / "in.txt").write_text("abc xx you\n")

    words = ("preview", "in.txt", "-t", "wiki:dictionary=d.parquet,rate=1", "--json")
    code, text = shown(*words)
    assert code == 0
    assert json.loads(text)["rows"][0]["noisy"] == r"abc xx \g<0>\1$&"


def test_cells_of_exported_tables_are_no_formulas(tmp_path):
    cells = [
        "=1+1",
        "@SUM(A1)",
        "+cmd|' /C calc'!A0",
        "-x",
        "\t=1",
        "a=b",
        "-0.25",
        "+1e-3 2.5",
        -1,
    ]
    write_csv(tmp_path / "a.csv", [cells])

    [row] = csv.reader((tmp_path / "a.csv").read_text().splitlines())
    assert row[:5] == [f"'{cell}" for cell in cells[:5]]
    assert row[5:] == ["a=b", "-0.25", "+1e-3 2.5", "-1"]


# Code.

FORBIDDEN = {
    "pickle.load",
    "pickle.loads",
    "joblib.load",
    "yaml.load",
    "yaml.unsafe_load",
    "yaml.full_load",
    "eval",
    "exec",
    "os.system",
    "os.popen",
    "marshal.loads",
}
# Messages between a run and its own worker processes, over a pipe that no other process has.
BETWEEN_OWN_PROCESSES = {("pool.py", "pickle.loads")}
ALLOWED = {"trust_remote_code": "False", "allow_pickle": "False", "shell": "False"}


def test_no_call_unpickles_executes_or_trusts_what_it_reads():
    calls = Counter[str]()
    suspects = re.compile(
        r"pickle|joblib|yaml|eval|exec|os\.|marshal|torch\.load|trust_|shell|extract"
    )
    for path in Path(noisegen.__file__).parent.rglob("*.py"):
        text = path.read_text("utf-8")
        for node in ast.walk(ast.parse(text)) if suspects.search(text) else ():
            if isinstance(node, ast.Call):
                name = ast.unparse(node.func)
                given = {word.arg: ast.unparse(word.value) for word in node.keywords}
                calls[name] += 1
                if (path.name, name) not in BETWEEN_OWN_PROCESSES:
                    assert name not in FORBIDDEN, (path, name)
                assert given.items() >= {k: v for k, v in ALLOWED.items() if k in given}.items()
                assert name != "torch.load" or given["weights_only"] == "True"
                assert not name.endswith(".extractall"), path
    assert calls["torch.load"]


# The page.


def test_each_line_of_the_page_has_its_test():
    root = Path(__file__).parents[1]
    page = (root / "docs" / "development" / "threats.md").read_text("utf-8")
    tables = page.partition("## Text and tables")[2]
    rows = re.findall(r"^\| .+(?<!effect) \|$", tables, re.MULTILINE)
    assert len(rows) > 50
    for row in rows:
        [tests] = re.findall(r"<!-- (.+) --> \|$", row)
        for test in tests.split(", "):
            path, name = test.split("::")
            assert f"def {name}(" in (root / "tests" / path).read_text("utf-8"), test
