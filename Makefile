# Two commands: `make demo` and `make test`. CLUSTER=local|kind|current chooses the cluster; see README.md. Without it, the demo
# chooses one, and the tests use the local one.
SHELL := /bin/bash
.SHELLFLAGS := -o errexit -o nounset -o pipefail -c
.DEFAULT_GOAL := help

CLUSTER ?=
# With CLUSTER=current: references from which the cluster's nodes can pull the two images.
OPERATOR_IMAGE ?=
WORKER_IMAGE ?=
export CLUSTER OPERATOR_IMAGE WORKER_IMAGE

PYTHON ?= python3
UV_VERSION := 0.13.8
VERL_VERSION := 0.9.1
VERL := .verl
OPENRLHF := .openrlhf
BIN := .venv/bin
GENERATORS := docs/generators docs/recording docs/site
# mkdocs-material reaches its end of life in May 2027, and prints that on each run; Zensical is its successor.
export NO_MKDOCS_2_WARNING := 1
MERMAID := .site/mermaid.min.js
# The newest of the major version that mkdocs-material is made for.
MERMAID_VERSION := 11.17.2
SOURCES := cli common crds operator worker_image tools bench tests examples charts $(GENERATORS)
# These must run on the oldest Python that Ray supports.
IN_USERS_IMAGES := cli worker_image/workergroups $(addprefix worker_image/workergroups_agent/,executor observer liveness_file.py exchange.py \
  files.py head_directories.py left_processes.py previous_logs.py listening.py check_image.py ray_start.py when_idle.py)
TYPED := cli common crds operator worker_image tools bench $(addprefix tests/,simulation fuzz soak truth kills) $(GENERATORS)
CRD_DIRECTORY := charts/workergroups/files/crds
COPIES_OF_VERSION := charts/workergroups/Chart.yaml worker_image/workergroups.dist-info/METADATA
READY := .venv/ready
BENCH_READY := .venv-bench/ready
DOCS_READY := .venv-docs/ready
UPGRADE ?=
TRUTH ?=

.PHONY: help
help: ## list the targets
	@sed -nE 's/^([a-z-]+):.*## (.*)/\1\t\2/p' $(MAKEFILE_LIST) | expand --tabs=16

.PHONY: demo
demo: python3 ## start a cluster with the operator, apply examples/quickstart, print its results
	@$(PYTHON) -m tools.demo run

.PHONY: measure
measure: ## print how much memory the operator and the demo's agent use
	@$(PYTHON) -m tools.demo measure

.PHONY: bench
bench: $(BENCH_READY) ## compare this library with verl and raw Ray; write docs/benchmarks.md and its picture
	.venv-bench/bin/python -m bench docs

.PHONY: bench-start
bench-start: $(READY) ## measure the seconds from apply to the first answer, and to KubeRay's ready; write docs/timeline.md; ROUNDS=3
	@variables=$$($(PYTHON) -m tools.demo prepare-tests); eval "$$variables"; \
	$(BIN)/python -m bench.start --rounds=$(or $(ROUNDS),3) --page=docs/timeline.md

.PHONY: bench-restart
bench-restart: $(READY) ## measure the seconds from a rank's death to the next answers, on a local Ray; write docs/restarts.md; ROUNDS=5
	$(BIN)/python -m bench.restart --rounds=$(or $(ROUNDS),5) --page=docs/restarts.md

.PHONY: clean
clean: ## remove what demo and tests created, including the cluster
	@$(PYTHON) -m tools.demo clean

.PHONY: test
test: ## run lint and all tiers, and print how long each took
	@times=; for phase in lint cluster-up test-unit test-api test-ray test-release test-cluster; do \
	  SECONDS=0; $(MAKE) --no-print-directory $$phase; times+="  $$phase $$SECONDS s"$$'\n'; \
	done; printf 'passed:\n%s' "$$times"

