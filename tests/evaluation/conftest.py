"""Tiny encoders of random weights, and files with pairs and labels."""

import pytest

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
            vocab_size=len(words), hidden_size=width, num_hidden_layers=1, num_attention_heads=2,
            intermediate_size=64, max_position_embeddings=128,
        )  # fmt: skip
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            transformers.BertModel(config).save_pretrained(folder)
        return folder

    return made


@pytest.fixture(autouse=True, scope="module")
def _one_thread():
    """Let tiny models compute without threads that wait for each other."""
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
