"""Mining from and to object stores: as on disk, resumed by listing, one line where it cannot be."""

import bz2

import fsspec
import pyarrow.parquet as pq
import pytest
from exports import export, page
from mined import run_cut

import noisegen
from noisegen.cli import run
from noisegen.errors import OutputError, SourceError
from noisegen.mining import dumps, mine
from noisegen.mining.miner_options import WikiOptions
from noisegen.options import decode
from noisegen.runs.atomic import file_digest
from noisegen.runs.lock import STATE

NOISY = "The quikc brown fox jumps over the lazy dog near the old river bank."
CLEAN = NOISY.replace("quikc", "quick")
WIKI = export(*(page(n, [f"{NOISY} {n}.", f"{CLEAN} {n}."], first=9 * n) for n in range(1, 9)))
LANG8 = f'["7", "9", "English", "Japanese", ["{NOISY}"], [["{CLEAN}"]]]\n'.encode()
FILES = {
    "wiki": ("d/dump.xml.bz2", bz2.compress(WIKI)),
    "lang8": ("lang8.dat", LANG8 * 3),
    "pairs": ("pairs.tsv", f"noisy\tclean\n{NOISY}\t{CLEAN}\n".encode() * 3),
}
MINE = {
    "wiki": noisegen.mine_wiki,
    "lang8": noisegen.mine_lang8,
    "pairs": noisegen.mine_pairs,
}
OUTPUTS = [
    "README.md",
    "dictionary.parquet",
    "dictionary.tsv",
    "manifest.json",
    "pairs/part-00000.parquet",
    "words/part-00000.parquet",
]


@pytest.fixture(params=["memory", pytest.param("s3", marks=pytest.mark.nightly)])
def store(request, tmp_path):
    """A place of a store that is this test's own."""
    if request.param == "s3":
        request.getfixturevalue("s3_server")
    return f"{request.param}://bucket/{tmp_path.name}"


def put(url, content):
    with fsspec.open(url, "wb") as file:
        file.write(content)
    return url


def names(url):
    file_system, path = fsspec.core.url_to_fs(url, use_listings_cache=False)
    found = (name.partition(path.strip("/"))[2][1:] for name in file_system.find(path))
    return sorted(name for name in found if not name.startswith(STATE))


def tables(out):
    """Return the pairs and the dictionary of a run, here or in a store."""
    found = []
    for name in ("pairs/part-00000.parquet", "dictionary.parquet"):
        with fsspec.open(f"{out}/{name}") as file:
            found.append(pq.read_table(file))
    return found


@pytest.mark.parametrize("kind", MINE)
def test_a_store_is_mined_as_a_disk(kind, store, tmp_path):
    name, content = FILES[kind]
    url = put(f"{store}/in/{name}", content)
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    here = MINE[kind](path, tmp_path / "out")
    far = MINE[kind](url, f"{store}/out")

    assert here.totals["pairs"] > 0
    assert far.totals == here.totals
    assert tables(f"{store}/out")[0].num_rows == here.totals["pairs"]
    assert tables(f"{store}/out") == tables(tmp_path / "out")
    assert names(f"{store}/out") == OUTPUTS
    assert far.sources[0]["bytes"] == len(content)
    with pytest.raises(OutputError, match="is not empty; add --resume"):
        MINE[kind](url, f"{store}/out")


def test_folders_and_pieces_of_dumps_in_a_store(store, tmp_path):
    for number in range(2):
        put(f"{store}/in/{number}.xml", WIKI)
    put(f"{store}/in/note.md", b"no dump")
    told = []
    whole = noisegen.mine_wiki(f"{store}/in", tmp_path / "whole", tell=told.append)
    sources = f"{store}/in/*.xml"
    options = decode(WikiOptions, {"dumps": sources, "out": f"{store}/out"})
    made = run_cut(options, lambda _: dumps.tasks_of([sources], "en", 2_000)[0])

    assert len(whole.shards) == 2 < len(made.shards)
    assert made.totals == whole.totals
    assert ["note.md: not a MediaWiki export" in line for line in told] == [True]


def test_a_run_in_a_store_resumes_by_its_listing(store, tmp_path, monkeypatch):
    urls = [put(f"{store}/in/{n}.tsv", FILES["pairs"][1]) for n in range(3)]
    out = f"{store}/out"
    assert noisegen.mine_pairs(urls, out, part="1/2").missing_tasks == 1
    made = noisegen.mine_pairs(urls, out, part="2/2")

    assert made.missing_tasks == 0
    assert names(f"{out}/words") == [f"part-0000{number}.parquet" for number in range(3)]
    hashed = []
    monkeypatch.setattr(
        mine, "file_digest", lambda path: hashed.append(path.name) or file_digest(path)
    )
    noisegen.mine_pairs(urls, out, resume=True)
    assert hashed == ["dictionary.parquet", "dictionary.tsv"]
    put(urls[0], FILES["pairs"][1] * 2)
    with pytest.raises(OutputError, match="other sources"):
        noisegen.mine_pairs(urls, out, resume=True)


def test_clean_files_and_archives_of_a_store(store, tmp_path):
    noisy, clean = (
        put(f"{store}/{name}", f"{text}\n".encode() * 2)
        for name, text in (("noisy.txt", NOISY), ("clean.txt", CLEAN))
    )
    made = noisegen.mine_pairs(noisy, tmp_path / "out", clean_files=[clean])
    assert made.totals["pairs"] == 2
    archive = put(f"{store}/a.7z", b"7z\xbc\xaf\x27\x1c" + bytes(30))
    with pytest.raises(SourceError, match=r"a\.7z: a 7z archive is read from a folder here"):
        noisegen.mine_wiki(archive, tmp_path / "archive")


@pytest.mark.parametrize(
    ("out", "message"),
    [
        ("memory://out", "memory:// ends with the command"),
        ("sftp://host/out", "only a folder, s3://, gs:// and az:// are written to"),
    ],
)
def test_what_cannot_be_written_to_is_one_line(out, message, tmp_path, capfd):
    (tmp_path / "a.tsv").write_bytes(FILES["pairs"][1])
    assert run(["mine-pairs", str(tmp_path / "a.tsv"), "-o", out]) in (1, 2)
    [line] = capfd.readouterr().err.splitlines()
    assert message in line


def test_a_missing_object_is_one_line(store, tmp_path):
    for function in MINE.values():
        with pytest.raises(SourceError, match=r"no\.tsv") as caught:
            function(f"{store}/no.tsv", tmp_path / "out")
        assert "\n" not in str(caught.value)
