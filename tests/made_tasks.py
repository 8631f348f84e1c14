"""Files of small labelled tasks, in the formats that `evaluate-task` reads."""

import json

ARTISTS = ["anna", "bob dee", "cleo", "dan fox", "eve"]
CITIES = ["ulm", "new york", "rome", "bonn"]


def requests() -> list[tuple[str, list[tuple[str, str | None]]]]:
    """Intent and pieces of text: 20 requests for music, 20 for the weather."""
    music = [
        ("PlayMusic", [("play ", None), (name, "artist"), (end, None)])
        for name in ARTISTS
        for end in (" now", "", ".", " for me")
    ]
    weather = [
        ("GetWeather", [("weather in ", None), (name, "city"), (end, None)])
        for name in CITIES
        for end in (" today", "", "?", " on monday", " please")
    ]
    return music + weather


def snips_file(folder):
    """Write the requests as SNIPS has them."""
    content: dict[str, list[object]] = {}
    for intent, pieces in requests():
        data = [{"text": text} | ({"entity": slot} if slot else {}) for text, slot in pieces]
        content.setdefault(intent, []).append({"data": data})
    path = folder / "train.json"
    path.write_text(json.dumps(content), "utf-8")
    return path


def slots_file(folder, name="es.tsv", noise=str.upper):
    """Write the requests as MultiSNIPS has them: both sides, slots without B- and I-."""
    lines = ["id\told_utterance\tnew_utterance\tdiffs\tslot_labels\tintent"]
    for number, (intent, pieces) in enumerate(requests()):
        tokens, labels = [], []
        for text, slot in pieces:
            tokens += text.split()
            labels += [slot or "O"] * len(text.split())
        noisy = [*tokens[:-1], f"<{noise(tokens[-1])}|0>"]
        cells = (number, " ".join(tokens), " ".join(noisy), "-", " ".join(labels), intent)
        lines.append("\t".join(map(str, cells)))
    path = folder / name
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def wikiann_file(folder, name, lang):
    """Write sentences with persons and places as WikiANN has them."""
    lines = []
    for person in ARTISTS:
        for place in CITIES:
            words = [*person.split(), "lives", "in", *place.split()]
            tags = [*["B-PER", "I-PER"][: len(person.split())], "O", "O"]
            tags += ["B-LOC", "I-LOC"][: len(place.split())]
            lines += [f"{lang}:{word}\t{tag}" for word, tag in zip(words, tags, strict=True)] + [""]
    path = folder / name
    path.write_text("\n".join(lines), "utf-8")
    return path


def nli_file(folder, name):
    """Write pairs that agree without a not, in the form of XNLI's training data."""
    lines = ["premise\thypo\tlabel"]
    for person in ARTISTS:
        for place in CITIES:
            lines.append(f"{person} is in {place}\t{person} is in {place}\tentailment")
            lines.append(f"{person} is in {place}\t{person} is not in {place}\tcontradictory")
    path = folder / name
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path
