"""What several tests share: real sentences, odd sentences, a cache of their own."""

import csv
import json
import os
import shutil
import signal
from importlib.util import find_spec
from pathlib import Path

import pytest
from annotated_rows import CONTRACTED
from clusters import cluster, eight_workers  # noqa: F401 (fixtures)
from hypothesis import settings
from models import bert_folder

import noisegen
from noisegen.cli import run
from noisegen.noising import registry
from noisegen.testing import ODD_TEXTS
from noisegen.text.resources import DICTIONARIES

SHARED = Path(__file__).parents[2] / "shared" / "data"

settings.register_profile("default", deadline=None, derandomize=True)
settings.register_profile("nightly", deadline=None, max_examples=2_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


def pytest_configure(config):
    config.addinivalue_line(
        "markers", "gpu: shows what only a GPU can, `make gpu`; the CPU runs it"
    )


@pytest.fixture(autouse=True, scope="session")
def _interruptible():
    """Let programs that tests start be interrupted, where a shell's `&` had them ignore it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True, scope="session")
def _own_cache(tmp_path_factory):
    """Compile lexicons into a folder of this run, which all its processes share."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    os.environ["NOISEGEN_CACHE"] = str(folder / "cache")


@pytest.fixture(autouse=True, scope="module")
def _own_plug_ins():
    """Forget the transforms that the tests of a module registered."""
    for name in registry.names():
        registry.get(name)  # loads what registers it, once a process
    kept = dict(registry._REGISTERED), dict(registry._CODE)
    yield
    for known, before in zip((registry._REGISTERED, registry._CODE), kept, strict=True):
        known.clear()
        known.update(before)


@pytest.fixture(scope="session")
def demo() -> list[dict[str, str]]:
    """The bundled sentences, in ten languages."""
    with (DICTIONARIES.parent / "demo" / "demo.tsv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


@pytest.fixture(scope="session")
def demo_texts(demo) -> list[str]:
    return [row["text"] for row in demo]


@pytest.fixture(scope="session")
def odd_texts() -> list[str]:
    """Empty, blank, combining, ZWJ, CRLF, dotted I, URLs, and one row of 100 kB."""
    return [*ODD_TEXTS, "I'm going to see 2 people’s friends, bcs they’re here. " * 2_000]


@pytest.fixture(scope="session")
def real_sentences() -> list[str]:
    """10,000 real sentences of Wikipedia and news, from the test data in gensim's wheel."""
    pytest.importorskip("gensim")
    from noisegen.demo.quickstart import demo_texts

    return demo_texts().training[-10_000:]


@pytest.fixture(scope="module")
def chromium():
    """A Chromium without a window; what needs it is skipped where there is none."""
    playwright = pytest.importorskip("playwright.sync_api")
    names = ("chromium", "chromium-browser", "google-chrome")
    program = next(filter(None, map(shutil.which, names)), None)
    if program is None:
        pytest.skip(f"no browser: none of {', '.join(names)}")
    with playwright.sync_playwright() as running:
        sandbox = [] if os.getuid() else ["--no-sandbox"]
        browser = running.chromium.launch(executable_path=program, args=sandbox)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def tiny_bert(tmp_path_factory):
    """A folder with a BERT of two layers, 32 wide, and word pieces of our sentences."""
    return bert_folder(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="session")
def sentences(demo):
    """English sentences, four hundred of them, made of the bundled ones."""
    texts = [row["text"] for row in demo if row["lang"] == "en"]
    made = [f"{a[:40]} {b[-40:]}" for a in texts for b in texts if a != b]
    return list(dict.fromkeys(made))[:400]


@pytest.fixture(scope="session")
def pairs_file(tmp_path_factory, sentences):
    """Pairs as a table: the noise of `ugc`."""
    path = tmp_path_factory.mktemp("pairs") / "pairs.tsv"
    rows = [
        f"{text}\t{noisegen.noise(text, 'ugc', seed=1, id=number)}"
        for number, text in enumerate(sentences)
    ]
    path.write_text("\n".join(["clean\tnoisy", *rows]) + "\n")
    return path


LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789.,!?'"


@pytest.fixture(scope="session")
def tiny_models(tmp_path_factory):
    """Return a function that makes the folder of a BERT model of one layer, by width and seed."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    root = tmp_path_factory.mktemp("tiny")

    def made(width: int = 32, seed: int = 0):
        folder = root / f"bert-{width}-{seed}"
        if folder.exists():
            return folder
        folder.mkdir()
        words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
        words += list(LETTERS) + [f"##{letter}" for letter in LETTERS]
        (folder / "vocab.txt").write_text("\n".join(words) + "\n", "utf-8")
        tokenizer = transformers.BertTokenizerFast(str(folder / "vocab.txt"), model_max_length=128)
        tokenizer.save_pretrained(folder)
        config = transformers.BertConfig(
            vocab_size=len(words),
            hidden_size=width,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=64,
            max_position_embeddings=128,
        )
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            transformers.BertModel(config).save_pretrained(folder)
        return folder

    return made


@pytest.fixture(autouse=True, scope="session")
def _one_thread():
    """Let tiny models compute without threads that wait for each other."""
    if find_spec("torch"):
        import torch

        torch.set_num_threads(1)


@pytest.fixture
def write(tmp_path):
    """Write a file of the test's folder: text, bytes, or a table as Parquet."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    def write(name, content):
        path = tmp_path / name
        if isinstance(content, dict):
            pq.write_table(pa.table(content), path)
        else:
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.fixture(scope="session")
def s3_server():
    """A local S3 with a bucket `bucket`, which the environment names to all processes."""
    fsspec, moto = map(pytest.importorskip, ("fsspec", "moto.server"))
    pytest.importorskip("s3fs")
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    given = {
        "FSSPEC_S3_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "any",
        "AWS_SECRET_ACCESS_KEY": "any",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    with pytest.MonkeyPatch.context() as patched:
        for name, value in given.items():
            patched.setenv(name, value)
        fsspec.config.set_conf_env(fsspec.config.conf, os.environ)  # which `datasets` replaces
        fsspec.filesystem("s3").mkdir("bucket")
        yield
    server.stop()


@pytest.fixture
def portions_made(monkeypatch):
    """Return the numbers of the portions that runs of `prepare` in this process make."""
    from noisegen.preparation import prepare

    numbers, make = [], prepare.make_candidates

    def counted(job, portion):
        numbers.append(portion.number)
        return make(job, portion)

    monkeypatch.setattr(prepare, "make_candidates", counted)
    return numbers


@pytest.fixture
def noised(tmp_path, capfd):
    """Write a file, run `augment` on it; return the exit code, the output file and stderr."""

    def write(name, content, *options, out=None):
        source = tmp_path / name
        text = (
            content
            if isinstance(content, str)
            else "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in content)
        )
        source.write_bytes(text.encode())
        made = tmp_path / (out or f"noisy-{name}")
        code = run(["augment", str(source), "-o", str(made), *CONTRACTED, *options])
        said = capfd.readouterr().err
        is_text = made.is_file() and made.suffix != ".parquet"
        return code, made.read_text() if is_text else made, said

    return write
