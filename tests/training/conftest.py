"""Pairs of our own to train on."""

import pytest

import noisegen


@pytest.fixture(scope="session")
def sentences(demo):
    """English sentences, four hundred of them, made of the bundled ones."""
    texts = [row["text"] for row in demo if row["lang"] == "en"]
    made = [f"{a[:40]} {b[-40:]}" for a in texts for b in texts if a != b]
    return list(dict.fromkeys(made))[:400]


@pytest.fixture(scope="session")
def pairs_file(tmp_path_factory, sentences):
    """Pairs as a table: the noise of `fing`."""
    path = tmp_path_factory.mktemp("pairs") / "pairs.tsv"
    rows = [
        f"{text}\t{noisegen.noise(text, 'ugc', seed=1, id=number)}"
        for number, text in enumerate(sentences)
    ]
    path.write_text("\n".join(["clean\tnoisy", *rows]) + "\n")
    return path


@pytest.fixture(autouse=True, scope="session")
def _two_threads():
    import torch

    torch.set_num_threads(2)
