"""Build a static page that compares a student with its teacher in the browser, for a Hub Space.

    make space STUDENT=run/student OUT=space
    python -m http.server --directory space
    hf upload NAME space --repo-type space

Both encoders are exported by `noisegen export`, and their int8 graphs run in the browser. npm
brings onnxruntime-web and @huggingface/tokenizers into the folder; the page asks for nothing else.
Needs the extras `train` and `onnx`, and npm.
"""

import argparse
import json
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

import noisegen
from noisegen.errors import NoisegenError
from noisegen.report.blocks import differences
from noisegen.text.resources import DEMO, PACKAGE, rows_of
from noisegen.training.export import INT8, onnx_vectors

PAGE = Path(__file__).parent / "space"
STYLE = PACKAGE / "report" / "templates" / "page.css"
# npm package, its version, licence, and the files of its `dist` that the folder `library` gets.
LIBRARIES = (
    (
        *("onnxruntime-web", "1.30.0", "MIT"),
        ("ort.wasm.min.mjs", "ort-wasm-simd-threaded.mjs", "ort-wasm-simd-threaded.wasm"),
    ),
    ("@huggingface/tokenizers", "0.2.0", "Apache-2.0", ("tokenizers.min.mjs",)),
)
MODEL_FILES = ("tokenizer.json", INT8)
SENTENCE, POST = "People tried to break windows.", "ppl triwd 2 brk windows"
KINDS = ("chat", "forum", "review")  # of the demo text: what people post
RECIPES = ("ugc", "ugc-heavy", "typo")
EXAMPLES, EXAMPLE_MAX = 20, 80  # sentences with noisy versions; characters of the longest
SEEDS = 50  # seeds that are tried until every recipe changes a sentence
README = """\
---
{front}---

# Which sentence is it?

A robust sentence encoder beside its teacher, {teacher}: both look for the nearest of {count}
edited sentences. Everything runs in the browser. Built by noisegen {version}; any server of static
files shows it.

| files | of | licence |
|---|---|---|
{files}
| all others: page, sentences, noise | noisegen | Apache-2.0 |

`library` has the texts of its licences. onnxruntime contains further libraries: its
[notices](https://github.com/microsoft/onnxruntime/blob/main/ThirdPartyNotices.txt) list them.
"""