.PHONY: lint
lint: $(READY) $(DOCS_READY) ## check style, types, import contracts, generated files and the site
	.venv-docs/bin/mkdocs build --strict --site-dir=.site/lint
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/mypy $(TYPED)
	$(BIN)/mypy --python-version=3.10 $(IN_USERS_IMAGES)
	$(BIN)/lint-imports
	.venv-docs/bin/pip-licenses --python=.venv/bin/python --packages $$(sed --quiet 's/^\([^ ]*\)==.*/\1/p' $(addprefix requirements/,operator.lock worker.lock cli.lock debugger.lock)) > /dev/null
	@fresh=$$(mktemp --directory); trap 'rm -r "$$fresh"' EXIT; $(BIN)/python -m workergroups_api.crd "$$fresh"; \
	diff --unified --recursive $(CRD_DIRECTORY) "$$fresh" || { echo 'stale: run `make generate`'; exit 1; }; \
	$(BIN)/python -m docs.generators "$$fresh/pages"; $(BIN)/python -m tools.release.version "$$fresh/pages"; \
	for generated in docs/reference charts/workergroups/README.md charts/workergroups/files/dashboard.json $(COPIES_OF_VERSION); do \
	  diff --unified --recursive --new-file "$$generated" "$$fresh/pages/$$generated" || { echo 'stale: run `make generate`'; exit 1; }; \
	done

# If pytest finds no test in a tier, it exits with 5, and the tier fails.
.PHONY: test-unit
test-unit: $(READY) ## test pure functions, golden YAML, the chart's templates, samples in the docs
	$(BIN)/pytest --numprocesses=2 --dist=worksteal tests/unit

.PHONY: test-api
test-api: $(READY) ## test operator and reporter with a real API server, in a simulated world
	$(BIN)/pytest --numprocesses=3 --dist=worksteal --durations=10 -m 'not long' tests/api

# Not part of CI: Kueue takes ten minutes to build.
.PHONY: test-kueue
test-kueue: $(READY) ## test pools in the queues of the real Kueue, beside the API server of test-api
	$(BIN)/pytest --durations=5 --override-ini=timeout_func_only=true tests/kueue

# FIRST: by default a number that no earlier run used. MINUTES=0: all SEEDS.
SEEDS ?= 1000
FIRST ?=
MINUTES ?= 0
.PHONY: simulate
simulate: $(READY) ## play histories of faults, one for each seed: SEEDS=1000 FIRST=1 MINUTES=3 STRANGERS=0.3
	$(BIN)/python -m tests.simulation --seeds=$(SEEDS) --minutes=$(MINUTES) $(if $(FIRST),--first=$(FIRST)) $(if $(STRANGERS),--strangers=$(STRANGERS))

# The same variables. KIND=served: only the cases of that kind.
CASES ?= 10000
KIND ?=
.PHONY: fuzz
fuzz: $(READY) ## try odd objects, files and names, launches that break, and edits in any order, one case for each seed: CASES=10000 FIRST=1 KIND= MINUTES=2
	$(BIN)/python -m tests.fuzz --cases=$(CASES) --minutes=$(MINUTES) $(if $(FIRST),--first=$(FIRST)) $(if $(KIND),--kind=$(KIND))

# With MINUTES=0, ten minutes. CLUSTERS: how many run.
CLUSTERS ?= 12
.PHONY: soak
soak: $(READY) ## write without end to all that the operator watches; fail if its memory rises: MINUTES=10 CLUSTERS=12
	$(BIN)/python -m tests.soak --clusters=$(CLUSTERS) $(if $(filter-out 0,$(MINUTES)),--minutes=$(MINUTES))

.PHONY: test-ray
test-ray: $(READY) ## test library and agent on a local Ray
	$(BIN)/pytest --durations=10 -m 'not long' tests/ray --ignore-glob='*/long'

.PHONY: test-release
test-release: $(READY) ## build what users install, install it in clean places, run the first page
	$(BIN)/pytest tests/release --ignore-glob='*/long'

.PHONY: test-cluster
test-cluster: $(READY) ## test the whole path on the cluster; remove the demo's pool, whose devices this needs
	@variables=$$($(PYTHON) -m tools.demo prepare-tests); eval "$$variables"; \
	$(BIN)/pytest tests/cluster --ignore-glob='*/slow' --ignore-glob='*/long'

