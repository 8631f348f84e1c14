"""Mutants: a file that noisegen reads, damaged at random places, in every kind of file.

A mutant is a result with counted losses, or one line; never a traceback, a hang, too much memory
or a row that is lost in silence.
"""

import bz2
import gzip
import io
import json
import lzma
import os
import random
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq
from cli.mining_inputs import CLEAN, M2, NOISY, dump
from models import bert_folder

from campaigns.campaign import Campaign, Trial
from campaigns.program import Outcome, Program
from noisegen.data.files import shard_files
from noisegen.runs.atomic import write_text
from noisegen.runs.lock import STATE, Owner
from noisegen.text.resources import DEMO

# Reasons that are counted for rows which stay in the output.
NOT_ROWS = (
    "duplicate_id",
    "no_data_for_language",
    "truncated",
    "unexpected_field",
    "unknown_language",
)
SIZE = 20_000  # bytes that a repeated piece may add
ODD = [  # what is put in: text, numbers and signs that readers stumble over
    *(b"\0 \" ' , \t \n \r \r\n { } [ ] < > & ; \\ | # % \xff \xfe\xff \xef\xbb\xbf".split(b" ")),
    "\u202e\ud7ff\U0001f468\u200d\U0001f469\u0301".encode(),
    b"\x1b[31m",
    b"\xed\xa0\x80",
    b"-1",
    b"0",
    b"1e400",
    b"NaN",
    b"9223372036854775808",
    b"18446744073709551616",
    b"null",
    b"&lol;",
    b"<!--",
    b"]]>",
    b"{" * 400,
    b"[" * 5_000,
    b'{"a":' * 300,
    b"A 0 0|||",
    b"S ",
]


# How bytes change.


def _flip(data: bytes, dice: random.Random) -> bytes:
    made = bytearray(data)
    for _ in range(dice.choice((1, 1, 2, 8, 64))):
        made[dice.randrange(len(made))] ^= 1 << dice.randrange(8)
    return bytes(made)


def _piece(data: bytes, dice: random.Random) -> tuple[int, int]:
    start = dice.randrange(len(data))
    return start, min(len(data), start + dice.choice((1, 2, 7, 60, 900, SIZE)))


def _cut(data: bytes, dice: random.Random) -> bytes:
    return data[: dice.randrange(len(data))]


def _remove(data: bytes, dice: random.Random) -> bytes:
    start, stop = _piece(data, dice)
    return data[:start] + data[stop:]


