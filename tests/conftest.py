"""What several tests share: real sentences, odd sentences, a cache of their own."""

import csv
import gzip
import os
from pathlib import Path

import pytest
from hypothesis import settings

from noisegen import registry
from noisegen.registry import DICTIONARIES
from noisegen.testing import ODD_TEXTS

SHARED = Path(__file__).parents[2] / "shared" / "data"

settings.register_profile("default", deadline=None, derandomize=True)
settings.register_profile("nightly", deadline=None, max_examples=2_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


@pytest.fixture(autouse=True, scope="session")
def _own_cache(tmp_path_factory):
    """Compile lexicons into a folder of this run, not the user's."""
    os.environ["NOISEGEN_CACHE"] = str(tmp_path_factory.mktemp("cache"))


@pytest.fixture(autouse=True, scope="module")
def _own_plug_ins():
    """Forget the transforms that the tests of a module registered."""
    registry.names()
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
def wiki_sentences() -> list[str]:
    """10,000 real Wikipedia sentences; skips where the development data is absent."""
    rows = []
    for name in ("tune", "validation"):
        path = SHARED / "wiki-split" / f"{name}.tsv.gz"
        if not path.exists():
            pytest.skip("no development data")
        with gzip.open(path, "rt", encoding="utf-8") as file:
            rows += [line.split("\t")[0] for line in file]
    return rows


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A Dask scheduler on loopback with two worker processes."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1",
        dashboard_address="127.0.0.1:0", silence_logs=50,
        local_directory=str(tmp_path_factory.mktemp("dask")),
    ) as made:  # fmt: skip
        yield f"dask:{made.scheduler_address}"


@pytest.fixture(scope="session")
def tiny_bert(tmp_path_factory):
    """A folder with a BERT of two layers, 32 wide, and word pieces of our sentences."""
    import torch
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    folder = tmp_path_factory.mktemp("tiny")
    signs = list("abcdefghijklmnopqrstuvwxyz0123456789.,'!?-")
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *signs, *(f"##{sign}" for sign in signs)]
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    backend = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    backend.normalizer = normalizers.BertNormalizer(lowercase=True)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    PreTrainedTokenizerFast(
        tokenizer_object=backend, pad_token="[PAD]", unk_token="[UNK]", model_max_length=128
    ).save_pretrained(folder)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(pieces), hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=64, max_position_embeddings=128, initializer_range=0.2,
    )  # fmt: skip
    BertModel(config, add_pooling_layer=False).save_pretrained(folder)
    return folder
