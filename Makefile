# Two commands do everything on a machine with Python 3.11+, make and pip: make demo, make test.
# Each installs what it needs into .venv, once: the stamps below know what is there.
PYTHON ?= python3
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo)
APT = $(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get -o Acquire::Retries=5 -o DPkg::Lock::Timeout=600
BIN := .venv/bin
PIP := $(BIN)/python -m pip -q
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_RETRIES ?= 10
export PIP_DEFAULT_TIMEOUT ?= 60
export UV_HTTP_TIMEOUT ?= 300
.NOTPARALLEL:

.PHONY: screenshots chromium test-browser install demo docs test-wheel test test-trainers test-clients test-nemo-gym check bench bench-quick bench-trainers clean help

help:            ## what there is to make
	@awk -F ':.*## ' '/^[a-z-]+: .*##/ {printf "%-16s%s\n", $$1, $$2}' Makefile

install: .venv/.core            ## .venv with the plaudit command
demo: .venv/.local              ## a real model judges real answers, then the speed table
	$(BIN)/python examples/demo.py
test: .venv/.dev                ## all tests but those of the next line
	$(BIN)/python -m pytest
# After ray.shutdown(), and in a second cluster, native threads of Ray and torch crash now and then. So each file that starts
# a cluster has a process of its own, and only where a signal killed a process, it is run once more.
TRAINERS = HF_HUB_OFFLINE=1 .venv-trainers/bin/python -m pytest --timeout 1800 -m trainers
CLUSTERS := $(addprefix tests/integrations/,ray/test_shared_engine.py ray/test_two_servers.py \
  verl/test_ending_runs.py verl/test_reward_loop.py verl/test_v1.py)
test-trainers: .venv-trainers/.done .venv-trainers/.old-verl .venv-trainers/.environments   ## the tests with torch, verl, TRL, Ray, Gymnasium, ART, ...
	run() { $(TRAINERS) "$$@" || { test $$? -ge 128 && $(TRAINERS) "$$@"; }; }; \
	  run --ignore tests/integrations && run tests/integrations $(CLUSTERS:%=--ignore %) && \
	  for file in $(CLUSTERS); do run $$file || exit; done
	HF_HUB_OFFLINE=1 LITELLM_LOCAL_MODEL_COST_MAP=True GRADIO_ANALYTICS_ENABLED=False WANDB_MODE=disabled \
	  PYTHONPATH=.venv-trainers/environments .venv-trainers/bin/python -m pytest --timeout 1800 -W ignore -m environments tests/integrations
test-clients: .venv-clients/.done   ## judges that others wrote, against `plaudit serve`, and a Jupyter kernel
	.venv-clients/bin/python -m pytest -m clients tests/service tests/test_notebook.py
	.venv-clients/bin/python -m pytest tests/service/test_openai_client.py
test-nemo-gym: .venv-nemo-gym/.done   ## NeMo-Gym's judge against `plaudit serve`; needs Python 3.12: make PYTHON=python3.12 ...
	.venv-nemo-gym/bin/python -m pytest -m nemo_gym tests/service
test-browser: .venv/.dev .venv/axe.min.js chromium   ## the page in a real browser (installs chromium)
	PLAUDIT_TEST_AXE=$(CURDIR)/.venv/axe.min.js $(BIN)/python -m pytest -m browser tests/browser
chromium:
	@command -v chromium || command -v chromium-browser || command -v google-chrome || \
	  { $(APT) update -q; $(APT) install -y -q chromium; }
screenshots: .venv/.dev .venv-clients/.done   ## the pictures of the documentation, drawn anew
	$(BIN)/python docs/make_screenshots.py
check: .venv/.dev               ## ruff, mypy --strict, layers and sizes
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest tests/test_layers.py
test-wheel:      ## the wheel, installed and used outside this folder
	PYTHON=$(PYTHON) .ci/try-wheel
docs: .venv-docs/.done          ## the documentation as a site, in site/
	NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build --strict -q
bench: .venv/.bench             ## every claim of the README, measured (two hours)
	$(BIN)/python benchmarks/all.py
bench-quick: .venv/.dev         ## the same in a minute: that they work, not what they say (after test-browser)
	$(BIN)/python benchmarks/all.py --quick
bench-trainers: .venv-trainers/.done   ## verl, Ray, TRL and query mutation, measured
	HF_HUB_OFFLINE=1 .venv-trainers/bin/python benchmarks/all.py --trainers
clean:           ## forget the environment
	rm -rf .venv .venv-trainers .venv-clients .venv-nemo-gym .venv-docs site

.venv/bin/python:
	$(PYTHON) -m venv .venv
.venv/.core: pyproject.toml constraints.txt | .venv/bin/python
	$(PIP) install -c constraints.txt -e .
	@touch $@
.venv/.local: .venv/.core
	$(PIP) install -c constraints.txt -e ".[local]"
	@touch $@
.venv/.dev: pyproject.toml constraints.txt | .venv/bin/python
	$(PIP) install -c constraints.txt -e ".[dev]"
	@touch .venv/.core .venv/.local $@
.venv/axe.min.js: | .venv/bin/python
	cd .venv && npm pack --silent --cache npm --fetch-retries 5 axe-core@4.14.0 >/dev/null && tar xzf axe-core-4.14.0.tgz --strip-components=1 package/axe.min.js
	rm .venv/axe-core-4.14.0.tgz && touch $@
.venv/.bench: .venv/.core
	$(PIP) install -c constraints.txt -e ".[bench]"
	@touch $@
.venv-docs/.done: pyproject.toml constraints-docs.txt
	$(PYTHON) -m venv .venv-docs
	.venv-docs/bin/python -m pip -q install -c constraints-docs.txt -e ".[docs]"
	@touch $@

.venv-clients/.done: pyproject.toml constraints-clients.txt
	$(PYTHON) -m venv .venv-clients
	.venv-clients/bin/python -m pip -q install -c constraints-clients.txt -e ".[clients]"
	@touch $@

.venv-nemo-gym/.done: pyproject.toml
	$(PYTHON) -m venv .venv-nemo-gym
	.venv-nemo-gym/bin/python -m pip -q install -e . nemo-gym==0.4.0 'pytest>=9' 'pytest-timeout>=2.4'
	@touch $@

# Packages of gigabytes, apart from the rest. torch first and alone: whatever lets the resolver choose another one
# pulls in CUDA. verl without its dependencies: of those, the tests need few.
.venv-trainers/.done: pyproject.toml constraints.txt constraints-trainers.txt
	$(PYTHON) -m venv .venv-trainers
	.venv-trainers/bin/python -m pip -q install torch==2.13.0
	.venv-trainers/bin/python -m pip -q install --no-deps verl==0.9.1
	.venv-trainers/bin/python -m pip -q install -c constraints-trainers.txt -e ".[trainers]"
	@touch $@
# ART, OpenEnv, Atropos, Tinker's cookbook and what their imports need, apart: they want other versions than verl and TRL.
.venv-trainers/.environments: requirements-environments.txt .venv-trainers/.done
	.venv-trainers/bin/python -m pip -q install --upgrade --no-deps --no-compile --target .venv-trainers/environments -r requirements-environments.txt
	@touch $@
# Older versions of verl, sources only, which the tests run in processes of their own. 0.4.1 imports pkg_resources.
.venv-trainers/.old-verl: .venv-trainers/.done
	for v in 0.4.1 0.5.0 0.6.1 0.7.0 0.7.1 0.8.0; do \
	  .venv-trainers/bin/python -m pip -q install --upgrade --no-deps --target .venv-trainers/verl-$$v verl==$$v || exit 1; \
	done
	.venv-trainers/bin/python -m pip -q install --upgrade --no-deps --target .venv-trainers/verl-old-setuptools 'setuptools<81'
	@touch $@