def _repeat(data: bytes, dice: random.Random) -> bytes:
    start, stop = _piece(data, dice)
    times = dice.choice((1, 2, max(1, SIZE // (stop - start))))
    return data[:stop] + data[start:stop] * times + data[stop:]


def _swap(data: bytes, dice: random.Random) -> bytes:
    (a, b), (c, d) = sorted((_piece(data, dice), _piece(data, dice)))
    b = min(b, c)
    return data[:a] + data[c:d] + data[b:c] + data[a:b] + data[d:]


def _put(data: bytes, dice: random.Random) -> bytes:
    at = dice.randrange(len(data) + 1)
    return data[:at] + dice.choice(ODD) + data[at:]


def _overwrite(data: bytes, dice: random.Random) -> bytes:
    start, stop = _piece(data, dice)
    return data[:start] + dice.randbytes(stop - start) + data[stop:]


CHANGES = {
    "flip": _flip,
    "cut": _cut,
    "remove": _remove,
    "repeat": _repeat,
    "swap": _swap,
    "put": _put,
    "overwrite": _overwrite,
}


# The kinds of file, and the command that reads each.

LINES = [
    "I don't know what you mean by that.",
    "See you tomorrow, my friends, @Bob #fun!",
    "Die Straße war naß.",
    "हम कल मिलेंगे।",
    "我们明天见。",
] * 8
CONLL = "He\tO\nlives\tO\nin\tO\nNew\tB-LOC\nYork\tI-LOC\n.\tO\n"
CONLLU = "# sent_id = a-1\n# text = He sees us\n" + "".join(
    f"{n}\t{word}\t{word}\t{kind}\t_\t_\t0\troot\t_\t_\n"
    for n, (word, kind) in enumerate((("He", "PRON"), ("sees", "VERB"), ("us", "PRON")), 1)
)
NORM = (
    "ppl\tpeople\nalways\talways\nlove\tlove\nalways\talways\nu\tyou\n\n"
    "im\tI'm\nhere\there\nalways\talways\nbro\tbro\n\n"
)
RECIPE = """name: mine
steps:
  - fing: {p: 0.5, rate: 0.1}
  - one_of: [{spac: {}}, {leet: {rate: 0.2}}]
  - sequence: [week, &few {fing: {rate: 0.05}}, *few]
    p: 0.3
"""
LANG8 = json.dumps(["1", "2", "English", "Japanese", [NOISY], [[CLEAN]]]) + "\n"


def _zst(data: bytes) -> bytes:
    return bytes(pa.compress(data, codec="zstd", asbytes=True))


def _parquet() -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table({"id": range(len(LINES)), "text": LINES}), sink, row_group_size=10)
    return sink.getvalue()


def _arrow() -> bytes:
    sink = io.BytesIO()
    table = pa.table({"id": range(len(LINES)), "text": LINES})
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def _seven_zip(data: bytes) -> bytes:
    import py7zr

    sink = io.BytesIO()
    with py7zr.SevenZipFile(sink, "w") as archive:
        archive.writestr(data, "enwiki.xml")
    return sink.getvalue()


def _joined(lines: list[str]) -> bytes:
    return ("\n".join(lines) + "\n").encode()


_TEXT = _joined(LINES)
_JSON = _joined(
    [json.dumps({"id": n, "text": text, "x": [1, {"y": None}]}) for n, text in enumerate(LINES)]
)
_CSV = _joined(["id,text", *(f'{n},"{text}"' for n, text in enumerate(LINES))])
_TSV = _joined(["id\ttext", *(f"{n}\t{text}" for n, text in enumerate(LINES))])
_DUMP = dump(NOISY, CLEAN, f"{CLEAN} [[Link|words]] &lt;ref>x&lt;/ref>").encode()
_PAIRS = _joined(["noisy\tclean", *(f"{NOISY} {n}\t{CLEAN} {n}" for n in range(40))])
_STS = _joined(
    ["sentence1\tsentence2\tscore", *(f"{NOISY} {n}\t{CLEAN}\t{n % 5}" for n in range(20))]
)
_AUGMENT = "-o FOLDER/out -t fing:rate=0.1 --rows-per-shard 25 --workers 1 --force"
_MINE = "-o FOLDER/out --workers 1 --force --profile all"
_TRAIN = "-q --teacher BERT --recipe stored --steps 4 --force-small"


@dataclass(frozen=True)
class Target:
    """A file and the command that reads it; a file without content is made by a command.

    It is drawn so often among all.
    """

    words: str
    content: bytes = b""
    often: int = 6


TARGETS: dict[str, Target] = {
    "in.txt": Target(f"augment FOLDER/in/in.txt {_AUGMENT}", _TEXT),
    "in.tsv": Target(f"augment FOLDER/in/in.tsv {_AUGMENT}", _TSV),
    "in.csv": Target(f"augment FOLDER/in/in.csv {_AUGMENT}", _CSV),
    "in.jsonl": Target(f"augment FOLDER/in/in.jsonl {_AUGMENT} --edits", _JSON),
    "one.jsonl": Target(
        "augment FOLDER/in/one.jsonl -o FOLDER/noisy.jsonl -t fing:rate=0.1", _JSON
    ),
    "one.csv": Target("augment FOLDER/in/one.csv -o FOLDER/noisy.csv -t fing:rate=0.1", _CSV),
    "in.conll": Target(
        f"augment FOLDER/in/in.conll {_AUGMENT} --tokens tokens --labels labels",
        f"{CONLL}\n{CONLL}\n".encode(),
    ),
    "in.conllu": Target(f"augment FOLDER/in/in.conllu {_AUGMENT}", f"{CONLLU}\n".encode() * 2),
    "pairs.norm": Target("mine-pairs FOLDER/in/pairs.norm " + _MINE, NORM.encode() * 4),
    "in.parquet": Target(f"augment FOLDER/in/in.parquet {_AUGMENT}", _parquet()),
    "in.arrow": Target(f"augment FOLDER/in/in.arrow {_AUGMENT}", _arrow()),
    "in.txt.gz": Target(f"augment FOLDER/in/in.txt.gz {_AUGMENT}", gzip.compress(_TEXT, mtime=0)),
    "in.txt.bz2": Target(f"augment FOLDER/in/in.txt.bz2 {_AUGMENT}", bz2.compress(_TEXT)),
    "in.csv.xz": Target(f"augment FOLDER/in/in.csv.xz {_AUGMENT}", lzma.compress(_CSV)),
    "in.jsonl.zst": Target(f"augment FOLDER/in/in.jsonl.zst {_AUGMENT}", _zst(_JSON)),
    "raw.jsonl": Target(
        "prepare FOLDER/in/raw.jsonl -o FOLDER/out --workers 1 --identify no", _JSON
    ),
    "raw.parquet": Target(
        "prepare FOLDER/in/raw.parquet -o FOLDER/out --workers 1 --identify no", _parquet()
    ),
    "enwiki.xml": Target("mine-wiki FOLDER/in/enwiki.xml " + _MINE, _DUMP),
    "enwiki.xml.bz2": Target("mine-wiki FOLDER/in/enwiki.xml.bz2 " + _MINE, bz2.compress(_DUMP)),
    "enwiki.xml.gz": Target(
        "mine-wiki FOLDER/in/enwiki.xml.gz " + _MINE, gzip.compress(_DUMP, mtime=0)
    ),
    "essays.m2": Target("mine-lang8 FOLDER/in/essays.m2 " + _MINE, f"{M2}\n".encode() * 6),
    "lang8.dat": Target("mine-lang8 FOLDER/in/lang8.dat " + _MINE, LANG8.encode() * 6),
    "noisy.tsv": Target("mine-pairs FOLDER/in/noisy.tsv " + _MINE, _PAIRS),
    "enwiki.7z": Target("mine-wiki FOLDER/in/enwiki.7z " + _MINE, _seven_zip(_DUMP)),
    "enwiki.xml.zst": Target("mine-wiki FOLDER/in/enwiki.xml.zst " + _MINE, _zst(_DUMP)),
    "essays.m2.gz": Target(
        "mine-lang8 FOLDER/in/essays.m2.gz " + _MINE, gzip.compress(f"{M2}\n".encode() * 6, mtime=0)
    ),
    "real.tsv": Target("realism --pairs FOLDER/in/real.tsv --recipe fing -n 40", _PAIRS, 1),
    "shown.txt": Target("preview FOLDER/in/shown.txt -t fing:rate=0.1 --limit 5", _TEXT),
    "scored.tsv": Target("evaluate BERT -o FOLDER/out --sts FOLDER/in/scored.tsv -q", _STS, 1),
    "learned.tsv": Target("learn FOLDER/in/learned.tsv -o FOLDER/out", _PAIRS),
    "recipe.yaml": Target(
        "augment DEMO --recipe FOLDER/in/recipe.yaml -o FOLDER/out -n 30", RECIPE.encode()
    ),
    "mined": Target(
        "augment DEMO -t wiki:dictionary=FOLDER/in/mined/dictionary.parquet -o FOLDER/out -n 30"
    ),
    "dictionary": Target("dictionary show FOLDER/in/dictionary"),
    "mined.tsv": Target("augment DEMO -t wiki:dictionary=FOLDER/in/mined.tsv -o FOLDER/out -n 30"),
    "paper.json": Target("dictionary filter FOLDER/in/paper.json -o FOLDER/few.tsv"),
    "known": Target("learn show FOLDER/in/known"),
    "profile": Target("augment DEMO -t channel:profile=FOLDER/in/profile -o FOLDER/out -n 30"),
    "pairs": Target("stats FOLDER/in/pairs"),
    "resumed": Target(
        f"augment DEMO {_AUGMENT}".replace("/out", "/in/resumed").replace("--force", "--resume")
    ),
    "unfinished": Target(
        f"augment DEMO {_AUGMENT}".replace("/out", "/in/unfinished").replace("--force", "--resume")
    ),
    "again": Target(
        "augment --from FOLDER/in/again/manifest.json -o FOLDER/out --workers 1", often=2
    ),
    "prepared": Target("prepare DEMO -o FOLDER/in/prepared --workers 1 --identify no --resume"),
    "counted": Target("mine-pairs PAIRS -o FOLDER/in/counted --workers 1 --profile all --resume"),
    "review.sqlite": Target("review report FOLDER/in/review.sqlite -o FOLDER/review.html"),
    "model": Target(
        "evaluate FOLDER/in/model -o FOLDER/out --pairs PAIRS --baseline BERT -q", often=2
    ),
    "student": Target(
        "evaluate FOLDER/in/student -o FOLDER/out --pairs PAIRS --baseline BERT -q", often=2
    ),
    "run": Target("train PAIRS -o FOLDER/in/run --resume " + _TRAIN, often=2),
    "settings.yaml": Target(
        "train PAIRS -o FOLDER/out --config FOLDER/in/settings.yaml " + _TRAIN,
        b"objective: two_term\nlr: 0.001\nwarmup: 1\nbatch_tokens: 256\n",
        2,
    ),
}
_MADE = {  # by what, in the folder of the targets; each of the name that its target has
    "mined": "mine-pairs PAIRS -o FOLDER/mined --workers 1 --profile all",
    "dictionary": "mine-pairs PAIRS -o FOLDER/dictionary --workers 1 --profile all",
    "profile": "learn PAIRS -o FOLDER/profile",
    "mined.tsv": "dictionary export FOLDER/mined -o FOLDER/mined.tsv",
    "paper.json": "dictionary export FOLDER/mined -o FOLDER/paper.json",
    "known": "learn PAIRS -o FOLDER/known",
    "prepared": "prepare DEMO -o FOLDER/prepared --workers 1 --identify no",
    "counted": "mine-pairs PAIRS -o FOLDER/counted --workers 1 --profile all",
    "pairs": f"augment DEMO {_AUGMENT} --edits -n 60".replace("/out", "/pairs"),
    "resumed": f"augment DEMO {_AUGMENT}".replace("/out", "/resumed").replace(" --force", ""),
    "unfinished": f"augment DEMO {_AUGMENT}".replace("/out", "/unfinished").replace(
        "--force", "--part 1/8"
    ),
    "again": f"augment DEMO {_AUGMENT} -n 60".replace("/out", "/again"),
    "run": "train PAIRS -o FOLDER/run " + _TRAIN,
    "review.sqlite": "review make DEMO -o FOLDER/review.sqlite -t fing --strengths 0.1 --rows 5",
}
PLACE = Path("/tmp/noisegen-campaigns")  # the same everywhere: mining notes whole paths
SHARED = {"PAIRS": f"{PLACE}/pairs.tsv", "DEMO": f"{PLACE}/demo.tsv", "BERT": "bert"}


@dataclass(frozen=True)
class Bench:
    """The program, and a folder with all targets whole."""

    program: Program
    targets: Path

    def run(self, words: list[str], folder: Path) -> Outcome:
        """Run a command line in a folder; its paths, which manifests keep, name no machine."""
        with suppress(FileExistsError):
            (folder / SHARED["BERT"]).symlink_to(self.targets / SHARED["BERT"])
        return self.program.run([_path(word) for word in words], folder)


def _path(word: str) -> str:
    return SHARED.get(word, word.replace("FOLDER/", ""))


@contextmanager
def begin() -> Iterator[Bench]:
    with TemporaryDirectory(prefix="targets-") as name, Program() as program:
        folder = Path(name)
        PLACE.mkdir(exist_ok=True)
        write_text(Path(SHARED["DEMO"]), DEMO.read_text("utf-8"))
        write_text(Path(SHARED["PAIRS"]), _PAIRS.decode())
        (folder / "bert").mkdir()
        shutil.copytree(bert_folder(folder / "bert"), folder / "model")
        bench = Bench(program, folder)
        for target, words in _MADE.items():
            outcome = bench.run(words.split(), folder)
            assert outcome.code in (0, 3), f"{target}: {outcome}"  # 3: rows that no noise is for
        shutil.copytree(folder / "run" / "student", folder / "student")
        gone = replace(Owner.here(), host="node-1", started="1")  # who has ended
        (folder / "unfinished" / STATE / "part-1-of-1.0123456789abcdef.lock").write_text(
            json.dumps(asdict(gone))
        )
        for target, made in TARGETS.items():
            if made.content:
                (folder / target).write_bytes(made.content)
        yield bench


def make(bench: Bench, trial: Trial) -> None:
    """Damage one file of a target, once or several times."""
    dice = trial.random()
    name = dice.choices(list(TARGETS), [target.often for target in TARGETS.values()])[0]
    whole, copy = bench.targets / name, trial.folder / "in" / name
    if whole.is_dir():
        shutil.copytree(whole, copy)
        copy = dice.choice(sorted(path for path in copy.rglob("*") if path.stat().st_size))
        while copy.is_dir():
            copy = dice.choice(sorted(copy.iterdir()))
    else:
        shutil.copy(whole, copy)
    done = []
    data = copy.read_bytes()
    for _ in range(dice.choice((1, 1, 1, 2, 4))):
        change = dice.choice(list(CHANGES))
        data = CHANGES[change](data, dice) or b"\n"
        done.append(change)
    copy.write_bytes(data)
    if copy.suffix == ".lock":
        os.utime(copy, (0, 0))  # that of another host is watched for a minute else
    trial.label = f"{TARGETS[name].words.split()[0]} {name}"
    trial.fault = done[0] if len(done) == 1 else "several"
    trial.notes = {"file": str(copy.relative_to(trial.folder)), "changes": done}
    trial.words = TARGETS[name].words.split()


def check(bench: Bench, trial: Trial) -> None:
    """Run the command; a result must account for all rows."""
    outcome = bench.run(trial.words, trial.folder)
    trial.expect(not (what := outcome.complaint()), what)
    if outcome.code in (0, 3) and trial.words[0] in ("augment", "prepare"):
        out = trial.folder / _path(trial.words[trial.words.index("-o") + 1])
        if out.is_dir():
            _account(trial, out)
    left = sorted(path.name for path in trial.folder.rglob("*.tmp"))
    trial.expect(not left, f"files left: {left}")


def _account(trial: Trial, out: Path) -> None:
    """Expect that a finished run can be read, and that its rows are all there or counted."""
    manifest = json.loads((out / "manifest.json").read_text())
    totals = manifest["totals"]
    rows = sum(pq.ParquetFile(path).metadata.num_rows for path in shard_files(out))
    listed = sum(shard["rows"] for shard in manifest["shards"])
    trial.expect(rows == listed, f"{rows} rows in the shards, {listed} in the manifest")
    dropped = {why: n for why, n in totals["dropped"].items() if why not in NOT_ROWS}
    if trial.words[0] == "augment":
        if "rows_in" not in totals:  # as in manifests of earlier versions
            return
        came = totals["rows_in"] - totals["dropped"].get("truncated", 0)
    else:
        came = totals["sentences"]
    trial.expect(came == rows + sum(dropped.values()), f"{rows} rows of {totals}")


MUTATIONS = Campaign("mutations", begin, make, check)
