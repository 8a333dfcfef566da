# surefoot: set up, demo, test, check, bench. Needs Python 3.11.5 or newer and make.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready

.PHONY: demo serve test test-scale test-page check types docs dist bench evidence house eval-security eval-selection setup clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@command -v $(PYTHON) >/dev/null || { echo "make: $(PYTHON) was not found; install Python 3.11.5 or newer, or set PYTHON=..."; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11, 5))' || { echo "make: Python 3.11.5 or newer is needed; set PYTHON=..."; exit 1; }
	@echo "setting up $(VENV) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt --no-compile \
		-e '.[agui,cedar,cli,encoder,local,mcp,otel,postgres,prices,server,temporal,test,test-scale]'
	@$(BIN)/python -m compileall -qq -j 0 $(VENV)/lib || true  # pip does so on one core
	@touch $(STAMP)

demo: $(STAMP)  ## six real tasks on the embedded model, step by step
	@$(BIN)/surefoot model pull
	@$(BIN)/surefoot demo

serve: $(STAMP)  ## the page of `surefoot serve`, with a question, a repaired plan and the tasks of the demo on it
	@$(BIN)/surefoot model pull
	@$(BIN)/surefoot demo --serve --folder build/serve

test: $(STAMP)  ## everything: format, lint, types, house, all tests, the embedded model too
	@$(BIN)/surefoot model pull
	@$(BIN)/surefoot model pull --encoder
	$(MAKE) --no-print-directory -j 2 lint whole

test-scale: $(STAMP)  ## the long forms: hours of kills and stops, and all that needs PostgreSQL or Temporal
	$(BIN)/python -m pytest -n 2 -m "scale or postgres or temporal"
	$(BIN)/python -m pytest -n 2 -m "hypothesis and not scale" --hypothesis-profile long --timeout 3600
	$(BIN)/python tests/faults/in_full.py

test-page: $(STAMP)  ## the page of `surefoot serve` in a real browser; fetches chromium and node modules where it can
	@command -v chromium >/dev/null || { apt-get update -qq && apt-get install -y -qq chromium; } || echo "make: no chromium; on Debian, apt-get install chromium"
	@cd tests/page && npm ci --no-audit --no-fund --silent || echo "make: no node modules; install Node.js 20 or newer with npm"
	$(BIN)/python -m pytest -n 0 -rs -m page tests/server/test_server_page.py

check: $(STAMP)  ## the quick loop before a commit: format, lint, types of what changed, the core's tests, the house
	$(MAKE) --no-print-directory -j 2 changed quick

# Compiled files spare each worker and each started process most of its start.
test test-scale check: export PYTHONDONTWRITEBYTECODE :=

.PHONY: style changed lint quick whole
style: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

changed: style
	@files=$$(git diff --name-only --diff-filter=d HEAD -- '*.py'; git ls-files --others --exclude-standard -- '*.py'); \
	test -z "$$files" || $(BIN)/pyright $$files

lint: style
	$(BIN)/pyright

# The pure rooms, and of the shell what most changes of it break: a whole run, its plans, its reasoners, its guard.
QUICK := core types telling runtime test_house.py test_docs_complete.py test_agent.py test_plan_runs.py test_reasoners.py test_guard_runs.py
quick: $(STAMP)
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not slow and not scale and not real_model" $(QUICK:%=tests/%)

# Of a fresh checkout one process compiles what each worker would; and one worker more than cores, since tests wait.
whole: $(STAMP)
	@test -d tests/types/__pycache__ || $(BIN)/python -m pytest --collect-only -qq > /dev/null || true
	$(BIN)/python -m pytest -n $$(( $$(getconf _NPROCESSORS_ONLN) + 1 )) --dist worksteal -m "not scale"

types:  ## the examples under mypy --strict, as somebody who has installed surefoot checks their own code
	@$(PYTHON) -m venv build/types
	@build/types/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt mypy '.[mcp]'
	build/types/bin/python -m mypy --strict --cache-dir build/types/cache examples

$(VENV)/.docs: $(STAMP)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	@touch $@

docs: $(VENV)/.docs  ## the pages as a site in build/site, its links checked; nothing in it is fetched from elsewhere
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build

dist:  ## wheel and sdist in build/dist, checked, and installed in an empty environment of PYTHON
	@$(PYTHON) -m venv build/release
	@build/release/bin/python -m pip install --quiet --disable-pip-version-check build twine
	@rm -rf build/dist
	build/release/bin/python -m build --outdir build/dist
	build/release/bin/python -m twine check --strict build/dist/*
	$(PYTHON) tests/wheel.py build/dist

bench: $(STAMP)  ## what a step costs, against the raw loop in the same run
	$(BIN)/python benchmarks/overhead.py
	$(BIN)/python benchmarks/reasoners.py
	$(BIN)/python benchmarks/context.py
	$(BIN)/python benchmarks/long_run.py
	$(BIN)/python benchmarks/admission.py
	$(BIN)/python benchmarks/selection.py

evidence: $(STAMP)  ## what stands behind each claim, measured again for docs/evidence.md; PART=… for some, LONG=1 for all
	$(BIN)/python benchmarks/evidence.py $(if $(LONG),--long) $(PART)

house: $(STAMP)  ## how large and how knotted the source is, beside what it should be
	@$(BIN)/python tests/house.py

eval-security: $(STAMP)  ## our own attack suite against the gate, under three kinds of answers
	$(BIN)/python -m evals.siren --asks all

eval-selection: $(STAMP)  ## tool retrieval on the catalogues and queries in DIR
	$(BIN)/python -m evals.toolret $(DIR)

clean:
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis
