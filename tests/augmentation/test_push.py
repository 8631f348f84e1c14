"""A run goes to the Hugging Face Hub as it lies: a Hub on loopback takes what the docs upload."""

import base64
import json
import os
import re
import shlex
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from runs import DEMO, augment

pytest.importorskip("huggingface_hub")
PAGE = (Path(__file__).parents[2] / "docs" / "guides" / "augment.md").read_text("utf-8")
LINES = re.findall(r"(?m)^hf upload .*$", PAGE)


class Hub(BaseHTTPRequestHandler):
    """Makes a repository, takes all files as they are, and keeps what is committed."""

    files: dict[str, bytes]

    def log_message(self, *given):
        """Print nothing."""

    def do_GET(self):
        self.answer({})

    def do_POST(self):
        content = self.rfile.read(int(self.headers["Content-Length"]))
        url = f"http://{self.headers['Host']}/{'/'.join(self.path.split('/')[2:5])}"
        if "/preupload/" in self.path:
            names = [file["path"] for file in json.loads(content)["files"]]
            plain = {"uploadMode": "regular", "shouldIgnore": False}
            self.answer({"files": [{"path": name, **plain} for name in names]})
        elif "/commit/" in self.path:
            entries = map(json.loads, content.splitlines())
            for file in (entry["value"] for entry in entries if entry["key"] == "file"):
                self.files[file["path"]] = base64.b64decode(file["content"])
            self.answer({"commitUrl": f"{url}/commit/1", "commitOid": "1", "success": True})
        else:
            self.answer({"url": url, "name": "YOU/it"})

    def answer(self, content):
        body = json.dumps(content).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def hub(monkeypatch, tmp_path):
    """The files that a Hub on loopback has, which the environment names."""
    Hub.files = {}
    with ThreadingHTTPServer(("127.0.0.1", 0), Hub) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        given = {
            "HF_ENDPOINT": f"http://127.0.0.1:{server.server_port}",
            "HF_TOKEN": "hf_any",
            "HF_HOME": str(tmp_path / "home"),
            "HF_HUB_DISABLE_TELEMETRY": "1",
        }
        for name, value in given.items():
            monkeypatch.setenv(name, value)
        monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
        yield Hub.files
        server.shutdown()


@pytest.mark.parametrize("line", LINES)
def test_the_line_of_the_documentation_uploads_a_folder(line, hub, tmp_path):
    augment(DEMO, tmp_path / "OUT", rows_per_shard=300, transforms="spac")
    model = tmp_path / "run" / "student"
    model.mkdir(parents=True)
    (model / "README.md").write_text("---\nlicense: mit\n---\n# A student\n")
    folder = tmp_path / line.split()[3]

    program = Path(sys.executable).with_name("hf")
    subprocess.run(
        [program, *shlex.split(line)[1:]],
        cwd=tmp_path,
        env=os.environ,
        check=True,
        capture_output=True,
        timeout=60,
    )

    files = [path for path in folder.rglob("*") if path.is_file()]
    assert hub == {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def test_the_documentation_says_how_to_upload_datasets_and_models():
    assert [line.split()[3] for line in LINES] == ["OUT", "run/student"]
