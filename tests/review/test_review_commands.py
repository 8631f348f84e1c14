"""`noisegen review make, serve, report` on the command line."""

import json
import signal
import subprocess
import sys
from types import SimpleNamespace

import pytest
from reviews import Client, Served, made, output, sentences, serving

from noisegen import cli, review
from noisegen.text.resources import DICTIONARIES

DEMO = str(DICTIONARIES.parent / "demo" / "demo.tsv")


@pytest.fixture
def path(tmp_path):
    return made(tmp_path, rows=3, count=30)


def test_make_prints_counts_and_the_next_command(tmp_path, capsys):
    out = tmp_path / "r.sqlite"
    asked = ["-t", "fing", "--strengths", "0.02,0.05,0.1", "--limit", "300"]
    code = cli.run(["review", "make", DEMO, "-o", str(out), *asked])
    said = capsys.readouterr()
    assert code == 0
    assert said.out == ""
    assert "en, fing at 0.05: drew 15 rows of" in said.err
    assert f"45 rows; now: noisegen review serve {out}" in said.err


def test_make_prints_json(tmp_path, capsys):
    folder = output(tmp_path / "out", sentences(20))
    asked = ["--json", "--rows", "4", "--strengths", "0.1"]
    assert cli.run(["review", "make", str(folder), "-o", str(tmp_path / "r.sqlite"), *asked]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["items"], found["groups"][0]["strength"]) == (4, "0.1")


def test_who_made_the_noise_is_hidden_from_reviewers_and_told_by_the_report(tmp_path, capsys):
    pairs = "".join(f"{clean}\t{noisy}\n" for clean, noisy in sentences(40))
    (tmp_path / "pairs.tsv").write_text(f"clean\tnoisy\n{pairs}")
    path = tmp_path / "r.sqlite"
    source, asked = (
        str(tmp_path / "pairs.tsv"),
        ["--with-real", "-t", "fing:rate=0.1", "--rows", "10"],
    )
    assert cli.run(["review", "make", source, "-o", str(path), *asked]) == 0
    said = capsys.readouterr().err
    assert "en, real noise at x1: drew 10 rows of 40 changed; 0 of 40 rows unchanged" in said
    assert f"{path}: 20 rows; now: noisegen review serve {path}" in said
    with serving(path) as server:
        ana = Client(server).join("Ana")
        for place in range(20):
            status, item = ana.get(f"/api/items/{place}")
            assert (status, "real" in str(item), "'fing'" in str(item)) == (200, False, False)
            ana.answer(item["item"], "realism", "realistic")
    assert cli.run(["review", "report", str(path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(group["recipe"], group["strength"], group["judged"]) for group in found["groups"]] == [
        ("fing", "x1", 10),
        ("real noise", "x1", 10),
    ]
    assert [verdict["recipe"] for verdict in found["verdicts"]] == ["fing"]


def test_more_goes_on_with_a_review(path, capsys):
    assert cli.run(["review", "make", "-o", str(path), "--more", "5", "--strength", "low"]) == 0
    assert "unknown at low: drew 5 rows" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ["--more", "5", "--seed", "3"],
        ["--more", "5", "--strengths", "0.1"],
        ["--more", "5", "-t", "fing"],
        ["--more", "5", "--set", "fing.rate=1"],
        ["--strength", "low"],
        ["--more", "0"],
        [],
    ],
)
def test_options_that_would_go_unheard_are_wrong_usage(path, words, capsys):
    assert cli.run(["review", "make", "-o", str(path), *words]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_report_prints_tables_and_writes_a_page(path, tmp_path, capsys):
    assert cli.run(["review", "report", str(path), "-o", str(tmp_path / "r.html")]) == 0
    said = capsys.readouterr()
    assert "0 of 9 rows judged" in said.out
    assert "wrote" in said.err
    assert (tmp_path / "r.html").read_text().startswith("<!doctype html>")


def test_report_prints_json(path, capsys):
    assert cli.run(["review", "report", str(path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["items"], found["cut_off"]) == (9, 0.95)
    assert {"groups", "verdicts", "agreement", "kinds", "reviewers"} <= set(found)


def test_a_file_that_is_no_review_ends_with_one_line(tmp_path, capsys):
    (tmp_path / "x.sqlite").write_text("no")
    for words in (["serve"], ["report"], ["make", "--more", "3", "-o"]):
        assert cli.run(["review", *words, str(tmp_path / "x.sqlite")]) == 1
        said = capsys.readouterr().err
        assert said.startswith("error: cannot use the review")
        assert said.count("\n") == 1


def test_serve_says_that_its_port_is_in_use(path, capsys):
    with serving(path) as server:
        port = server.port
        assert cli.run(["review", "serve", str(path), "--port", str(port)]) == 1
    said = capsys.readouterr().err
    assert f"error: port {port} of 127.0.0.1 is in use; a free one: --port" in said


def test_serve_without_its_packages_names_the_extra(path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert cli.run(["review", "serve", str(path)]) == 1
    assert "pip install 'noisegen[review]'" in capsys.readouterr().err


def test_make_and_report_need_no_web_server(path):
    code = (
        "import sys; sys.modules['uvicorn'] = sys.modules['starlette'] = None\n"
        "from noisegen import review; print(review.report(sys.argv[1]).items)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("9\n", "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_serve_ends_on_a_signal_and_says_where_the_answers_are(path, number):
    with Served(path) as served:
        assert served.address.startswith("http://127.0.0.1:")
        code, said = served.stop(number)
    *before, last = said.splitlines()
    assert (code, last) == (0, f"stopped; the answers are in {path}"), said
    assert before in ([], ["stop with Ctrl-C; every answer is stored at once"])
    assert [one.name for one in path.parent.glob("review.sqlite*")] == ["review.sqlite"]


def test_serve_warns_when_others_can_reach_it(path):
    with Served(path, "--host", "0.0.0.0") as served:
        _, said = served.stop(signal.SIGINT)
    assert "warning: 0.0.0.0 can be reached from other machines" in said


def test_an_answer_outlives_the_death_of_the_server(path):
    with serving(path) as server:
        client = Client(server).join("Ana")
        item = client.get("/api/items/0")[1]["item"]
    with Served(path) as served:
        port, _, token = served.address.removeprefix("http://127.0.0.1:").partition("/?token=")
        other = Client(SimpleNamespace(port=int(port), token=token, review=server.review))
        other.reviewer = client.reviewer
        assert other.answer(item, "realism", "realistic") == 200
        served.stop(signal.SIGKILL)
    assert review.report(path).judged == 1


def test_make_counts_what_it_could_not_read(tmp_path, capsys):
    source = tmp_path / "text"
    source.mkdir()
    lines = [b"a good line to noise", b"a bad \xff line", b"another good line"]
    (source / "a.txt").write_bytes(b"\n".join(lines))
    (source / "b.pdf").write_bytes(b"%PDF")
    words = ["review", "make", str(source), "-t", "fing", "--strengths", "0.3", "--rows", "1"]
    assert cli.run([*words, "-o", str(tmp_path / "r.sqlite")]) == 3
    assert "dropped or damaged: 1 unread_file, 1 not_utf8\n" in capsys.readouterr().err
    assert cli.run([*words, "-o", str(tmp_path / "s.sqlite"), "--json"]) == 3
    assert json.loads(capsys.readouterr().out)["dropped"] == {"unread_file": 1, "not_utf8": 1}
