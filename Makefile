# Every target sets up what it needs: a virtual environment in .venv with the versions that constraints.txt pins.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
WHEELS := --quiet --only-binary :all:
HASHED := $(WHEELS) --require-hashes --no-deps

.PHONY: demo test test-slow test-minimal test-wheel test-gpu fuzz kill attack odd lint lock audit readme tables tables-quick clean

demo: $(READY)
	$(BIN)/python examples/map_digits.py

test: $(READY) lint
	$(BIN)/python -m pytest -q -n 2 --dist loadfile

test-slow: $(READY)
	$(BIN)/python -m pytest -q -m slow -n 2 --dist worksteal

# With the lowest versions that pyproject.toml admits, in .venv-minimal. RECORD=--record writes the outcomes to benchmarks/results.
test-minimal: $(READY)
	$(BIN)/python release/check_minimal.py $(RECORD)

# Build the wheel, install it alone into .venv-wheel and use it there.
test-wheel: $(READY)
	$(BIN)/python release/check_wheel.py $(RECORD)

# Needs a CUDA device; writes tests/gpu-record.json, which `make test` compares with the kernels in the tree.
test-gpu: $(READY)
	$(BIN)/python tests/run_gpu_tests.py

# Open 5,000 damaged or hostile model files within limits of time and memory; prints a table of what happened.
fuzz: $(READY)
	PYTHONPATH=benchmarks $(BIN)/python -W ignore tests/fuzz_model_files.py 5000 --record

# Kill 25 fits by SIGKILL and resume them from their checkpoints; prints a table of what happened.
kill: $(READY)
	PYTHONPATH=benchmarks $(BIN)/python -W ignore tests/kill_fits.py 25 --record

# Open 2,000 hostile or damaged data files likewise, and write the outcomes to benchmarks/results.
attack: $(READY)
	PYTHONPATH=benchmarks $(BIN)/python -W ignore tests/attack_data_files.py 2000 --record

# Fit and transform 10,000 odd inputs; prints a table of what happened.
odd: $(READY)
	PYTHONPATH=benchmarks $(BIN)/python -W ignore tests/try_odd_inputs.py 10000 --record

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Write the hashes of all versions in constraints.txt and release/*.txt, as the index of pip lists them.
lock: $(READY)
	$(BIN)/python release/lock.py

# Look up known vulnerabilities of the pinned packages. Needs a network.
audit: .venv-audit/.ready
	.venv-audit/bin/python release/audit.py

.venv-audit/.ready: release/audit.lock
	$(PYTHON) -m venv --clear .venv-audit
	.venv-audit/bin/python -m pip install $(HASHED) --requirement $<
	touch $@

# Fill the result tables of the README, docs and benchmarks from benchmarks/results.
readme: $(READY)
	$(BIN)/python benchmarks/readme.py

# Measure the paper's tables, figures and claims (hours; it resumes where it stopped) and write the report.
# DRE_DATA names a folder with the data sets; missing ones are downloaded.
tables: $(READY)
	$(BIN)/python benchmarks/bench.py

# The same on 2,000 rows, in minutes, to see that everything works.
tables-quick: $(READY)
	$(BIN)/python benchmarks/bench.py --quick

# Nothing is installed that constraints.txt does not pin, nothing is built but dre, and pip refuses a file whose hash is not in
# constraints.lock. torch is the exception: its builds differ, so that only its version is checked. It comes last, and finds there
# what it needs.
$(READY): pyproject.toml constraints.txt constraints.lock
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install $(HASHED) --requirement constraints.lock
	$(BIN)/python -m pip install $(WHEELS) --constraint constraints.txt torch
	$(BIN)/python -m pip install --quiet --no-index --no-deps --no-build-isolation --editable .
	$(BIN)/python -m pip check
	touch $@

clean:
	rm -rf .venv .venv-audit .venv-minimal .venv-wheel out .mypy_cache .ruff_cache .pytest_cache