def main() -> None:
    """Build the page that the command line asks for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("student", help="RUN/student or another SPEC that can be exported")
    parser.add_argument("-o", "--out", type=Path, required=True, help="new folder")
    parser.add_argument("--teacher", default="minilm", help="SPEC of the encoder beside it")
    options = parser.parse_args()
    if options.out.exists():
        raise SystemExit(f"{options.out} exists: give the name of a new folder")
    try:
        with tempfile.TemporaryDirectory() as name:
            made = Path(name) / "space"
            build({"student": options.student, "teacher": options.teacher}, made)
            shutil.move(made, options.out)
    except (NoisegenError, OSError) as error:
        raise SystemExit(f"cannot build {options.out}: {error}") from None
    size = sum(path.stat().st_size for path in options.out.rglob("*") if path.is_file())
    print(f"wrote {options.out}: {size / 1e6:.1f} MB")


def build(specs: Mapping[str, str], out: Path) -> None:
    """Write the folder of the page; `specs` has the SPEC of `student` and `teacher`.

    Raises NoisegenError, OSError, and SystemExit without npm.
    """
    shutil.copytree(PAGE, out)
    shutil.copy(STYLE, out)
    for name, version, _, files in LIBRARIES:
        fetch(f"{name}@{version}", files, out / "library")
    data = content()
    cards = {part: export(spec, out / part, data["texts"]) for part, spec in specs.items()}
    titles = {part: str(card["base_model"]).rpartition("/")[2] for part, card in cards.items()}
    data["titles"] = {"student": "Robust student", "teacher": f"Teacher: {titles['teacher']}"}
    sizes = {part: sum((out / part / n).stat().st_size for n in MODEL_FILES) for part in specs}
    data["bytes"] = sum(sizes.values())
    (out / "data.json").write_text(json.dumps(data, ensure_ascii=False), "utf-8")
    licences = {part: str(card.get("license") or "see its card") for part, card in cards.items()}
    rows = [
        f"| `{part}/` ({sizes[part] / 1e6:.0f} MB) | {part}: {card['base_model']}"
        f"{' with noisegen' if part == 'student' else ''} | {licences[part]} |"
        for part, card in cards.items()
    ]
    for name, version, licence, files in LIBRARIES:
        listed = ", ".join(f"`library/{file}`" for file in files)
        rows.append(f"| {listed} | {name} {version} | {licence} |")
    front = {"title": "Noisy posts", "emoji": "✏️", "colorFrom": "blue", "colorTo": "green"}
    front |= {"sdk": "static", "license": cards["student"].get("license") or "other"}
    values = {"teacher": titles["teacher"], "count": len(data["sentences"])}
    values |= {"version": noisegen.__version__, "files": "\n".join(rows)}
    head = yaml.safe_dump(front, sort_keys=False, allow_unicode=True)
    (out / "README.md").write_text(README.format(front=head, **values), "utf-8")


def fetch(package: str, files: Sequence[str], out: Path) -> None:
    """Download an npm package, NAME@VERSION; write some files of its `dist`, and its licence."""
    npm = shutil.which("npm")
    if npm is None:
        raise SystemExit("npm is missing: install Node.js")
    with tempfile.TemporaryDirectory() as folder:
        command = [npm, "pack", package, "--silent", "--pack-destination", folder]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"npm cannot download {package}: {done.stderr.strip()}")
        with tarfile.open(next(Path(folder).glob("*.tgz"))) as archive:
            name = package.rpartition("@")[0].rpartition("/")[2]
            places = {f"package/dist/{file}": out / file for file in files}
            places["package/LICENSE"] = out / f"LICENSE.{name}"
            for member in archive:
                if (place := places.get(member.name)) and (packed := archive.extractfile(member)):
                    place.write_bytes(packed.read())


def content() -> dict[str, Any]:
    """Return sentences, examples and noisy texts of the page; `texts` are those with vectors."""
    sentences = [SENTENCE]
    sentences += [text for text, kind, lang in rows_of(DEMO) if lang == "en" and kind in KINDS]
    examples: list[dict[str, Any]] = []
    noisy = {POST: made_of(SENTENCE, POST)}
    for clean in sentences:
        versions = noisy_versions(clean) if len(clean) <= EXAMPLE_MAX else {}
        if versions and len(examples) < EXAMPLES:
            noisy |= {text: made_of(clean, text) for text in versions.values()}
            named = {"clean": clean} | versions
            listed = [{"name": name, "text": text} for name, text in named.items()]
            examples.append({"clean": clean, "versions": listed})
    return {
        "post": POST,
        "sentences": sentences,
        "examples": examples,
        "noisy": noisy,
        "texts": list(dict.fromkeys([*sentences, *noisy])),
    }


def noisy_versions(clean: str) -> dict[str, str]:
    """Return a noisy text per recipe, of the first seed that changes all; {} if there is none."""
    for seed in range(SEEDS):
        versions = {recipe: noisegen.noise(clean, recipe, seed=seed) for recipe in RECIPES}
        if len({clean, *versions.values()}) > len(RECIPES):
            return versions
    return {}


def made_of(clean: str, noisy: str) -> dict[str, Any]:
    """Return a noisy text's clean sentence, and its pieces: text, whether it was changed."""
    return {"clean": clean, "pieces": differences(clean, noisy)[1]}


def export(spec: str, out: Path, texts: Sequence[str]) -> dict[str, Any]:
    """Write an encoder's files and its vectors of texts; return the front matter of its card."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "exported"
        noisegen.export(spec, str(folder))
        if (folder / "preparation.json").exists():
            raise SystemExit(f"{spec} prepares its texts, which the page does not do")
        for file in MODEL_FILES:
            (out / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(folder / file, out / file)
        vectors = onnx_vectors(folder, INT8, texts)
        (out / "vectors.bin").write_bytes(vectors.astype("<f4").tobytes())
        front = (folder / "README.md").read_text("utf-8").split("---\n")[1]
    card: dict[str, Any] = yaml.safe_load(front)
    return card


if __name__ == "__main__":
    main()