# Not part of CI: the same tests again. Each module has one of the namespaces.
.PHONY: test-locked-down
test-locked-down: $(READY) $(BENCH_READY) ## test-cluster and verl's trainer, with restricted pods, enforced NetworkPolicies, and an operator for some namespaces
	@variables=$$($(PYTHON) -m tools.demo prepare-tests --locked-down=8); eval "$$variables"; \
	$(PYTHON) -m tools.local_cluster network-policies on; trap '$(PYTHON) -m tools.local_cluster network-policies off' EXIT; \
	$(BIN)/pytest tests/cluster/test_*.py tests/cluster/slow/test_verl.py

.PHONY: test-long
test-long: $(READY) ## test on Ray and on the cluster: command line, debugger, programs, users' images, devices, examples/ppo; a release's images
	$(BIN)/pytest --numprocesses=3 --dist=worksteal -m long tests/api
	$(BIN)/pytest -m long tests/ray --ignore-glob='*/long'
	@variables=$$($(PYTHON) -m tools.demo prepare-tests); eval "$$variables"; $(BIN)/pytest tests/cluster/long tests/ray/long tests/ray/*/long tests/release/long

# Not part of `make test`: it builds the images of another commit, which a shallow clone lacks.
.PHONY: test-upgrade
test-upgrade: $(READY) ## upgrade from an earlier version by Helm, roll back, and upgrade again, under ranks and a driver
	@variables=$$($(PYTHON) -m tools.demo prepare-tests); eval "$$variables"; $(BIN)/pytest tests/upgrade

# Not part of CI: no other target needs GPUs.
.PHONY: test-gpu
test-gpu: $(READY) ## test on the GPUs of this machine, two or more: NCCL in a preflight, the devices of forked ranks
	$(BIN)/pytest -s tests/gpu

# On a machine with GPUs and without a network: PIECES is what `python3 -m tools.gpu_machine.pack` wrote elsewhere.
PIECES ?= pieces
.PHONY: test-gpu-cluster
test-gpu-cluster: ## run tools/gpu_machine/: a cluster whose pods have this machine's GPUs, and all checks in them; PIECES=pieces
	OUT=$${OUT:-gpu-results} python3 -m tools.gpu_machine all $(PIECES)

# Uses Docker if kind can get its images there, else our own engine and images; see tools/local_kind/. Removes all of it
# afterwards, whatever happens. Only this and the next target use that folder.
.PHONY: test-kind
test-kind: $(READY) ## run the cluster tests on kind; start Docker and kind, and remove them
	@$(PYTHON) -m tools.local_kind run $(MAKE) --no-print-directory test-cluster

.PHONY: demo-kind
demo-kind: python3 ## run the demo on kind; start Docker and kind, and remove them
	@$(PYTHON) -m tools.local_kind run $(MAKE) --no-print-directory demo

# The tests of the single controller and of DataProto that need no device, or can do with logical ones.
VERL_TESTS := $(addprefix single_controller/test_,auto_padding_on_cpu.py colocated_workers.py colocated_workers_fused.py \
  decorator_on_cpu.py device_mesh_register.py driverfunc_to_worker.py fused_workers_on_cpu.py \
  get_set_dispatch_collect_cpu.py high_level_scheduling_api.py nested_worker.py ray_local_envs_on_cpu.py \
  ray_utils_on_cpu.py split_resource_pool.py worker_group_basics.py worker_group_torch.py) test_protocol_on_cpu.py
.PHONY: test-verl
test-verl: $(VERL)/ready $(BENCH_READY) ## run verl's own tests with our modules under verl's names, and verl's classes on reserved bundles
	cd $(VERL)/run; PYTHONPATH=$(CURDIR)/tests/verl/shim:$(CURDIR)/tests/verl:$(CURDIR)/$(VERL)/run \
	  VERL_UTILS=$(CURDIR)/$(VERL)/source/verl/utils $(CURDIR)/$(BIN)/python -P -m pytest --config-file=/dev/null --rootdir=. \
	  -p no:cacheprovider -p logical_gpus --durations=5 $(addprefix tests/,$(VERL_TESTS))
	.venv-bench/bin/python -m pytest tests/verl/plugin

.PHONY: test-openrlhf
test-openrlhf: $(OPENRLHF)/ready $(BENCH_READY) ## run OpenRLHF's own placement groups on pools with and without a reservation
	OPENRLHF=$(OPENRLHF) .venv-bench/bin/python -m pytest tests/verl/openrlhf

# The package has Python files only, though its name says otherwise.
$(OPENRLHF)/ready: tests/verl/openrlhf/source.txt | $(READY)
	rm -rf $(OPENRLHF)
	$(BIN)/uv pip install --quiet --target=$(OPENRLHF) --no-deps --python-version=3.12 --python-platform=x86_64-manylinux_2_28 \
	  --require-hashes --requirements=$<
	@touch $@

# In the source distribution, verl's tests are next to its package. They must not find that package.
$(VERL)/ready: tests/verl/source.txt | $(READY)
	rm -rf $(VERL); mkdir -p $(VERL)/run $(VERL)/source
	$(BIN)/python -m pip download --quiet --disable-pip-version-check --no-deps --no-binary=:all: --no-build-isolation \
	  --require-hashes --requirement=tests/verl/source.txt --dest=$(VERL)
	tar --extract --file=$(VERL)/verl-$(VERL_VERSION).tar.gz --directory=$(VERL)/run --strip-components=1 verl-$(VERL_VERSION)/tests
	tar --extract --file=$(VERL)/verl-$(VERL_VERSION).tar.gz --directory=$(VERL)/source --strip-components=1 \
	  verl-$(VERL_VERSION)/verl/utils
	@touch $@

# Not part of `make test`: minutes of broken clusters and stopped nodes are too slow for every run.
.PHONY: test-slow
test-slow: $(READY) $(BENCH_READY) ## run the tests on the cluster that take minutes, see docs/testing.md
	@variables=$$($(PYTHON) -m tools.demo prepare-tests); eval "$$variables"; $(BIN)/pytest tests/cluster/slow

.PHONY: truth
truth: $(READY) ## measure on the cluster for how many seconds a status is wrong, fault by fault; write docs/truth.md; TRUTH="--rounds=5 --busy"
	@variables=$$($(PYTHON) -m tools.demo prepare-tests); eval "$$variables"; $(BIN)/python -m tests.truth --page=docs/truth.md $(TRUTH)

# Not part of CI: 200 kills take hours. SEED: by default a number that is printed.
KILLS ?= 200
SEED ?=
.PHONY: kills
kills: $(READY) ## kill ranks, pods, agent, operator, head and driver at random while examples/resilient-training runs: KILLS=200 SEED=7
	@variables=$$($(PYTHON) -m tools.demo prepare-tests); eval "$$variables"; \
	$(BIN)/python -m tests.kills --kills=$(KILLS) $(if $(SEED),--seed=$(SEED))

.PHONY: cluster-up
cluster-up: python3 ## start the cluster with the operator; print what to export
	@$(PYTHON) -m tools.demo prepare-tests

.PHONY: images
images: python3 ## build the two images for the local cluster
	@$(PYTHON) -m tools.local_cluster build-images

.PHONY: generate
generate: $(READY) ## write the CustomResourceDefinitions, docs/reference and the chart's README from the code, and the version everywhere
	$(BIN)/python -m workergroups_api.crd $(CRD_DIRECTORY)
	$(BIN)/python -m docs.generators
	$(BIN)/python -m tools.release.version

.PHONY: docs
docs: $(DOCS_READY) $(MERMAID) ## build the documentation site into .site/html; a dead link or anchor, or a page missing from the navigation, fails
	.venv-docs/bin/mkdocs build --strict

.PHONY: docs-serve
docs-serve: $(DOCS_READY) $(MERMAID) ## show the site on http://127.0.0.1:8000, and again after each change
	.venv-docs/bin/mkdocs serve

# VERSION=0.2: the folder of the site, and the name in its menu of versions.
.PHONY: docs-version
docs-version: $(DOCS_READY) $(MERMAID) ## commit the site as a version to the local branch gh-pages: VERSION=0.2
	PATH=$(CURDIR)/.venv-docs/bin:$$PATH mike deploy --update-aliases $(VERSION) latest
	PATH=$(CURDIR)/.venv-docs/bin:$$PATH mike set-default latest

# First `make cluster-up`, and export what it prints. The pool stays: `workergroups down recording`.
.PHONY: recording
recording: $(DOCS_READY) ## record up, status and debug on the cluster that KUBECONFIG names; write docs/recording.svg
	PATH=$(CURDIR)/$(BIN):$$PATH .venv-docs/bin/python -m docs.recording docs/recording.svg

.PHONY: changelog
changelog: $(DOCS_READY) ## print what is not released yet, from changelog.d
	@.venv-docs/bin/towncrier build --draft --version='Not released yet'

# DRY_RUN=1: builds the checkout as it is, and changes nothing in it. IMAGES=no: neither images nor their bills of materials.
VERSION ?=
DRY_RUN ?=
IMAGES ?=
.PHONY: release
release: $(READY) ## build all that a release consists of into dist/: VERSION=0.2.0; see docs/releasing.md
	$(BIN)/python -m tools.release $(VERSION) $(if $(DRY_RUN),--dry-run) $(if $(filter no,$(IMAGES)),--without-images)

.PHONY: lock
lock: $(READY) ## pin the dependencies of pyproject.toml; UPGRADE=--upgrade renews existing pins
	for group in operator worker debugger cli oldest-ray too-old-ray dev docs bench; do \
	  $(BIN)/uv pip compile --quiet --universal --group=$$group --generate-hashes --no-annotate --no-header \
	    --python-version=$$([ $$group = cli ] && echo 3.10 || echo 3.11) $(UPGRADE) --output-file=requirements/$$group.lock; \
	done
	$(BIN)/uv pip compile --quiet --group=verl --generate-hashes --no-annotate --no-header --python-version=3.12 \
	  --python-platform=x86_64-manylinux_2_34 $(UPGRADE) --output-file=requirements/verl.lock

# The checkout's Python environment, recreated when the pins change. Its modules are compiled here: if PYTHONDONTWRITEBYTECODE
# is set, each of Ray's many processes would compile them for itself, which takes a second or more.
$(READY): requirements/dev.lock pyproject.toml | python3
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	$(BIN)/uv pip sync --quiet --compile-bytecode --require-hashes requirements/dev.lock
	$(BIN)/uv pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

$(DOCS_READY): requirements/docs.lock | $(READY)
	$(PYTHON) -m venv --without-pip .venv-docs
	$(BIN)/uv pip sync --quiet --python=.venv-docs --require-hashes requirements/docs.lock
	@touch $@

# npm checks the archive against the registry's digest, and sha256sum against ours.
$(MERMAID): docs/site/mermaid.sha256
	mkdir -p $(@D)
	cd $(@D); npm pack --silent mermaid@$(MERMAID_VERSION); tar --extract --file=mermaid-$(MERMAID_VERSION).tgz --strip-components=2 package/dist/mermaid.min.js
	rm $(@D)/mermaid-$(MERMAID_VERSION).tgz; cd $(@D); sha256sum --check --quiet ../docs/site/mermaid.sha256; touch mermaid.min.js

# verl without its dependencies. `bench.lock` has those that are needed here.
$(BENCH_READY): requirements/bench.lock | $(READY)
	$(PYTHON) -m venv --without-pip .venv-bench
	$(BIN)/uv pip sync --quiet --compile-bytecode --python=.venv-bench --require-hashes requirements/bench.lock
	$(BIN)/uv pip install --quiet --compile-bytecode --python=.venv-bench --no-deps verl==$(VERL_VERSION)
	$(BIN)/uv pip install --quiet --python=.venv-bench --no-deps --no-build-isolation --editable .
	@touch $@

.PHONY: python3
python3:
	@if ! $(PYTHON) -c 'import ensurepip' 2>/dev/null; then \
	  apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install --yes python3-venv; fi
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or later is needed: set PYTHON" if sys.version_info < (3, 11) else 0)'
