# Every command sets up all it needs in .venv, from nothing but Python 3.11+.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Little is compiled to bytecode when it is installed: what is imported is, at its first import, which must keep it.
unexport PYTHONDONTWRITEBYTECODE
# But for these: the workers of the tests would compile them at the same time, each for itself.
COMPILED := numpy scipy sklearn pandas polars dask distributed qiskit qiskit_ibm_runtime matplotlib hypothesis _pytest

.PHONY: demo test suite quick lint browser smoke docs bench clean

demo: $(VENV)/.runtime
	$(BIN)/qmedoid demo --output build/demo

# The parts of the check need nothing of each other: side by side, no core waits for the end of a part. Nor do those
# of the set-up.
test:
	$(MAKE) --no-print-directory --jobs 3 smoke lint suite

# A core for each worker: threads of OpenMP that wait for each other would take both.
suite: $(VENV)/.dev browser
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal -q

# The tests of one folder with few random examples, the failed ones first, up to the first failure: make quick AREA=metrics
quick: $(VENV)/.dev
	@test -d "tests/$(AREA)" || { echo "Name a folder of tests/, as in: make quick AREA=metrics"; exit 2; }
	QMEDOID_EXAMPLES=5 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal -x --ff -q tests/$(AREA)

# Chromium for the tests of pages, where it is absent and can be installed; without it these tests are skipped.
browser:
	@command -v chromium > /dev/null || command -v chromium-browser > /dev/null || command -v google-chrome > /dev/null || \
	{ [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null && apt-get -qq update && \
	apt-get -qq install --yes --no-install-recommends chromium > /dev/null; } || \
	echo "No browser: the tests of pages are skipped. Install one: apt-get install chromium"

# Every experiment of the paper on few splits, from fits to the page, with nothing from an earlier run.
smoke: $(VENV)/.dev
	rm -rf build/smoke && mkdir -p build/smoke
	OMP_NUM_THREADS=1 $(BIN)/qmedoid reproduce --quick --jobs 1 --output build/smoke/report --cache build/smoke/cells \
	  > build/smoke/printed.txt
	cat build/smoke/report/findings.txt

# The documentation as a site in build/docs; it loads nothing from elsewhere, and a warning is an error.
docs: $(VENV)/.docs
	$(BIN)/python -m sphinx --builder html --nitpicky --fail-on-warning --quiet --conf-dir docs/site . build/docs
	@echo "Open build/docs/index.html."

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Everything whose change means the package must be built again.
SOURCES := pyproject.toml setup.py $(wildcard src/qmedoid/kernels/*.pyx src/qmedoid/kernels/c/*)

$(VENV)/bin/python:
	@echo "Setting up $(VENV); the first time takes a minute or two."
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.runtime: $(SOURCES) | $(VENV)/bin/python
	@echo "Installing qmedoid and what it needs."
	$(BIN)/python -m pip install --quiet --no-compile --editable .
	touch $@

# Packages are unpacked while the kernels are compiled: neither needs the other.
$(VENV)/.dev: $(VENV)/.packages $(VENV)/.kernels
	touch $@ $(VENV)/.runtime $(VENV)/.docs

$(VENV)/.packages: $(SOURCES) $(VENV)/.builder
	@echo "Installing qmedoid, the extras and the tools of the checks."
	QMEDOID_NO_EXTENSIONS=1 $(BIN)/python -m pip install --quiet --no-compile --no-build-isolation \
	  --editable ".[dev,docs,baselines]"
	cd $(VENV)/lib/python*/site-packages && $(CURDIR)/$(BIN)/python -m compileall -q -j 2 -x /tests/ $(COMPILED)
	touch $@

$(VENV)/.kernels: $(SOURCES) $(VENV)/.builder
	@echo "Compiling the kernels."
	$(BIN)/python setup.py --quiet build_ext --inplace
	touch $@

$(VENV)/.builder: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --no-compile "setuptools>=77" "cython>=3.1"
	touch $@

$(VENV)/.docs: $(SOURCES) | $(VENV)/bin/python
	@echo "Installing qmedoid and what builds its documentation."
	$(BIN)/python -m pip install --quiet --no-compile --editable ".[docs]"
	touch $@ $(VENV)/.runtime

# The committed tables in benchmarks/results; they need the extra packages that they compare with.
bench: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --no-compile --editable ".[dev,docs,baselines]" banditpam pennylane jax qiskit-machine-learning
	for script in benchmarks/[a-z]*.py; do PYTHONPATH=. $(BIN)/python $$script || exit 1; done

clean:
	rm -rf $(VENV) build docs/gallery src/qmedoid/kernels/*.so
